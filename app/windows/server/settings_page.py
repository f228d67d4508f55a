"""ServerSettingsPage: the local server's settings, its state and its key, in the server window."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.panels.inspector.groups import groups
from app.theme.measures import set_fixed_width, set_margins, set_spacing
from app.theme.theme import Theme
from app.windows.server import strings
from app.windows.settings.form import SettingsForm
from core.settings import WindowSettings, declared

_CONTENT_PX = 472
_PAGE_PAD_PX = 24


class ServerSettingsPage(QWidget):
    """Scrolls. `form` has the fields, `box` the state and the key."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        shown = [group for group in groups(declared(WindowSettings)) if group.name == "server"]
        self.form = SettingsForm(theme, shown, _CONTENT_PX, titled=False)
        self.box = ServerBox(theme, _CONTENT_PX)
        self.form.add(self.box)
        set_fixed_width(self.form, _CONTENT_PX)
        page = QWidget()
        column = QVBoxLayout(page)
        set_margins(column, _PAGE_PAD_PX, 20, _PAGE_PAD_PX, 20)
        column.addWidget(self.form)
        column.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(ScrollPage(theme, page))


class ServerBox(QWidget):
    """`show_state` after each change."""

    key_copy_requested = Signal()
    key_renewal_requested = Signal()

    def __init__(self, theme: Theme, width_px: int) -> None:
        super().__init__()
        self._state = TextLabel(theme, "", 12, 17, "text2", wrap=True, width_px=width_px)
        self._trouble = TextLabel(theme, "", 12, 17, "danger", wrap=True, width_px=width_px)
        self._trouble.hide()
        self._key_note = TextLabel(theme, strings.KEY_NOTE, 11, 15, "text2", wrap=True, width_px=width_px)
        self.copy_key = Button(theme, strings.COPY_KEY, small=True)
        self.new_key = Button(theme, strings.NEW_KEY, small=True)
        self.copy_key.clicked.connect(self.key_copy_requested)
        self.new_key.clicked.connect(self.key_renewal_requested)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        set_spacing(row, 8)
        for button in (self.copy_key, self.new_key):
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 6)
        column.addWidget(self._state)
        column.addWidget(self._trouble)
        column.addLayout(row)
        column.addWidget(self._key_note)

    @property
    def text(self) -> str:
        """How it stands, as it is shown."""
        return self._trouble.text() or self._state.text()

    @property
    def key_note(self) -> str:
        """What is said about the key."""
        return self._key_note.text()

    def show_state(self, text: str, *, bad: bool = False) -> None:
        """How the server stands; `bad`: it is wanted and is not there."""
        for label, words in ((self._state, "" if bad else text), (self._trouble, text if bad else "")):
            label.setText(words)
            label.setVisible(bool(words))

    def say_of_key(self, text: str) -> None:
        """What became of what was asked of the key."""
        self._key_note.setText(text or strings.KEY_NOTE)
