"""KeepChart: seconds to the first token by the share of the prompt that is read, and what stays the same."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from app.controls.shapes import draw_box, draw_text
from app.gauges.figures import percent, seconds
from app.session.lab.figures import Keep, keeps
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.windows.lab import strings
from app.windows.lab.chart import LABEL_PX, Chart, above
from core.events.sweep import SweepResults

_FOOT_PX = 44
_GAP_PX = 30.0
_UPPER = 0.56  # of the height: the bars
_BAR_PX = 22.0


class KeepChart(Chart):
    """Bars above, a line below; the share that answers are read with now is marked."""

    def __init__(self, theme: Theme) -> None:
        self._keeps: list[Keep] = []
        self._chosen = 0.0
        super().__init__(theme, strings.KEEPS, strings.KEEPS_SAYS, _FOOT_PX)

    def show_results(self, results: SweepResults | None) -> None:
        """Of these."""
        self._keeps = keeps(results) if results else []
        self.refresh()

    def show_chosen(self, keep_pct: float) -> None:
        """Mark this share."""
        if keep_pct != self._chosen:
            self._chosen = keep_pct
            self.update()

    @property
    def has_data(self) -> bool:
        return bool(self._keeps)

    def _described(self) -> str:
        return "; ".join(strings.keep_described(k.keep_pct, k.ttft_s, k.agreement) for k in self._keeps)

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        color = self._theme.color
        pitch = box.width() / len(self._keeps)
        upper = QRectF(box.left(), box.top(), box.width(), box.height() * _UPPER)
        lower_top = upper.bottom() + _GAP_PX
        lower = QRectF(box.left(), lower_top, box.width(), max(10.0, box.bottom() - lower_top))
        for number, keep in enumerate(self._keeps):
            if keep.keep_pct == self._chosen:
                column = QRectF(box.left() + pitch * number + 2, box.top() - 8, pitch - 4, box.height() + 28)
                draw_box(painter, column, 6, color("accent_tint"))
        self._paint_bars(painter, upper, pitch)
        self._paint_agreement(painter, lower, pitch)
        for number, keep in enumerate(self._keeps):
            label = strings.ALL if keep.keep_pct >= 100 else f"{keep.keep_pct:g}%"
            x = box.left() + pitch * (number + 0.5)
            self._under(painter, x, box.bottom() + 5, label, keep.keep_pct == self._chosen)
        place = QRectF(box.left(), box.bottom() + 24, box.width(), 16)
        draw_text(painter, place, strings.SHARE, ui_font(11), color("text2"), Qt.AlignmentFlag.AlignLeft)

    def _paint_bars(self, painter: QPainter, box: QRectF, pitch: float) -> None:
        color = self._theme.color
        most = max(keep.ttft_s for keep in self._keeps)
        if most <= 0:
            return
        top = above(most)
        for part in (0.0, 0.5, 1.0):
            label = f"{part * top:g} s" if part else "0"
            self._line(painter, box, box.bottom() - part * box.height(), label)
        for number, keep in enumerate(self._keeps):
            height = keep.ttft_s / top * box.height()
            x = box.left() + pitch * (number + 0.5)
            bar = QRectF(x - _BAR_PX / 2, box.bottom() - height, _BAR_PX, height)
            strong = keep.keep_pct == self._chosen
            ink = color("series_blue" if strong else "accent_mid")
            # What did not run as asked is hollow, never colour alone.
            draw_box(painter, bar, 2, ink if keep.as_asked else None, None if keep.as_asked else ink)
            font = ui_font(LABEL_PX, 600 if strong else 400, tabular=True)
            place = QRectF(x - 30, bar.top() - 16, 60, 15)
            draw_text(painter, place, f"{seconds(keep.ttft_s)} s", font, color("text" if strong else "text2"))

    def _paint_agreement(self, painter: QPainter, box: QRectF, pitch: float) -> None:
        known = [
            (number, keep.agreement) for number, keep in enumerate(self._keeps) if keep.agreement is not None
        ]
        if not known:
            return
        floor = min(0.9, math.floor(10 * min(value for _, value in known)) / 10)
        for part in (0.0, 0.5, 1.0):
            y = box.bottom() - part * box.height()
            self._line(painter, box, y, percent(floor + part * (1 - floor)))
        points = [
            QPointF(
                box.left() + pitch * (number + 0.5),
                box.bottom() - (value - floor) / (1 - floor) * box.height(),
            )
            for number, value in known
        ]
        ink = self._theme.color("series_purple")
        painter.setPen(QPen(ink, 1.6))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(points))
        painter.setPen(QPen(self._theme.color("window"), 1.2))
        painter.setBrush(ink)
        for point in points:
            painter.drawEllipse(point, 2.8, 2.8)
