"""Every parameter of Draftlight, declared once. No mlx, no numpy, no Qt.

A setting is one annotated field of one struct: type, default, bounds, unit, title, help.
The inspector, the command line, the wire's validation and the docs are generated from it.
"""

from core.settings.declaration import Setting, assign, assign_all, declared, parse_all, permitted, read
from core.settings.prefill import Prefill
from core.settings.request import FROM_MODEL, Settings, unused
from core.settings.window import WindowSettings

__all__ = [
    "FROM_MODEL",
    "Prefill",
    "Setting",
    "Settings",
    "WindowSettings",
    "assign",
    "assign_all",
    "declared",
    "parse_all",
    "permitted",
    "read",
    "unused",
]
