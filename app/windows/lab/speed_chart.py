"""SpeedChart: how many times faster than plain each drafter is, a bar for each class of prompts."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.controls.shapes import blend, draw_box, draw_text
from app.session.lab.figures import Speed, plain_speed, speeds
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import width_of
from app.windows.lab import strings
from app.windows.lab.chart import LABEL_PX, Chart
from core.events.sweep import SweepResults

_BAR_PX, _BAR_GAP_PX = 26.0, 4.0
_GROUP_GAP_PX = 24.0
_FOOT_PX, _RIGHT_PX = 30, 72
_WORDS_PX = 92  # room for a drafter's whole name
_LEGEND_PX = 36  # below the two lines of the head


class SpeedChart(Chart):
    """Classes are shades of blue, from light to dark, named above."""

    def __init__(self, theme: Theme) -> None:
        self._speeds: list[Speed] = []
        self._plain = 0.0
        super().__init__(theme, strings.SPEED, strings.SPEED_SAYS, _FOOT_PX, _RIGHT_PX)

    def show_results(self, results: SweepResults | None) -> None:
        """Of these."""
        self._speeds = speeds(results) if results else []
        self._plain = plain_speed(results) if results else 0.0
        self.refresh()

    @property
    def has_data(self) -> bool:
        return bool(self._speeds)

    def _described(self) -> str:
        return strings.speeds_described([(s.drafter, s.kind, s.ratio, s.least, s.most) for s in self._speeds])

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        color = self._theme.color
        drafters = list(dict.fromkeys(each.drafter for each in self._speeds))
        kinds = list(dict.fromkeys(each.kind for each in self._speeds))
        top = max(1.5, math.ceil(2 * max(each.most for each in self._speeds) + 0.2) / 2)
        step = 0.5 if top <= 3 else 1.0 if top <= 6 else 2.0
        for number in range(int(top / step) + 1):
            value = number * step
            label = "0" if not number else f"{value:g}×"
            self._line(painter, box, box.bottom() - value / top * box.height(), label)
        group_px = box.width() / len(drafters)
        room = (group_px - _GROUP_GAP_PX) / len(kinds)
        bar_px = max(3.0, min(_BAR_PX, room - _BAR_GAP_PX))
        pitch = bar_px + min(_BAR_GAP_PX, max(1.0, room - bar_px))
        best = max(self._speeds, key=lambda each: each.ratio)
        for each in self._speeds:
            group = box.left() + group_px * (drafters.index(each.drafter) + 0.5)
            x = group + (kinds.index(each.kind) - len(kinds) / 2) * pitch
            self._paint_bar(
                painter, box, x, bar_px, top, each, self._shade(kinds.index(each.kind), len(kinds))
            )
            if bar_px >= 18 or each is best:
                y = box.bottom() - each.most / top * box.height() - 18
                strong = each is best
                font = ui_font(LABEL_PX, 600 if strong else 400, tabular=True)
                ink = color("text" if strong else "text2")
                draw_text(painter, QRectF(x - 15, y, bar_px + 30, 15), strings.ratio(each.ratio), font, ink)
        for number, name in enumerate(drafters):
            place = QRectF(box.left() + group_px * number, box.bottom() + 8, group_px, 16)
            strong = name == best.drafter
            words = strings.drafter_of(name) if group_px >= _WORDS_PX else strings.short_drafter_of(name)
            draw_text(painter, place, words, ui_font(12, 600 if strong else 400), color("text"))
        self._paint_plain(painter, box, top)
        self._paint_legend(painter, kinds)

    def _paint_bar(
        self, painter: QPainter, box: QRectF, x: float, width: float, top: float, each: Speed, ink: QColor
    ) -> None:
        height = each.ratio / top * box.height()
        draw_box(painter, QRectF(x, box.bottom() - height, width, height), min(2.0, height / 2), ink)
        middle = x + width / 2
        painter.setPen(QPen(self._theme.color("text2"), 1))
        low, high = (box.bottom() - value / top * box.height() for value in (each.least, each.most))
        painter.drawLine(QPointF(middle, low), QPointF(middle, high))

    def _paint_plain(self, painter: QPainter, box: QRectF, top: float) -> None:
        color = self._theme.color
        y = box.bottom() - box.height() / top
        painter.setPen(QPen(color("text"), 1.4))
        painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        left = Qt.AlignmentFlag.AlignLeft
        x = box.right() + 8
        draw_text(
            painter, QRectF(x, y - 15, _RIGHT_PX, 15), strings.PLAIN, ui_font(11, 600), color("text"), left
        )
        if self._plain:
            font = ui_font(LABEL_PX, tabular=True)
            text = strings.plain_speed(self._plain)
            draw_text(painter, QRectF(x, y, _RIGHT_PX, 15), text, font, color("text2"), left)

    def _paint_legend(self, painter: QPainter, kinds: list[str]) -> None:
        font, x = ui_font(11), width_of(self)
        names = [strings.kind_of(kind) for kind in kinds]
        widths = [QFontMetricsF(font).horizontalAdvance(name) for name in names]
        title = QFontMetricsF(ui_font(13.5, 600)).horizontalAdvance(strings.SPEED)
        # At the title's right, or below both of its lines if it would touch them.
        beside = title + sum(widths) + 29 * len(names) <= x
        top = 1 if beside else _LEGEND_PX
        for number in reversed(range(len(names))):
            name, width = names[number], widths[number]
            x -= width
            place = QRectF(x, top, width + 2, 16)
            draw_text(painter, place, name, font, self._theme.color("text2"), Qt.AlignmentFlag.AlignLeft)
            x -= 15
            draw_box(painter, QRectF(x, top + 3, 10, 10), 2, self._shade(number, len(kinds)))
            x -= 14

    def _shade(self, number: int, count: int) -> QColor:
        share = 1.0 if count == 1 else 0.42 + 0.58 * number / (count - 1)
        return blend(self._theme.color("series_blue"), self._theme.color("window"), share)
