"""Theme: the palette, the zoom and reduced motion, with signals of their changes.

The application has one, `theme`, which sets the application's palette, font and style sheet
(`app/theme/sheet.py`). Widgets call `color(name)` while they paint. A change of the palette
repaints all of them; those that store colours follow `changed`. When the zoom (`app/theme/zoom.py`) changes,
all measures are applied again, then `zoomed` is emitted for widgets that lay themselves out.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from PySide6.QtCore import QObject, QSettings, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyle, QWidget

from app.theme import zoom
from app.theme.fonts import enlarged_ui_font
from app.theme.measures import measure_anew
from app.theme.sheet import style_sheet

_MAC_PREFERENCES = Path("~/Library/Preferences/com.apple.universalaccess.plist")


def system_reduces_motion() -> bool:
    """Returns whether animations are turned off. Not cached: it can change while the window is open."""
    if platform.system() == "Darwin":
        settings = QSettings(str(_MAC_PREFERENCES.expanduser()), QSettings.Format.NativeFormat)
        return settings.value("reduceMotion") in (True, 1, "1", "true")
    return QApplication.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0


def clear_base(field: QWidget) -> None:
    """Makes the ground of a text field transparent and removes its frame."""
    field.setProperty("kind", "bare")
    palette = field.palette()
    palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
    field.setPalette(palette)


@contextmanager
def without_style_sheet() -> Iterator[None]:
    """Removes the application's style sheet until the end of the block, which makes many widgets.

    Qt polishes each widget once at the end. With a style sheet it does so again whenever an ancestor of the
    widget gets a parent, which took three quarters of the time of making the chat window.
    """
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    sheet = application.styleSheet()
    application.setStyleSheet("")
    try:
        yield
    finally:
        application.setStyleSheet(sheet)


Scheme = Literal["system", "light", "dark"]
MotionWish = Literal["system", "reduced"]


_SCHEMES: dict[Scheme, Qt.ColorScheme] = {
    "system": Qt.ColorScheme.Unknown,
    "light": Qt.ColorScheme.Light,
    "dark": Qt.ColorScheme.Dark,
}


class Theme(QObject):
    """The palette in use: the light one until `set_scheme`, which needs an application."""

    changed = Signal()
    framed = Signal()  # before `zoomed`: text widths are needed for the layout
    zoomed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._scheme: Scheme = "light"
        self._palette = LIGHT
        self._motion: MotionWish = "system"
        self._connected = False
        self._colors: dict[str, QColor] = {}

    @property
    def palette(self) -> Palette:
        """All colour tokens, as strings."""
        return self._palette

    @property
    def is_dark(self) -> bool:
        return self._palette is DARK

    @property
    def scheme(self) -> Scheme:
        """The selected scheme; `system` follows the desktop."""
        return self._scheme

    def set_scheme(self, scheme: Scheme) -> None:
        """Selects a scheme. Emits `changed` and repaints all widgets, if the palette changes."""
        self._scheme = scheme
        if not self._connected:
            QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)
            self._connected = True
            self._dress()
        # The system's title bars, menus and file sheets follow; Unknown is the desktop's own.
        QGuiApplication.styleHints().setColorScheme(_SCHEMES[scheme])
        if self._resolve():
            self._dress()
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
            self._dress()
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

    def _dress(self) -> None:
        """Applies palette, font and style sheet to the application, and all measures again."""
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.setStyleSheet("")  # widgets are polished once (`without_style_sheet`)
        application.setPalette(self.qpalette())
        application.setFont(enlarged_ui_font(13))
        application.setStyleSheet(
            style_sheet(self._palette, zoom.zoom(), "dark" if self.is_dark else "light")
        )
        measure_anew()  # a new style sheet can drop the fonts of widgets

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


@dataclass(frozen=True)
class Palette:
    """A complete set of colours as "#RRGGBB"; a field's name is the token's name.

    Green and sand (`accepted_*`, `bonus_*`, `series_green`) are reserved for token classes;
    blue is for actions, progress, memory and reading; vermilion and `danger*` for failures.
    """

    window: str
    raised: str
    sidebar: str
    panel: str
    hair: str
    hair2: str
    text: str
    text2: str
    text3: str
    dim: str
    fill1: str
    fill2: str
    sel: str
    code: str
    tip: str
    accent: str
    accent_fill: str
    accent_hover: str
    accent_pressed: str
    accent_tint: str
    accent_mid: str
    on_accent: str
    focus: str
    accepted_tint: str
    accepted_line: str
    accepted_hover: str
    bonus_line: str
    bonus_hover: str
    normal_mark: str
    danger: str
    danger_tint: str
    danger_border: str
    control: str
    control_border: str
    text_area: str
    slider_track: str
    segment_track: str
    segment_on: str
    map_skipped: str
    map_empty: str
    series_blue: str
    series_sky: str
    series_green: str
    series_purple: str
    series_grey: str
    series_vermilion: str


LIGHT = Palette(
    window="#FFFFFF",
    raised="#FFFFFF",
    sidebar="#F2F2F4",
    panel="#F8F8F9",
    hair="#E4E4E8",
    hair2="#D2D2D8",
    text="#1C1C1F",
    text2="#62626A",
    text3="#8A8A92",
    dim="#6F6F77",
    fill1="#F1F1F3",
    fill2="#E7E7EB",
    sel="#E0E0E5",
    code="#F6F6F8",
    tip="#FFFFFF",
    accent="#0072B2",
    accent_fill="#0072B2",
    accent_hover="#00639C",
    accent_pressed="#00547F",
    accent_tint="#E6F2FA",
    accent_mid="#8CC0DE",
    on_accent="#FFFFFF",
    focus="#2E86B8",
    accepted_tint="#C7E9E0",
    accepted_line="#00835F",
    accepted_hover="#8FD3BF",
    bonus_line="#9C8350",
    bonus_hover="#EFE7D6",
    normal_mark="#C9C9D0",
    danger="#B83B00",
    danger_tint="#FDF1EA",
    danger_border="#F1CDB8",
    control="#FFFFFF",
    control_border="#D5D5DB",
    text_area="#FFFFFF",
    slider_track="#DEDEE3",
    segment_track="#E9E9ED",
    segment_on="#FFFFFF",
    map_skipped="#E4E4E9",
    map_empty="#F1F1F4",
    series_blue="#0072B2",
    series_sky="#56B4E9",
    series_green="#009E73",
    series_purple="#B6568F",
    series_grey="#9A9AA3",
    series_vermilion="#D55E00",
)

DARK = Palette(
    window="#1D1D1F",
    raised="#2A2A2D",
    sidebar="#27272A",
    panel="#232326",
    hair="#353539",
    hair2="#48484D",
    text="#EDEDF0",
    text2="#A6A6AE",
    text3="#7B7B83",
    dim="#8B8B93",
    fill1="#2A2A2D",
    fill2="#38383C",
    sel="#3C3C41",
    code="#242427",
    tip="#2E2E32",
    accent="#5AB3E6",
    accent_fill="#1A79B2",
    accent_hover="#166FA5",
    accent_pressed="#00547F",
    accent_tint="#1C3444",
    accent_mid="#2F6488",
    on_accent="#FFFFFF",
    focus="#3F8FBF",
    accepted_tint="#17493B",
    accepted_line="#3CCBA0",
    accepted_hover="#1F6B56",
    bonus_line="#A89468",
    bonus_hover="#413B2E",
    normal_mark="#55555B",
    danger="#FF9466",
    danger_tint="#36241C",
    danger_border="#5E3A28",
    control="#3A3A3E",
    control_border="#4A4A50",
    text_area="#2C2C30",
    slider_track="#38383C",
    segment_track="#303034",
    segment_on="#5A5A60",
    map_skipped="#38383D",
    map_empty="#28282B",
    series_blue="#4FA9DC",
    series_sky="#8FD0F5",
    series_green="#2FBF95",
    series_purple="#D48BB8",
    series_grey="#82828B",
    series_vermilion="#F08447",
)

theme: Final = Theme()
color: Final = theme.color
