"""SettingControl: the control for a setting's kind.

Integers get a spin field, numbers a slider with its value, choices a popup, booleans a switch, texts a text
area, names a text area with commas between them. Each reports a person's change as a Python value of the
setting's type, unchecked: `core.settings.assign` checks it.
"""

from __future__ import annotations

import secrets
from typing import Any

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.controls.buttons.icon_button import IconButton
from app.controls.buttons.switch import Switch
from app.controls.popup import Popup
from app.controls.slider import Slider
from app.controls.spin import Spin
from app.controls.text_area import TextArea
from app.controls.text_label import TextLabel
from app.fields import strings
from app.theme.measures import set_fixed_height, set_spacing
from app.theme.theme import Theme
from core.settings import Setting

_DECIMALS = 4
_STEPS_IF_UNDECLARED = 100


class SettingControl(QWidget):
    """`editor` gets the focus, the accessible name and the help."""

    edited = Signal(object)  # the new value, of the setting's type

    def __init__(self, setting: Setting, editor: QWidget) -> None:
        super().__init__()
        self.setting = setting
        self.editor = editor
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        set_spacing(self.row, 8)
        self.row.addWidget(editor)
        self.setFocusProxy(editor)
        editor.setAccessibleName(setting.title)
        editor.setAccessibleDescription(setting.help)
        editor.setToolTip(setting.help)

    def show_value(self, value: Any) -> None:
        """Shows `value` without reporting it."""
        raise NotImplementedError

    def _report(self, value: Any) -> None:
        self.edited.emit(value)


class _WholeNumber(SettingControl):
    def __init__(self, theme: Theme, setting: Setting) -> None:
        low, high = _bounds(setting)
        self._spin = Spin(theme, low, high, setting.step or 1)
        self._spin.set_factor(setting.factor)
        # Thousands are separated in counts, not in a seed.
        self._spin.set_grouped(bool(setting.unit))
        super().__init__(setting, self._spin)
        if setting.unit and setting.unit not in setting.title.lower().split():
            self.row.addWidget(TextLabel(theme, setting.unit, 12, 16))
        self.shuffle_button: IconButton | None = None
        if setting.random:
            self.shuffle_button = IconButton(theme, "shuffle", strings.SHUFFLE, size=QSize(26, 24))
            self.shuffle_button.clicked.connect(self._shuffle)
            self.row.addWidget(self.shuffle_button)
        self.row.addStretch(1)
        self._spin.value_changed.connect(self._take)

    def _take(self, value: float) -> None:
        self.edited.emit(round(value))

    def _shuffle(self) -> None:
        low, high = _bounds(self.setting)
        self._spin.set_value(int(low) + secrets.randbelow(int(high - low) + 1))

    def show_value(self, value: Any) -> None:
        self._spin.blockSignals(True)
        self._spin.set_value(value)
        self._spin.blockSignals(False)


class _Number(SettingControl):
    def __init__(self, theme: Theme, setting: Setting) -> None:
        low, high = _bounds(setting)
        step = setting.step or (high - low) / _STEPS_IF_UNDECLARED
        low = low + step if setting.minimum_open else low
        self._slider = Slider(theme, low, high, step)
        super().__init__(setting, self._slider)
        self._spin = _Typed(theme, low, high, step)
        self._spin.setAccessibleName(setting.title)
        self._spin.setAccessibleDescription(setting.help)
        self.row.addWidget(self._spin)
        self._slider.value_changed.connect(self._take)
        self._spin.value_changed.connect(self._take)

    def show_value(self, value: Any) -> None:
        for part in (self._slider, self._spin):
            part.blockSignals(True)
            part.set_value(value)
            part.blockSignals(False)

    def _take(self, value: float) -> None:
        self.show_value(value)
        self.edited.emit(value)


class _Typed(Spin):
    """Any number within the slider's bounds, also between its steps, without trailing zeros."""

    def __init__(self, theme: Theme, low: float, high: float, step: float) -> None:
        super().__init__(theme, low, high, step, _DECIMALS)

    def textFromValue(self, value: float) -> str:
        return f"{value:g}"


class _Choice(SettingControl):
    def __init__(self, theme: Theme, setting: Setting) -> None:
        options = [(choice, setting.labels.get(choice, choice)) for choice in setting.choices]
        self._popup = Popup(theme, options)
        super().__init__(setting, self._popup)
        self._popup.value_changed.connect(self._report)

    def show_value(self, value: Any) -> None:
        self._popup.blockSignals(True)
        self._popup.set_value(value)
        self._popup.blockSignals(False)
        self._popup.update()


class _OnOff(SettingControl):
    def __init__(self, theme: Theme, setting: Setting) -> None:
        self._switch = Switch(theme)
        super().__init__(setting, self._switch)
        self.row.addStretch(1)
        self._switch.toggled.connect(self._report)

    def show_value(self, value: Any) -> None:
        self._switch.blockSignals(True)
        self._switch.setChecked(value)
        self._switch.blockSignals(False)
        self._switch.update()


class _Text(SettingControl):
    def __init__(self, theme: Theme, setting: Setting) -> None:
        self._area = TextArea(theme)
        set_fixed_height(self._area, setting.lines * 17 + 16)
        # One line has no space for the help, which is in the tooltip.
        self._area.set_placeholder(setting.help if setting.lines > 1 else setting.empty)
        super().__init__(setting, self._area)
        self._area.value_changed.connect(self._report)

    def show_value(self, value: Any) -> None:
        self._area.blockSignals(True)
        self._area.set_value(value)
        self._area.blockSignals(False)


class _Names(_Text):
    def show_value(self, value: Any) -> None:
        # A comma or space at the end stays while typing.
        if tuple(value) != _names(self._area.value):
            super().show_value(", ".join(value))

    def _report(self, value: Any) -> None:
        self.edited.emit(_names(value))


_CONTROLS: dict[str, type[_WholeNumber | _Number | _Choice | _OnOff | _Text]] = {
    "integer": _WholeNumber,
    "number": _Number,
    "choice": _Choice,
    "switch": _OnOff,
    "text": _Text,
    "names": _Names,
}


def control_for(theme: Theme, setting: Setting) -> SettingControl:
    """Returns the control for the setting's kind."""
    return _CONTROLS[setting.kind](theme, setting)


def _names(text: str) -> tuple[str, ...]:
    """Splits at commas; an empty name is kept because its position counts."""
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()


def _bounds(setting: Setting) -> tuple[float, float]:
    if setting.minimum is None or setting.maximum is None:
        raise ValueError(f"{setting.key} has no bounds, so no control can be made for it.")
    return setting.minimum, setting.maximum
