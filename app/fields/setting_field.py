"""SettingField: a setting's title, control, help and error; FieldColumn: several of them.

The control depends on the setting's kind: integers get a spin field, numbers a slider with its value, choices
a popup, booleans a switch, texts a text area, names a text area with commas between them. Each reports a
person's change as a Python value of the setting's type, unchecked: `core.settings.assign` checks it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Any

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons import IconButton
from app.controls.choices import Popup, Switch
from app.controls.numbers import Slider, Spin
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.theme.measures import set_fixed_height, set_margins, set_minimum_height, set_spacing
from core.settings import Setting

_SHUFFLE = "Shuffle: draw another seed"
_STEPS_IF_UNDECLARED = 100
_Report = Callable[[Any], object]


class SettingControl(QWidget):
    """`editor` gets the focus, the accessible name and the help. `report` gets a person's new value, of the
    setting's type.
    """

    editor_px = 0  # the height of an editor that is higher than a row

    def __init__(self, setting: Setting, editor: QWidget, report: _Report) -> None:
        super().__init__()
        self.setting = setting
        self.editor = editor
        self.report = report
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        set_spacing(self.row, 8)
        self.row.addWidget(editor)
        self.setFocusProxy(editor)
        editor.setAccessibleName(setting.title)
        editor.setAccessibleDescription(setting.help)
        editor.setToolTip(setting.help)

    def add_unit(self) -> None:
        """Adds the setting's unit to the row, unless its title has it."""
        if self.setting.unit and self.setting.unit not in self.setting.title.lower().split():
            label = TextLabel(self.setting.unit, 12, 16)
            label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
            self.row.addWidget(label)

    def show_value(self, value: Any) -> None:
        """Shows `value` without reporting it."""
        raise NotImplementedError


class _WholeNumber(SettingControl):
    def __init__(self, setting: Setting, report: _Report) -> None:
        low, high = _bounds(setting)
        self._spin = Spin(low, high, setting.step or 1)
        self._spin.set_factor(setting.factor)
        # Thousands are separated in counts, not in a seed.
        self._spin.set_grouped(bool(setting.unit))
        super().__init__(setting, self._spin, report)
        self.add_unit()
        self.refused = self._spin.refused
        self.shuffle_button: IconButton | None = None
        if setting.random:
            self.shuffle_button = IconButton("shuffle", _SHUFFLE, size=QSize(26, 24))
            self.shuffle_button.clicked.connect(self._shuffle)
            self.row.addWidget(self.shuffle_button)
        self.row.addStretch(1)
        self._spin.value_changed.connect(lambda value: report(round(value)))

    def _shuffle(self) -> None:
        low, high = _bounds(self.setting)
        self._spin.set_value(int(low) + secrets.randbelow(int(high - low) + 1))

    def show_value(self, value: Any) -> None:
        with QSignalBlocker(self._spin):
            self._spin.set_value(value)


class _Number(SettingControl):
    def __init__(self, setting: Setting, report: _Report) -> None:
        low, high = _bounds(setting)
        step = setting.step or (high - low) / _STEPS_IF_UNDECLARED
        self._slider = Slider(low + step if setting.minimum_open else low, high, step)
        super().__init__(setting, self._slider, report)
        self._spin = Spin(low, high, step, whole=False, open_minimum=setting.minimum_open)
        self.refused = self._spin.refused
        self._spin.setAccessibleName(setting.title)
        self._spin.setAccessibleDescription(setting.help)
        self.row.addWidget(self._spin)
        self.add_unit()
        self._slider.value_changed.connect(self._take)
        self._spin.value_changed.connect(self._take)

    def show_value(self, value: Any) -> None:
        for part in (self._slider, self._spin):
            with QSignalBlocker(part):
                part.set_value(value)

    def _take(self, value: float) -> None:
        self.show_value(value)
        self.report(value)


class _Choice(SettingControl):
    def __init__(self, setting: Setting, report: _Report) -> None:
        options = [(choice, setting.labels.get(choice, choice)) for choice in setting.choices]
        self._popup = Popup(options)
        self._left_out: Collection[str] = ()
        super().__init__(setting, self._popup, report)
        self._popup.value_changed.connect(report)

    def show_value(self, value: Any) -> None:
        self._show(str(value))

    def leave_out(self, choices: Collection[str]) -> None:
        """Offers all choices but these; a chosen one of them stays until another is chosen."""
        self._left_out = choices
        self._show(self._popup.value)

    def _show(self, value: str) -> None:
        setting = self.setting
        options = [
            (choice, setting.labels.get(choice, choice))
            for choice in setting.choices
            if choice not in self._left_out or choice == value
        ]
        self._popup.show_options(options, value)


class _OnOff(SettingControl):
    def __init__(self, setting: Setting, report: _Report) -> None:
        self._switch = Switch()
        super().__init__(setting, self._switch, report)
        self.row.addStretch(1)
        self._switch.toggled.connect(report)

    def show_value(self, value: Any) -> None:
        with QSignalBlocker(self._switch):
            self._switch.setChecked(value)


class _Text(SettingControl):
    def __init__(self, setting: Setting, report: _Report) -> None:
        self._area = TextArea()
        self.editor_px = setting.lines * 17 + 16
        set_fixed_height(self._area, self.editor_px)
        # One line has no space for the help, which is in the tooltip.
        self._area.setPlaceholderText(setting.help if setting.lines > 1 else setting.empty)
        super().__init__(setting, self._area, report)
        self._area.value_changed.connect(lambda text: self._take(text))

    def _take(self, text: str) -> None:
        self.report(text)

    def show_value(self, value: Any) -> None:
        with QSignalBlocker(self._area):
            self._area.set_value(value)


class _Names(_Text):
    def show_value(self, value: Any) -> None:
        # A comma or space at the end stays while typing.
        if tuple(value) != _names(self._area.value):
            super().show_value(", ".join(value))

    def _take(self, text: str) -> None:
        self.report(_names(text))


_CONTROLS: dict[str, type[_WholeNumber | _Number | _Choice | _OnOff | _Text]] = {
    "integer": _WholeNumber,
    "number": _Number,
    "choice": _Choice,
    "switch": _OnOff,
    "text": _Text,
    "names": _Names,
}


def _names(text: str) -> tuple[str, ...]:
    """Splits at commas; an empty name is kept because its position counts."""
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()


def _bounds(setting: Setting) -> tuple[float, float]:
    if setting.minimum is None or setting.maximum is None:
        raise ValueError(f"{setting.key} has no bounds, so no control can be made for it.")
    return setting.minimum, setting.maximum


LABEL_PX = 92
GAP_PX = 10
ROW_PX = 24
CONTENT_PX = 271  # the inspector's width without its hairline and the sections' padding
_LINE_GAP_PX = 4


class SettingField(QWidget):
    """`labelled` False hides the label and gives the control the full width. `terse`: notes are tooltips.

    `content_px` is the width of the field, which wrapped notes need.
    """

    edited = Signal(str, object)  # the setting's key, the new value

    def __init__(
        self,
        setting: Setting,
        labelled: bool = True,
        *,
        terse: bool = False,
        label_px: int = LABEL_PX,
        content_px: int = CONTENT_PX,
    ) -> None:
        super().__init__()
        self.setting = setting
        self.control: SettingControl = _CONTROLS[setting.kind](setting, self._take)
        self._terse = terse
        self._held = self._note_of_value = self._source = self._refusal = ""
        if isinstance(self.control, _WholeNumber | _Number):
            self.control.refused.connect(self._show_refusal)
        indent = label_px + GAP_PX if labelled else 0
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        set_spacing(row, GAP_PX)
        self._label: TextLabel | None = None
        if labelled:
            label = self._label = TextLabel(setting.title, 12, 16, wrap=True, width_px=label_px)
            label.setToolTip(setting.help)
            label.setBuddy(self.control.editor)
            row.addWidget(label, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.control, 1)
        set_minimum_height(self.control, max(ROW_PX, self.control.editor_px))
        line_px = content_px - indent
        self._note = TextLabel("", 11, 15, wrap=True, width_px=line_px)
        self._error = TextLabel("", 11, 15, "danger", wrap=True, width_px=line_px)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        set_spacing(layout, _LINE_GAP_PX)
        layout.addLayout(row)
        for line in (self._note, self._error):
            inset = QHBoxLayout()
            set_margins(inset, indent, 0, 0, 0)
            inset.addWidget(line)
            inset.addStretch(1)  # in a wide window the note stays under its control
            layout.addLayout(inset)
            line.hide()

    @property
    def error(self) -> str:
        """The error of the shown value; empty without one."""
        return self._error.text()

    @property
    def note(self) -> str:
        """The sentence under the control; may be empty."""
        return self._note.text()

    def show_value(self, value: Any) -> None:
        """Shows a valid value and its note."""
        self.control.show_value(value)
        self.clear_error()
        self._show_note(value)

    def show_error(self, message: str, hint: str = "") -> None:
        self._error.setText(message)
        self._error.setToolTip(hint)
        self._error.setVisible(True)
        self._describe()

    def clear_error(self) -> None:
        self._error.setText("")
        self._error.setVisible(False)
        self._describe()

    @property
    def held(self) -> str:
        """Why the setting cannot be changed; empty if it can."""
        return self._held

    def hold(self, reason: str) -> None:
        """Disables the control while there is a `reason`, which replaces the note."""
        if reason == self._held:
            return
        self._held = reason
        self.control.setEnabled(not reason)
        self._say_note()

    def leave_out(self, choices: Collection[str]) -> None:
        """Do not offer these values of a choice, unless one of them is chosen."""
        assert isinstance(self.control, _Choice)
        self.control.leave_out(choices)

    def _describe(self) -> None:
        note = self._note.text() if self._terse else ""
        parts = filter(None, (self.setting.help, note, self._error.text()))
        self.control.editor.setAccessibleDescription(" ".join(parts))

    def show_source(self, source: str) -> None:
        """Shows the source of the value in the note; empty shows none."""
        if source != self._source:
            self._source = source
            self._say_note()

    def _take(self, value: Any) -> None:
        self._show_note(value)
        self.edited.emit(self.setting.key, value)

    def _show_refusal(self, reason: str) -> None:
        """The text in the number's field was refused; empty: it was accepted."""
        if reason:
            self.show_error(reason)
        elif self.error == self._refusal:
            self.clear_error()
        self._refusal = reason

    def _show_note(self, value: Any) -> None:
        self._note_of_value = self.setting.notes.get(str(value), "")
        self._say_note()

    def _say_note(self) -> None:
        note = self._held or " ".join(filter(None, (self._note_of_value, self._source)))
        self._note.setText(note)
        self._note.setVisible(bool(note) and not self._terse)
        if self._terse:
            self.setToolTip(note)
            self._describe()


class FieldColumn(QWidget):
    """`make` returns the field of a setting."""

    def __init__(
        self, settings: Sequence[Setting], make: Callable[[Setting], SettingField], spacing_px: int
    ) -> None:
        super().__init__()
        self.settings = tuple(settings)
        self._make = make
        self._filled = False
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        set_spacing(self._layout, spacing_px)

    def fill(self) -> bool:
        """Makes the fields; returns whether they were missing."""
        if self._filled:
            return False
        self._filled = True
        for setting in self.settings:
            self._layout.addWidget(self._make(setting))
        return True
