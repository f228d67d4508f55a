"""Whether the system asks for reduced motion.

Qt has no such query. Linux desktops without animations report an animation duration of 0 in the style; macOS
has it in the accessibility preferences.
"""

from __future__ import annotations

import platform
from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication, QStyle

_MAC_PREFERENCES = Path("~/Library/Preferences/com.apple.universalaccess.plist")


def system_reduces_motion() -> bool:
    """Returns whether animations are turned off. Not cached: it can change while the window is open."""
    if platform.system() == "Darwin":
        settings = QSettings(str(_MAC_PREFERENCES.expanduser()), QSettings.Format.NativeFormat)
        return settings.value("reduceMotion") in (True, 1, "1", "true")
    return QApplication.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0
