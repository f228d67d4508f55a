"""Theme: the palette, the zoom and reduced motion, with signals of their changes.

One Theme is made after the QApplication and passed to every widget. Widgets call `color(name)` while they
paint. A change of the palette repaints all of them; those that store colours follow `changed`. The zoom is
the application's (`app/theme/zoom.py`): when it changes, all measures are applied again, then `zoomed` is
emitted for widgets that lay themselves out.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, QSettings, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyle, QWidget

from app.theme import zoom
from app.theme.measures import measure_anew
from app.theme.palette import DARK, LIGHT, Palette

_MAC_PREFERENCES = Path("~/Library/Preferences/com.apple.universalaccess.plist")


def system_reduces_motion() -> bool:
    """Returns whether animations are turned off. Not cached: it can change while the window is open."""
    if platform.system() == "Darwin":
        settings = QSettings(str(_MAC_PREFERENCES.expanduser()), QSettings.Format.NativeFormat)
        return settings.value("reduceMotion") in (True, 1, "1", "true")
    return QApplication.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0


def clear_base(field: QWidget) -> None:
    """Makes the ground of a text field transparent. Its other colours stay the application's (`qpalette`)."""
    palette = field.palette()
    palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
    field.setPalette(palette)


Scheme = Literal["system", "light", "dark"]
MotionWish = Literal["system", "reduced"]


class Theme(QObject):
    """The palette in use; follows the system at first."""

    changed = Signal()
    framed = Signal()  # before `zoomed`: text widths are needed for the layout
    zoomed = Signal()

    def __init__(self, scheme: Scheme = "system", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._scheme: Scheme = scheme
        self._palette = LIGHT
        zoom.set_zoom(1.0)
        self._motion: MotionWish = "system"
        self._colors: dict[str, QColor] = {}
        self._resolve()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)

    @property
    def palette(self) -> Palette:
        """All colour tokens, as strings."""
        return self._palette

    @property
    def is_dark(self) -> bool:
        """Whether the dark palette is in use."""
        return self._palette is DARK

    @property
    def scheme(self) -> Scheme:
        """The selected scheme; `system` follows the desktop."""
        return self._scheme

    def set_scheme(self, scheme: Scheme) -> None:
        """Selects a scheme. Emits `changed` and repaints all widgets, if the palette changes."""
        self._scheme = scheme
        if self._resolve():
            self.changed.emit()
            for widget in QApplication.allWidgets():
                widget.update()

    @property
    def zoom(self) -> float:
        """The zoom; 1 is the design size."""
        return zoom.zoom()

    def set_zoom(self, factor: float) -> None:
        """Sets the zoom. Emits `zoomed` if it differs, after all measures were applied."""
        if factor != zoom.zoom():
            zoom.set_zoom(factor)
            measure_anew()
            self.framed.emit()
            self.zoomed.emit()

    @property
    def reduced_motion(self) -> bool:
        """Whether nothing may move or blink. Not cached, because the system setting can change."""
        return self._motion == "reduced" or system_reduces_motion()

    def set_motion(self, motion: MotionWish) -> None:
        """Follows the system's setting, or always reduces motion."""
        self._motion = motion

    def color(self, name: str) -> QColor:
        """Returns the token `name` (a field of `Palette`) as a new QColor. An unknown name is our bug."""
        color = self._colors.get(name)
        if color is None:
            color = self._colors[name] = QColor(getattr(self._palette, name))
        return QColor(color)

    def qpalette(self) -> QPalette:
        """Returns the palette of the QApplication: menus, tooltips and text cursors match our painting."""
        palette = QPalette()
        role = QPalette.ColorRole
        for target, name in (
            (role.Window, "window"),
            (role.WindowText, "text"),
            (role.Base, "window"),
            (role.AlternateBase, "panel"),
            (role.Text, "text"),
            (role.PlaceholderText, "text2"),
            (role.Button, "control"),
            (role.ButtonText, "text"),
            (role.BrightText, "on_accent"),
            (role.ToolTipBase, "tip"),
            (role.ToolTipText, "text"),
            (role.Highlight, "accent_fill"),
            (role.HighlightedText, "on_accent"),
            (role.Link, "accent"),
            (role.LinkVisited, "accent"),
            (role.Accent, "accent_fill"),
            (role.Light, "raised"),
            (role.Midlight, "hair"),
            (role.Mid, "hair2"),
            (role.Dark, "text3"),
            (role.Shadow, "text3"),
        ):
            palette.setColor(target, self.color(name))
        disabled = QPalette.ColorGroup.Disabled
        for target in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(disabled, target, self.color("text3"))
        return palette

    def _follow_system(self, _scheme: Qt.ColorScheme) -> None:
        if self._scheme == "system":
            self.set_scheme("system")

    def _resolve(self) -> bool:
        """Selects the palette; returns whether it changed."""
        system_dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        dark = self._scheme == "dark" or (self._scheme == "system" and system_dark)
        palette = DARK if dark else LIGHT
        if palette is self._palette:
            return False
        self._palette = palette
        self._colors.clear()
        return True
