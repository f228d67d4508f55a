"""Chart: a title, a line about it, and a drawing between axes; the base of the Lab's charts.

The figures behind a drawing are its accessible description, so that they can be heard. Colours are
the series colours that mean nothing else; lines differ in their dashes, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px_size, width_of
from app.windows.lab import strings

HEAD_PX = 46
AXIS_PX = 40
LABEL_PX = 10.5
# Colour and dashes, by number; green and amber are token classes, vermilion is failure.
STYLES: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("series_blue", ()),
    ("text", (3.0, 1.5)),
    ("series_sky", (5.0, 2.5)),
    ("series_purple", (5.0, 2.0, 1.0, 2.0)),
    ("series_grey", (1.5, 1.5)),
    ("text2", (8.0, 2.0)),
)
PLAIN_STYLE: tuple[str, tuple[float, ...]] = ("series_grey", (1.5, 1.5))


class Chart(QWidget):
    """Subclasses give `_paint_chart(painter, box)`, `_has_data` and `_described()`."""

    def __init__(self, theme: Theme, title: str, says: str, foot_px: int = 40, right_px: int = 10) -> None:
        super().__init__()
        self._theme = theme
        self._title = title
        self._says = says
        self._foot_px = foot_px
        self._right_px = right_px
        self.setAccessibleName(title)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    @property
    def has_data(self) -> bool:
        """Whether there is anything to draw."""
        return False

    def refresh(self) -> None:
        """What is shown has changed."""
        self.setAccessibleDescription(self._described() if self.has_data else strings.EMPTY)
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(320, 300))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(240, 240))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = Qt.AlignmentFlag.AlignLeft
        color = self._theme.color
        width = width_of(self)
        draw_text(painter, QRectF(0, 0, width, 18), self._title, ui_font(13.5, 600), color("text"), left)
        draw_text(painter, QRectF(0, 19, width, 15), self._says, ui_font(11), color("text2"), left)
        box = QRectF(
            AXIS_PX,
            HEAD_PX + 8,
            max(10, width - AXIS_PX - self._right_px),
            max(10, height_of(self) - HEAD_PX - 8 - self._foot_px),
        )
        if self.has_data:
            self._paint_chart(painter, box)
        else:
            draw_text(painter, box, strings.EMPTY, ui_font(12), color("text2"))

    # ---- for subclasses

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        raise NotImplementedError

    def _described(self) -> str:
        raise NotImplementedError

    def _line(self, painter: QPainter, box: QRectF, y: float, label: str) -> None:
        """A hairline across at `y`, with its value at the left."""
        painter.setPen(QPen(self._theme.color("hair"), 1))
        painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        place = QRectF(0, y - 8, box.left() - 8, 16)
        ink, font = self._theme.color("text2"), ui_font(LABEL_PX, tabular=True)
        draw_text(painter, place, label, font, ink, Qt.AlignmentFlag.AlignRight)

    def _under(self, painter: QPainter, x: float, y: float, label: str, strong: bool = False) -> None:
        """A label centred under `x`."""
        font = ui_font(LABEL_PX, 600 if strong else 400, tabular=True)
        ink = self._theme.color("text" if strong else "text2")
        draw_text(painter, QRectF(x - 45, y, 90, 16), label, font, ink)


def pen_of(theme: Theme, style: tuple[str, tuple[float, ...]], width_px: float = 1.6) -> QPen:
    """The pen of a style."""
    name, dashes = style
    pen = QPen(QColor(theme.color(name)), width_px)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    if dashes:
        pen.setDashPattern(list(dashes))
    return pen


def above(value: float) -> float:
    """A round number above `value`, of which the half is round, too."""
    power = 10.0 ** math.floor(math.log10(max(value, 1e-9)))
    steps = (1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    return next((power * step for step in steps if power * step >= value * 1.02), power * 10)


def spread(wanted: Sequence[float], apart_px: float, low: float, high: float) -> list[float]:
    """Places near `wanted`, at least `apart_px` from each other, between `low` and `high` if they fit."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    found = list(wanted)
    at = low - apart_px
    for number in order:
        at = found[number] = max(found[number], at + apart_px)
    over = at - high
    at = high + apart_px
    for number in reversed(order):
        if over <= 0:
            break
        at = found[number] = min(found[number], at - apart_px)
    return found
