"""SettingField: a setting's title, control, help and error; FieldColumn: several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.text_label import TextLabel
from app.fields.setting_control import control_for
from app.theme.measures import set_margins, set_spacing, set_strut
from app.theme.theme import Theme
from core.settings import Setting

LABEL_PX = 92
GAP_PX = 10
ROW_PX = 24
CONTENT_PX = 271  # the inspector's width without its hairline and the sections' padding
_LINE_GAP_PX = 4


class SettingField(QWidget):
    """`labelled` False hides the label and gives the control the full width.

    `content_px` is the width of the field, which wrapped notes need.
    """

    edited = Signal(str, object)  # the setting's key, the new value

    def __init__(
        self,
        theme: Theme,
        setting: Setting,
        labelled: bool = True,
        *,
        label_px: int = LABEL_PX,
        content_px: int = CONTENT_PX,
    ) -> None:
        super().__init__()
        self.setting = setting
        self.control = control_for(theme, setting)
        self.control.edited.connect(self._take)
        self._held = self._unused = self._note_of_value = self._source = ""
        indent = label_px + GAP_PX if labelled else 0
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        set_spacing(row, GAP_PX)
        self._label: TextLabel | None = None
        if labelled:
            label = self._label = TextLabel(theme, setting.title, 12, 16, wrap=True, width_px=label_px)
            label.setToolTip(setting.help)
            label.setBuddy(self.control.editor)
            row.addWidget(label, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.control, 1)
        set_strut(row, ROW_PX)
        line_px = content_px - indent
        self._note = TextLabel(theme, "", 11, 15, wrap=True, width_px=line_px)
        self._error = TextLabel(theme, "", 11, 15, "danger", wrap=True, width_px=line_px)
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
        """Shows why the value is refused."""
        self._error.setText(message)
        self._error.setToolTip(hint)
        self._error.setVisible(True)
        self._describe()

    def clear_error(self) -> None:
        """Hides the error."""
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
        self._enable()
        self._say_note()

    @property
    def unused(self) -> str:
        """Why the setting has no effect with the other settings; empty if it has one."""
        return self._unused

    def set_unused(self, reason: str) -> None:
        """Marks the setting as without effect while there is a `reason`, which its tooltip shows."""
        if reason == self._unused:
            return
        self._unused = reason
        self._enable()
        self.setToolTip(reason)
        if self._label is not None:
            self._label.setEnabled(not reason)
            self._label.setToolTip(reason or self.setting.help)
        self._describe()

    def _enable(self) -> None:
        self.control.setEnabled(not (self._held or self._unused))

    def _describe(self) -> None:
        parts = filter(None, (self.setting.help, self._unused, self._error.text()))
        self.control.editor.setAccessibleDescription(" ".join(parts))

    def show_source(self, source: str) -> None:
        """Shows the source of the value in the note; empty shows none."""
        if source != self._source:
            self._source = source
            self._say_note()

    def _take(self, value: Any) -> None:
        self._show_note(value)
        self.edited.emit(self.setting.key, value)

    def _show_note(self, value: Any) -> None:
        self._note_of_value = self.setting.notes.get(str(value), "")
        self._say_note()

    def _say_note(self) -> None:
        note = self._held or " ".join(filter(None, (self._note_of_value, self._source)))
        self._note.setText(note)
        self._note.setVisible(bool(note))


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
