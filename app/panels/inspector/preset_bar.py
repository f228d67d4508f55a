"""PresetBar: above the settings: which preset the chat has, taking another, saving and deleting one's own."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QInputDialog, QWidget

from app.controls.buttons.button import Button
from app.controls.popup import Popup
from app.controls.text_label import TextLabel
from app.panels.inspector import strings
from app.panels.inspector.section import PADDING_PX
from app.theme.theme import Theme

HEIGHT_PX = 44
_NONE = ""


class PresetBar(QWidget):
    """Shows what it is told by `show_presets`, and says what is wanted."""

    preset_chosen = Signal(str)  # its name; empty for the defaults
    save_requested = Signal(str)  # under this name
    delete_requested = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._own: frozenset[str] = frozenset()
        self._current = _NONE
        self.popup = Popup(theme, ((_NONE, strings.NO_PRESET),))
        self.popup.setAccessibleName(strings.PRESET)
        self.save_button = Button(theme, strings.SAVE_PRESET, "link", True)
        self.delete_button = Button(theme, strings.DELETE_PRESET, "link", True)
        row = QHBoxLayout(self)
        row.setContentsMargins(PADDING_PX, 0, PADDING_PX, 0)
        row.setSpacing(4)
        row.addWidget(TextLabel(theme, strings.PRESET, 12, 16, "text2"))
        row.addSpacing(6)
        row.addWidget(self.popup, 1)
        row.addWidget(self.save_button)
        row.addWidget(self.delete_button)
        self.setFixedHeight(HEIGHT_PX)
        self.popup.activated.connect(lambda index: self.preset_chosen.emit(self.popup.value))
        self.save_button.clicked.connect(self._ask_name)
        self.delete_button.clicked.connect(lambda: self.delete_requested.emit(self._current))
        self.show_presets((), frozenset(), _NONE, custom=False)

    def show_presets(self, names: Sequence[str], own: frozenset[str], current: str, *, custom: bool) -> None:
        """All there are, a person's own among them, and which the chat has; `custom`: none, and not the
        defaults either."""
        self._own, self._current = own, current
        self.popup.blockSignals(True)
        self.popup.clear()
        self.popup.addItem(strings.CUSTOM_PRESET if custom else strings.NO_PRESET, _NONE)
        for name in names:
            self.popup.addItem(name, name)
        self.popup.set_value(current if current in names else _NONE)
        self.popup.blockSignals(False)
        self.save_button.setVisible(custom)
        self.delete_button.setVisible(current in own)

    def _ask_name(self) -> None:
        name, given = QInputDialog.getText(self, strings.SAVE_PRESET_TITLE, strings.PRESET_NAME)
        if given and name.strip():
            self.save_requested.emit(" ".join(name.split()))
