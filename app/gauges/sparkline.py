"""Sparkline: the last 20 seconds of one figure, as a line.

The line starts at the left and, once it is 20 s long, scrolls. Zero is the bottom, so heights
can be compared. Time comes in as seconds of any steady clock.
"""

from __future__ import annotations

from collections import deque

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

SPAN_S = 20.0
_MAX_SAMPLES = 240
_HEADROOM_PX = 3.0
_FADE = 0.10  # of the line's colour, under the line
_DOT_PX = 2.6


class Sparkline:
    """Samples of one figure, oldest first."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=_MAX_SAMPLES)

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, value: float, now_s: float) -> None:
        """Take a sample and forget those older than 20 s."""
        self._samples.append((now_s, max(0.0, value)))
        while self._samples[0][0] < now_s - SPAN_S:
            self._samples.popleft()

    def clear(self) -> None:
        """Forget all samples."""
        self._samples.clear()

    def points(self, box: QRectF, reference: float = 0.0) -> list[QPointF]:
        """Where the samples lie in `box`; `reference` is another value that has to fit its height."""
        if not self._samples:
            return []
        first_s = self._samples[0][0]
        top = self._top(reference)
        height = box.height() - _HEADROOM_PX
        return [
            QPointF(
                box.left() + (at_s - first_s) / SPAN_S * box.width(),
                box.bottom() - value / top * height,
            )
            for at_s, value in self._samples
        ]

    def paint(
        self,
        painter: QPainter,
        box: QRectF,
        ink: QColor,
        paper: QColor,
        reference: float | None = None,
        reference_ink: QColor | None = None,
    ) -> None:
        """Draw line, fill and end dot; a dashed line at `reference` if there is one."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        points = self.points(box, reference or 0.0)
        if reference and reference_ink is not None and points:
            y = box.bottom() - reference / self._top(reference) * (box.height() - _HEADROOM_PX)
            pen = QPen(reference_ink, 1.0)
            pen.setDashPattern([2.0, 3.0])
            painter.setPen(pen)
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        # One sample, or a few at once, is no line, and the dot would look like a stain.
        drawn = len(points) > 1 and points[-1].x() - points[0].x() >= 2 * _DOT_PX
        if drawn:
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
        if drawn:
            painter.setPen(QPen(paper, 1.4))
            painter.setBrush(ink)
            painter.drawEllipse(points[-1], _DOT_PX, _DOT_PX)
        painter.restore()

    def _top(self, reference: float) -> float:
        return max(1e-9, reference, max(value for _, value in self._samples))
