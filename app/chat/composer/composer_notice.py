"""ComposerNotice: one sentence inside the composer about what is written, with ways out as buttons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QAccessible, QAccessibleEvent, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.icons import icon_pixmap
from app.theme.measures import set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, ratio_of

Way = tuple[str, Callable[[], object]]


class ComposerNotice(QWidget):
    """Hidden while there is nothing to say."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._labels: tuple[str, ...] = ()
        self._ways: list[Way] = []
        self._text = TextLabel(theme, "", 12, 17, "text", tabular=True, parent=self)
        self._buttons: list[Button] = []
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        set_spacing(self._row, 6)
        column = QVBoxLayout(self)
        set_margins(column, 34, 9, 12, 9)
        set_spacing(column, 7)
        column.addWidget(self._text)
        column.addLayout(self._row)
        self._row.addStretch(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVisible(False)
        theme.changed.connect(self.update)

    @property
    def text(self) -> str:
        """What it says; empty while hidden."""
        return self._text.text()

    @property
    def buttons(self) -> tuple[Button, ...]:
        """The ways out, from left to right."""
        return tuple(self._buttons)

    def show_notice(self, text: str, ways: Sequence[Way]) -> None:
        """Say `text`, with a button for each way: its label and what it does. Empty hides it.

        Buttons whose labels stay are kept, so that none goes away under a finger.
        """
        news = text != self.text
        self._text.setText(text)
        self._ways = list(ways)
        if tuple(label for label, _ in ways) != self._labels:
            self._rebuild()
        self.setVisible(bool(text))
        self.setAccessibleName(text)
        if text and news:
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), 8, color("danger_tint"), color("danger_border"))
        icon = icon_pixmap("warn", color("danger"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(11, 10.5), icon)

    def _rebuild(self) -> None:
        for button in self._buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._labels = tuple(label for label, _ in self._ways)
        self._buttons = [Button(self._theme, label, "plain", True, self) for label in self._labels]
        for place, button in enumerate(self._buttons):
            self._row.insertWidget(place, button, 0, Qt.AlignmentFlag.AlignLeft)
            button.clicked.connect(lambda checked=False, place=place: self._ways[place][1]())
            button.show()
