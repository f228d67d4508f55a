"""Plot: grid and labels of a chart, painted into a box in design pixels (QtCharts is GPL)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.theme import color

LABEL_PX = 10.5


class Plot:
    """Paints into `box`, whose left margin takes the labels of the grid."""

    def __init__(self, painter: QPainter, box: QRectF) -> None:
        self.painter = painter
        self.box = box

    def grid(self, y: float, label: str) -> None:
        """Paints a hairline across the box at `y` with its value at the left."""
        self.painter.setPen(QPen(color("hair"), 1))
        self.painter.drawLine(QPointF(self.box.left(), y), QPointF(self.box.right(), y))
        place = QRectF(0, y - 8, self.box.left() - 8, 16)
        font, ink = ui_font(LABEL_PX, tabular=True), color("text2")
        draw_text(self.painter, place, label, font, ink, Qt.AlignmentFlag.AlignRight)

    def at(self, across: float, up: float) -> QPointF:
        """Returns the point at these shares of the box's width and height, from its lower left corner."""
        return QPointF(
            self.box.left() + across * self.box.width(), self.box.bottom() - up * self.box.height()
        )

    def scale(self, labels: Sequence[str]) -> None:
        """Paints hairlines at equal distances from the bottom to the top of the box, one for each label."""
        for number, label in enumerate(labels):
            self.grid(self.at(0, number / (len(labels) - 1)).y(), label)

    def under(self, x: float, y: float, label: str, strong: bool = False) -> None:
        font = ui_font(LABEL_PX, 600 if strong else 400, tabular=True)
        ink = color("text" if strong else "text2")
        draw_text(self.painter, QRectF(x - 45, y, 90, 16), label, font, ink)


def above(value: float) -> float:
    """Returns a round number above `value` whose half is round, too."""
    power = 10.0 ** math.floor(math.log10(max(value, 1e-9)))
    steps = (1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    return next((power * step for step in steps if power * step >= value * 1.02), power * 10)
