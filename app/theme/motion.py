"""Whether the person asked the system for less motion.

Qt has no such question. Desktops that let animations be switched off say so through the style
(an animation's duration is 0); on macOS it is in the accessibility preferences.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication, QStyle

_MAC_PREFERENCES = Path("~/Library/Preferences/com.apple.universalaccess.plist")


def system_reduces_motion() -> bool:
    """Asked each time: it can be changed while the window is open."""
    if sys.platform == "darwin":
        settings = QSettings(str(_MAC_PREFERENCES.expanduser()), QSettings.Format.NativeFormat)
        return settings.value("reduceMotion") in (True, 1, "1", "true")
    return QApplication.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0
