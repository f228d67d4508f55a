"""ProblemBar: what could not be done and what to do instead, above the list until it is dismissed."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.chat import strings as app_strings
from app.controls.buttons.icon_button import IconButton
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.measures import set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on


class ProblemBar(QWidget):
    """Hidden while there is nothing to say."""

    dismissed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = TextLabel(theme, "", 12, 16, "text", weight=500, wrap=True)
        self._hint = TextLabel(theme, "", 12, 16, wrap=True)
        self.close_button = IconButton(theme, "x", app_strings.CLOSE_BANNER)
        self.close_button.clicked.connect(self.dismissed)
        words = QVBoxLayout()
        set_spacing(words, 2)
        words.addWidget(self._text)
        words.addWidget(self._hint)
        row = QHBoxLayout(self)
        set_margins(row, 20, 16, 16, 10)
        row.addLayout(words, 1)
        row.addWidget(self.close_button)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """All that it says."""
        return " ".join(part for part in (self._text.text(), self._hint.text()) if part)

    def show_problem(self, problem: str, hint: str) -> None:
        """Say it; empty hides the bar."""
        self._text.setText(problem)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self.setAccessibleName(self.text)
        self.setVisible(bool(problem))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = area_of(self).adjusted(8, 8, -8, -2)
        draw_box(painter, box, 9, self._theme.color("danger_tint"), self._theme.color("danger_border"))
