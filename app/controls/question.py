"""Question: a dialog over a window that asks before a command runs.

`open()` returns at once; `chosen` reports the answer. Escape and closing cancel. Cancel has the first focus,
so that Return alone changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button, Kind
from app.controls.text_label import TextLabel
from app.theme.measures import add_gap, set_margins, set_spacing
from app.theme.theme import Theme

_WIDTH_PX = 420
_MARGIN_PX = 20


class Question(QDialog):
    """`answers` are the value, text and kind of each button after `cancel`.

    Deletes itself after the answer.
    """

    chosen = Signal(str)  # the value; not emitted on Cancel

    def __init__(
        self,
        theme: Theme,
        title: str,
        detail: str,
        cancel: str,
        answers: Sequence[tuple[str, str, Kind]],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(detail)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        inner_px = _WIDTH_PX - 2 * _MARGIN_PX
        self.title = TextLabel(theme, title, 15, 20, "text", weight=600, wrap=True, width_px=inner_px)
        self.detail = TextLabel(theme, detail, 12.5, 18, wrap=True, width_px=inner_px)
        self.cancel = Button(theme, cancel)
        self.cancel.clicked.connect(self.reject)
        self.buttons = {value: Button(theme, words, kind) for value, words, kind in answers}
        column = QVBoxLayout(self)
        set_margins(column, _MARGIN_PX, 18, _MARGIN_PX, 16)
        set_spacing(column, 8)
        column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        column.addWidget(self.title)
        column.addWidget(self.detail)
        add_gap(column, 8)
        row = QHBoxLayout()
        set_spacing(row, 8)
        row.addStretch(1)
        row.addWidget(self.cancel)
        for value, button in self.buttons.items():
            button.clicked.connect(lambda checked, value=value: self._choose(value))
            row.addWidget(button)
        column.addLayout(row)
        self.cancel.setFocus()

    def _choose(self, value: str) -> None:
        self.accept()
        self.chosen.emit(value)
