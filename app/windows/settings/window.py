"""SettingsWindow: the settings of the app as a whole, made from their declarations.

Changes are in force at once. What answers are made with is not here but in the panel beside each
chat; the last section says so, and takes back what was made the default there.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace
from PySide6.QtCore import QRectF, QSize, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.fields.setting_field import SettingField
from app.panels.inspector.groups import groups
from app.theme.measures import (
    set_fixed_height,
    set_margins,
    set_minimum_width,
    set_spacing,
)
from app.theme.theme import Theme
from app.theme.zoom import area_of, height_of, painter_on, width_of
from app.windows.settings import strings
from app.windows.settings.form import SettingsForm
from app.windows.side_window import SideWindow
from core.errors import SettingError
from core.events import SavedChatsListed
from core.settings import WindowSettings, declared

_SIZE_PX = (520, 752)
_PAD_PX = 24
_CONTENT_PX = _SIZE_PX[0] - 2 * _PAD_PX
_GAP_PX = 10
_FOOTER_PX = 52


class SettingsWindow(SideWindow):
    """`changed` tells a person's wish; whoever takes it shows what came of it with `show_settings`."""

    changed = Signal(str, object)  # key, value
    reset_requested = Signal()
    defaults_reset_requested = Signal()
    clear_saved_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.APP_SETTINGS, QSize(*_SIZE_PX), parent=parent)
        set_minimum_width(self, _SIZE_PX[0])
        self.reset_button = Button(theme, strings.RESET_APP_SETTINGS)
        self.defaults_button = Button(theme, strings.RESET_DEFAULTS)
        self.clear_button = Button(theme, strings.CLEAR_SAVED)
        self._saved_note = TextLabel(theme, "", 12, 17, "text2", wrap=True, width_px=_CONTENT_PX)
        self._defaults_note = TextLabel(theme, "", 12, 17, "text2", wrap=True, width_px=_CONTENT_PX)
        # The local server's are in its own window.
        shown = [group for group in groups(declared(WindowSettings)) if group.name != "server"]
        self._form = SettingsForm(theme, shown, _CONTENT_PX)
        self._form.changed.connect(self.changed)
        self._build()
        self.reset_button.clicked.connect(self.reset_requested)
        self.defaults_button.clicked.connect(self.defaults_reset_requested)
        self.clear_button.clicked.connect(self.clear_saved_requested)
        self.show_settings(WindowSettings())
        self.show_defaults(0)
        self.show_saved(None)

    def field(self, key: str) -> SettingField:
        """The field of the setting `key`. An unknown key is our bug (KeyError)."""
        return self._form.fields[key]

    def show_settings(self, settings: WindowSettings) -> None:
        """These are in force."""
        self._form.show_settings(settings)
        own = replace(settings, server=WindowSettings().server)
        self.reset_button.setEnabled(own != WindowSettings())

    def hold(self, reasons: Mapping[str, str]) -> None:
        """These cannot be changed in this build, and why."""
        self._form.hold(reasons)

    def show_error(self, key: str, error: SettingError) -> None:
        """What was wished for is not allowed."""
        self._form.show_error(key, error)

    def show_defaults(self, own: int) -> None:
        """`own` settings of answers start otherwise than Draftlight's own in new chats."""
        self._defaults_note.setText(strings.defaults_note(own))
        self.defaults_button.setEnabled(own > 0)

    def show_saved(self, saved: SavedChatsListed | None) -> None:
        """Show what the saved chats take on disk; None: unknown."""
        self._saved_note.setText(strings.saved_note(saved))
        self.clear_button.setEnabled(saved is not None and saved.files > 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))
        top = height_of(self) - _FOOTER_PX
        painter.fillRect(QRectF(0, top, width_of(self), 1), self._theme.color("hair"))
        painter.end()

    # ---- building

    def _build(self) -> None:
        page = QWidget()
        page.setAutoFillBackground(False)
        column = QVBoxLayout(page)
        set_margins(column, _PAD_PX, 20, _PAD_PX, 20)
        set_spacing(column, _GAP_PX)
        form = self._form
        form.add_title(strings.SAVED_CHATS)
        form.add(self._saved_note)
        form.add(self.clear_button)
        form.add_title(strings.NEW_CHATS)
        form.add(self._defaults_note)
        column.addWidget(form)
        row = QHBoxLayout()
        row.addWidget(self.defaults_button)
        row.addStretch(1)
        column.addLayout(row)
        column.addStretch(1)
        area = ScrollPage(self._theme, page)
        foot = QHBoxLayout()
        set_margins(foot, _PAD_PX, 0, _PAD_PX, 0)
        foot.addWidget(TextLabel(self._theme, strings.AT_ONCE, 11, 15), 1)
        foot.addWidget(self.reset_button)
        bar = QWidget()
        set_fixed_height(bar, _FOOTER_PX)
        bar.setLayout(foot)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(area, 1)
        whole.addWidget(bar)
