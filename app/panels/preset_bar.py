"""PresetBar: the chat's preset and the commands for presets, above the settings."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.controls.buttons import IconButton, in_menu, on_click
from app.controls.choices import Popup
from app.controls.sheets import ask_name
from app.controls.text_label import TextLabel
from app.panels import strings
from app.panels.section import PADDING_PX
from app.richtext.canvas_menu import pop_up
from app.theme.measures import row_of, set_fixed_height

HEIGHT_PX = 44
_NONE = ""
# Not a possible name: names are not only spaces.
_CUSTOM = " "


class PresetState(Struct, frozen=True):
    """All presets, the person's own included, and the chat's state.

    `current` is the preset with exactly the chat's settings, empty for none. `custom`: no preset matches,
    and the settings are not the defaults. `last` is the preset that was chosen last for the chat.
    """

    names: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    current: str = _NONE
    custom: bool = False
    last: str = _NONE


class PresetBar(QWidget):
    """Shows the state set by `show_presets` and emits commands."""

    preset_chosen = Signal(str)  # its name; empty for the defaults
    save_requested = Signal(str)  # under this name
    update_requested = Signal(str)  # let it have the chat's settings
    rename_requested = Signal(str, str)  # its name, the new one
    delete_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = PresetState()
        self.popup = Popup(((_NONE, strings.NO_PRESET),))
        self.popup.setAccessibleName(strings.PRESET)
        self.save_button = IconButton("save", strings.SAVE_PRESET_AS, size=QSize(26, 24))
        self.more_button = IconButton("more", strings.PRESET_ACTIONS, size=QSize(26, 24))
        row_of(
            TextLabel(strings.PRESET, 12, 16, "text2"),
            6,
            (self.popup, 1),
            self.save_button,
            self.more_button,
            gap=4,
            margins=(PADDING_PX, 0, PADDING_PX - 6, 0),
            parent=self,
        )
        set_fixed_height(self, HEIGHT_PX)
        self.popup.activated.connect(self._choose)
        on_click((self.save_button, self._ask_name), (self.more_button, self._show_menu))
        self.show_presets(PresetState())

    def show_presets(self, state: PresetState) -> None:
        self._state = state
        self.popup.blockSignals(True)
        self.popup.clear()
        if state.custom:
            self.popup.addItem(strings.CUSTOM_PRESET, _CUSTOM)
        self.popup.addItem(strings.NO_PRESET, _NONE)
        for name in state.names:
            self.popup.addItem(name, name)
        here = state.current if state.current in state.names else _NONE
        self.popup.set_value(_CUSTOM if state.custom else here)
        self.popup.blockSignals(False)
        self.popup.setToolTip(self.popup.currentText())
        self.save_button.setVisible(state.custom)

    def menu(self) -> QMenu:
        """Returns the menu of the commands that are possible now."""
        state, menu = self._state, QMenu(self)
        current, last = state.current, state.last
        self._add(menu, strings.SAVE_PRESET_AS, self._ask_name, state.custom)
        if last in state.own and last != current:
            self._add(menu, strings.update_preset(last), lambda: self.update_requested.emit(last))
        if current in state.own:
            self._add(menu, strings.RENAME_PRESET, self._ask_new_name)
            self._add(menu, strings.DELETE_PRESET, lambda: self.delete_requested.emit(current))
        return menu

    def _show_menu(self) -> None:
        pop_up(self.menu(), self.more_button.mapToGlobal(self.more_button.rect().bottomLeft()))

    def _choose(self, row: int) -> None:
        if self.popup.itemData(row) != _CUSTOM:
            self.preset_chosen.emit(str(self.popup.itemData(row)))

    def _ask_name(self) -> None:
        ask_name(self, strings.SAVE_PRESET_TITLE, strings.PRESET_NAME, "", self.save_requested.emit)

    def _ask_new_name(self) -> None:
        current = self._state.current

        def rename(name: str) -> None:
            if name != current:
                self.rename_requested.emit(current, name)

        ask_name(self, strings.RENAME_PRESET_TITLE, strings.PRESET_NAME, current, rename)

    @staticmethod
    def _add(menu: QMenu, words: str, slot: Callable[[], object], enabled: bool = True) -> None:
        action = menu.addAction(in_menu(words))
        action.setEnabled(enabled)
        action.triggered.connect(lambda checked=False: slot())
