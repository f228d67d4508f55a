"""RaceChart: the tokens over time of both answers, and the replay's position, which can be dragged.

For assistive technology a slider in milliseconds whose description has the figures. Arrows move by a tenth
of a second, Page keys by a second.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractSlider, QSizePolicy, QWidget

from app.controls.focus_ring import FocusRing
from app.controls.plot import LABEL_PX, Plot
from app.controls.shapes import draw_box, draw_text
from app.features.race import strings
from app.features.race.state import Recording, duration_s, written
from app.gauges.figures import seconds
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import design_point, height_of, painter_on, px_size, width_of

HEIGHT_PX = 128
_LEFT_PX, _RIGHT_PX, _TOP_PX, _BOTTOM_PX = 44, 60, 14, 26
_CLEAR_PX = 36
_GAP_PX = 6
_DESCRIBED_MOMENTS = 8


def ticks(most: float, wanted: int = 6) -> list[float]:
    """Returns round numbers from 0 to at least `most`."""
    if most <= 0:
        return [0.0, 1.0]
    raw = most / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def beside(left: float, width: float, line: float) -> float:
    """Returns the left end of a label near `left` that does not cross the vertical `line`."""
    if not left - _GAP_PX < line < left + width + _GAP_PX:
        return left
    before, after = line - _GAP_PX - width, line + _GAP_PX
    return before if left + width / 2 < line and before > _LEFT_PX else after


class RaceChart(QAbstractSlider):
    """`sought` reports a person's moves only."""

    sought = Signal(float)  # seconds

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._plain = Recording()
        self._drafted = Recording()
        self._told = False  # whether the replay, not a person, changes the value
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setOrientation(Qt.Orientation.Horizontal)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSingleStep(100)
        self.setPageStep(1000)
        self.setAccessibleName(strings.MOMENT)
        self._ring = FocusRing(self, theme, 6)
        self.valueChanged.connect(self._tell)
        self.setRange(0, 0)

    def show_race(self, plain: Recording, drafted: Recording) -> None:
        """Shows the lines of two answers."""
        self._plain, self._drafted = plain, drafted
        end_s = max(duration_s(plain), duration_s(drafted))
        self._told = True
        self.setRange(0, math.ceil(end_s * 1000))
        self._told = False
        moments = [end_s * part / _DESCRIBED_MOMENTS for part in range(_DESCRIBED_MOMENTS + 1)]
        self.setAccessibleDescription(
            strings.chart_described(
                [(at_s, written(plain, at_s)) for at_s in moments],
                [(at_s, written(drafted, at_s)) for at_s in moments],
            )
            if plain.tokens or drafted.tokens
            else strings.CHART
        )
        self.update()

    def show_moment(self, at_s: float) -> None:
        """Shows the position of the replay. Does not emit `sought`."""
        self._told = True
        self.setValue(round(at_s * 1000))
        self._told = False
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(400, HEIGHT_PX))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.mouseMoveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton and self.maximum():
            box = self._box()
            share = (design_point(event.position()).x() - box.left()) / max(1.0, box.width())
            self.setValue(round(min(1.0, max(0.0, share)) * self._span_s() * 1000))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = self._theme.color
        most = max(len(self._plain.tokens), len(self._drafted.tokens))
        if not most:
            return
        box = self._box()
        plot = Plot(painter, self._theme, box)
        for count in sorted({0, most // 2, most}):
            plot.grid(self._at(0.0, count).y(), f"{count:,}")
        now_s = self.value() / 1000
        now_x = self._at(now_s, 0).x()
        for at_s in ticks(self._end_s()):
            x = self._at(at_s, 0).x()
            if abs(x - now_x) > _CLEAR_PX:  # the position's label is there
                plot.under(x, box.bottom() + 6, f"{at_s:g} s")
        self._paint_line(plot, self._plain, color("text2"), now_s, smooth=True)
        self._paint_line(plot, self._drafted, color("series_blue"), now_s, smooth=False)
        self._paint_ends(plot, now_s)
        self._paint_moment(painter, now_s)

    # ---- inside

    def _tell(self, value: int) -> None:
        self.update()
        if not self._told:
            self.sought.emit(value / 1000)

    def _end_s(self) -> float:
        return max(duration_s(self._plain), duration_s(self._drafted))

    def _span_s(self) -> float:
        return ticks(self._end_s())[-1]

    def _box(self) -> QRectF:
        return QRectF(
            _LEFT_PX,
            _TOP_PX,
            max(1, width_of(self) - _LEFT_PX - _RIGHT_PX),
            height_of(self) - _TOP_PX - _BOTTOM_PX,
        )

    def _at(self, at_s: float, tokens: float) -> QPointF:
        box = self._box()
        most = max(1, len(self._plain.tokens), len(self._drafted.tokens))
        return QPointF(
            box.left() + at_s / self._span_s() * box.width(), box.bottom() - tokens / most * box.height()
        )

    def _paint_line(
        self, plot: Plot, recording: Recording, ink: QColor, now_s: float, *, smooth: bool
    ) -> None:
        """Paints a line: solid up to the position, dotted after it."""
        tokens = recording.tokens
        if not tokens:
            return
        points = [self._at(tokens[0].time_s, 0)]
        for number, token in enumerate(tokens, 1):
            if number < len(tokens) and tokens[number].time_s == token.time_s:
                continue  # a step yields several tokens at once
            place = self._at(token.time_s, number)
            if not smooth:
                points.append(QPointF(place.x(), points[-1].y()))
            points.append(place)
        now_x = self._at(now_s, 0).x()
        for left, right, dotted in ((-1e9, now_x, False), (now_x, 1e9, True)):
            plot.painter.save()
            plot.painter.setClipRect(QRectF(QPointF(left, -10), QPointF(right, height_of(self))))
            plot.line(points, ink, 1.4 if dotted else 1.6, (1.0, 3.0) if dotted else ())
            plot.painter.restore()

    def _paint_ends(self, plot: Plot, now_s: float) -> None:
        color = self._theme.color
        font, strong = ui_font(LABEL_PX, tabular=True), ui_font(LABEL_PX, 600, tabular=True)
        sides = (
            (self._plain, color("text2"), font, strings.at_seconds),
            (self._drafted, color("series_blue"), strong, strings.done_at),
        )
        ends = [self._at(duration_s(side), len(side.tokens)) for side, *_ in sides]
        # The first answer is named above its end, the second below.
        first = 0 if ends[0].x() < ends[1].x() else 1
        for number, (side, ink, face, words) in enumerate(sides):
            if not side.tokens:
                continue
            end_s, end = duration_s(side), ends[number]
            done = end_s <= now_s
            plot.dot(end, 2.8, ink if done else color("window"), ink)
            width = QFontMetricsF(face).horizontalAdvance(words(end_s)) + 1
            left, top = (
                (end.x() - 10 - width, end.y() - 15)
                if number == first
                else (end.x() + 12 - width / 2, end.y() + 7)
            )
            label = QRectF(beside(left, width, self._at(now_s, 0).x()), top, width, 16)
            draw_text(plot.painter, label, words(end_s), face, color("accent") if number == 1 else ink)

    def _paint_moment(self, painter: QPainter, now_s: float) -> None:
        color, box = self._theme.color, self._box()
        x = self._at(now_s, 0).x()
        painter.setPen(QPen(color("text"), 1.4))
        painter.drawLine(QPointF(x, box.top() - 8), QPointF(x, box.bottom()))
        count = written(self._plain, now_s)
        if 0 < count < len(self._plain.tokens):
            at = self._at(now_s, count)
            painter.setBrush(color("text2"))
            painter.drawEllipse(at, 2.6, 2.6)
        pill = QRectF(x - 19, box.bottom() + 1, 38, 16)
        draw_box(painter, pill, 4, color("text"))
        draw_text(painter, pill, seconds(now_s), ui_font(LABEL_PX, 600, tabular=True), color("window"))
