"""SpeedInstrument: tokens a second now, and over the last 20 s.

While a prompt is read it shows the reading speed, in its own unit and with a separate line.
"""

from __future__ import annotations

from collections import deque

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from app.controls.shapes import draw_text
from app.gauges import strings
from app.gauges.figures import Figure, speed
from app.gauges.instruments import PADDING_PX, TITLE_LINE_PX, TOP_PX, Instrument
from app.theme.fonts import ui_font
from app.theme.theme import color
from app.theme.zoom import width_of
from core.events import Gauges, PrefillProgress, Stats

SPAN_S = 20.0
_MAX_SAMPLES = 240
_HEADROOM_PX = 3.0
_FADE = 0.10  # opacity of the line's colour below the line
_DOT_PX = 2.6
_DASHES = [2.0, 3.0]


def dashes() -> QPen:
    """The pen of the line of plain speed."""
    pen = QPen(color("text2"), 1.0)
    pen.setDashPattern(_DASHES)
    return pen


class Sparkline:
    """The last 20 seconds of one figure as a line, which starts at the left and scrolls once it is that long.

    Zero is the bottom, so heights can be compared. Times are seconds of any steady clock. `reference`: the
    value of a dashed line; 0 for none.
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=_MAX_SAMPLES)
        self.reference = 0.0

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, value: float, now_s: float) -> None:
        """Adds a sample and removes those older than 20 s."""
        self._samples.append((now_s, max(0.0, value)))
        while self._samples[0][0] < now_s - SPAN_S:
            self._samples.popleft()

    def clear(self) -> None:
        self._samples.clear()
        self.reference = 0.0

    def points(self, box: QRectF) -> list[QPointF]:
        """Returns the samples as points in `box`; the height also fits `reference`."""
        first_s = self._samples[0][0] if self._samples else 0.0
        return [
            QPointF(box.left() + (at_s - first_s) / SPAN_S * box.width(), self._y(value, box))
            for at_s, value in self._samples
        ]

    def _y(self, value: float, box: QRectF) -> float:
        top = max(1e-9, self.reference, *(each for _, each in self._samples))
        return box.bottom() - value / top * (box.height() - _HEADROOM_PX)

    def paint(self, painter: QPainter, box: QRectF, ink: QColor, paper: QColor) -> None:
        """Paints line, fill and end dot, and the dashed line."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        points = self.points(box)
        if self.reference and points:
            y = self._y(self.reference, box)
            painter.setPen(dashes())
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        # One sample, or several within a moment, are not a line, and their dot would look like a stain.
        if len(points) > 1 and points[-1].x() - points[0].x() >= 2 * _DOT_PX:
            fill = QColor(ink)
            fill.setAlphaF(_FADE)
            floor = [QPointF(points[-1].x(), box.bottom()), QPointF(points[0].x(), box.bottom())]
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(fill)
            painter.drawPolygon(QPolygonF(points + floor))
            pen = QPen(ink, 1.5)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            painter.drawPolyline(QPolygonF(points))
            painter.setPen(QPen(paper, 1.4))
            painter.setBrush(ink)
            painter.drawEllipse(points[-1], _DOT_PX, _DOT_PX)
        painter.restore()


_LINE_GAP_PX = 8
_LEAST_LINE_PX = 24
_LINE_LEFT_PX = 87
_LINE_TOP_PX, _LINE_HEIGHT_PX = TOP_PX + 16, 22
_KEY_PX, _KEY_GAP_PX = 12, 5  # the dashes before the label of the dashed line


class SpeedInstrument(Instrument):
    """The dashed line is the model's speed without drafts, if it is known, with its label above."""

    def __init__(self, title: str, width_px: int, parent: QWidget | None = None) -> None:
        self._line = Sparkline()
        self._reading = False
        super().__init__(title, width_px, parent=parent)

    def show_figures(self, figures: Gauges | Stats, now_s: float) -> None:
        if isinstance(figures, Gauges):
            self._show_speed(figures.tokens_per_s, now_s, plain=figures.plain_tokens_per_s)
        else:  # final
            self._reading = False
            self._show_figure(figures.tokens_per_s or None)

    def show_prefill(self, progress: PrefillProgress, now_s: float) -> None:
        if progress.phase != "scoring":
            self._show_speed(progress.tokens_per_s or None, now_s, reading=True)

    def _show_speed(
        self, tokens_per_s: float | None, now_s: float, *, reading: bool = False, plain: float = 0.0
    ) -> None:
        """Adds a sample of the decode speed, or with `reading` of the prefill speed; None if unknown.

        `plain`: tokens a second without drafts; 0 for no line.
        """
        if reading != self._reading:
            self._reading = reading
            self._line.clear()
        self._line.reference = plain
        if tokens_per_s is not None and (tokens_per_s > 0 or len(self._line)):
            self._line.add(tokens_per_s, now_s)
        # While the speed is unknown, the last one stays at its line.
        if tokens_per_s is not None or not len(self._line):
            self._show_figure(tokens_per_s)

    def reset(self) -> None:
        self._reading = False
        self._line.clear()
        super().reset()

    @property
    def plain_label(self) -> str:
        """The words at the dashed line; empty without one."""
        if not (self._figure.is_known and self._line.reference and len(self._line)):
            return ""
        return strings.PLAIN_SPEED.format(speed=speed(self._line.reference))

    def _show_figure(self, tokens_per_s: float | None) -> None:
        unit = strings.READ_PER_S if self._reading else strings.TOKENS_PER_S
        known = tokens_per_s is not None and (tokens_per_s > 0 or len(self._line) > 0)
        self._show(Figure(speed(tokens_per_s or 0.0), unit) if known else Figure(), drawing_changed=True)

    def _paint(self, painter: QPainter) -> None:
        right = width_of(self) - PADDING_PX
        # A long figure ("12,345 tok/s read") shortens the line.
        left = PADDING_PX + max(_LINE_LEFT_PX, self._figure_px() + _LINE_GAP_PX)
        if right - left < _LEAST_LINE_PX:
            return
        self._line.paint(
            painter,
            QRectF(left, _LINE_TOP_PX, right - left, _LINE_HEIGHT_PX),
            color("accent"),
            color("window"),
        )
        if label := self.plain_label:
            font = ui_font(11, tabular=True)
            box = QRectF(0, TOP_PX, right, TITLE_LINE_PX)
            draw_text(painter, box, label, font, color("text2"), Qt.AlignmentFlag.AlignRight)
            x = right - QFontMetricsF(font).horizontalAdvance(label) - _KEY_GAP_PX
            y = TOP_PX + TITLE_LINE_PX / 2 + 0.5
            painter.setPen(dashes())
            painter.drawLine(QPointF(x - _KEY_PX, y), QPointF(x, y))

    def _described(self) -> str:
        return ", ".join(filter(None, (self._figure.text, self.plain_label)))
