"""LineChart: a curve for each drafter, named at its end: shares by place in the draft, speeds by turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from app.controls.shapes import draw_text
from app.gauges.figures import percent, speed
from app.session.lab.figures import Curve
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.windows.lab import strings
from app.windows.lab.chart import LABEL_PX, PLAIN_STYLE, STYLES, Chart, above, pen_of, spread

_FOOT_PX, _RIGHT_PX = 44, 118
_SAMPLE_PX = 16
_APART_PX = 15.0
_TICK_PX = 20.0


class LineChart(Chart):
    """`top` of None follows the values; `figure` writes one."""

    def __init__(
        self,
        theme: Theme,
        title: str,
        says: str,
        across: str,
        figure: Callable[[float], str],
        top: float | None,
    ) -> None:
        self._curves: Sequence[Curve] = ()
        self._across = across
        self._figure = figure
        self._fixed_top = top
        super().__init__(theme, title, says, _FOOT_PX, _RIGHT_PX)

    def show_curves(self, curves: Sequence[Curve]) -> None:
        """These; drafters keep the styles of their order."""
        self._curves = [curve for curve in curves if curve.points]
        self.refresh()

    @property
    def has_data(self) -> bool:
        return bool(self._curves)

    def _described(self) -> str:
        return "; ".join(
            strings.curve_described(_name(curve), [f"{x} {self._figure(y)}" for x, y in curve.points])
            for curve in self._curves
        )

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        last = max(x for curve in self._curves for x, _ in curve.points)
        top = self._fixed_top or above(max(y for curve in self._curves for _, y in curve.points))
        for part in (0.0, 0.5, 1.0):
            label = self._figure(top * part) if self._fixed_top else f"{top * part:g}"
            self._line(painter, box, box.bottom() - part * box.height(), label)
        every = max(1, math.ceil(last * _TICK_PX / box.width()))
        for x in range(1, last + 1, every):
            self._under(painter, self._x(box, x, last), box.bottom() + 6, str(x))
        place = QRectF(box.left(), box.bottom() + 23, box.width(), 16)
        ink = self._theme.color("text2")
        draw_text(painter, place, self._across, ui_font(11), ink, Qt.AlignmentFlag.AlignLeft)
        ends = []
        for number, curve in enumerate(self._curves):
            points = [
                QPointF(self._x(box, x, last), box.bottom() - y / top * box.height()) for x, y in curve.points
            ]
            pen = self._pen(number, curve)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(QPolygonF(points))
            painter.setPen(QPen(self._theme.color("window"), 1.2))
            painter.setBrush(pen.color())
            painter.drawEllipse(points[-1], 2.8, 2.8)
            ends.append(points[-1])
        self._paint_names(painter, box, ends)

    def _paint_names(self, painter: QPainter, box: QRectF, ends: list[QPointF]) -> None:
        """Beside the ends; where curves end close together, one below the other."""
        tops = spread([end.y() for end in ends], _APART_PX, box.top(), box.bottom())
        best = max(self._curves, key=lambda curve: curve.points[-1][1])
        for number, (curve, y) in enumerate(zip(self._curves, tops)):
            strong = curve is best and not curve.plain
            font = ui_font(LABEL_PX + 0.5, 600 if strong else 400)
            ink = self._theme.color("accent" if strong else "text2")
            painter.setPen(self._pen(number, curve))
            painter.drawLine(QPointF(box.right() + 8, y), QPointF(box.right() + 8 + _SAMPLE_PX, y))
            place = QRectF(box.right() + 13 + _SAMPLE_PX, y - 8, _RIGHT_PX - 13 - _SAMPLE_PX, 16)
            draw_text(painter, place, _name(curve), font, ink, Qt.AlignmentFlag.AlignLeft)

    def _pen(self, number: int, curve: Curve) -> QPen:
        return pen_of(self._theme, PLAIN_STYLE if curve.plain else STYLES[number % len(STYLES)])

    def _x(self, box: QRectF, x: int, last: int) -> float:
        return box.left() + 6 + (box.width() - 12) * ((x - 1) / (last - 1) if last > 1 else 0.5)


def places_chart(theme: Theme) -> LineChart:
    """Shares accepted by place in the draft."""
    return LineChart(theme, strings.PLACES, strings.PLACES_SAYS, strings.PLACE, percent, 1.0)


def turns_chart(theme: Theme) -> LineChart:
    """Speeds by turn of a conversation."""
    return LineChart(theme, strings.TURNS, strings.TURNS_SAYS, strings.TURN, speed, None)


def _name(curve: Curve) -> str:
    return strings.PLAIN if curve.plain else strings.drafter_of(curve.name)
