"""Position bars: the share accepted at each place of the draft, first place at the left."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from app.controls.shapes import draw_box
from core.events import PositionStat

MAX_BARS = 16
_WIDTH_PX, _GAP_PX = 8.0, 3.0  # of a bar, where there is room


def shares(positions: Sequence[PositionStat]) -> list[float]:
    """Accepted ÷ tested of the first places, up to the last one that was ever tested."""
    tested = [position for position in positions[:MAX_BARS] if position.tested > 0]
    return [position.accepted / position.tested for position in tested]


def paint_bars(
    painter: QPainter, box: QRectF, positions: Sequence[PositionStat], ink: QColor, floor_ink: QColor
) -> None:
    """Bars from the bottom of `box`; a place with nothing accepted keeps a 1 px floor."""
    heights = shares(positions)
    if not heights:
        return
    pitch = min(_WIDTH_PX + _GAP_PX, (box.width() + _GAP_PX) / len(heights))
    gap = min(_GAP_PX, pitch / 3)
    for index, share in enumerate(heights):
        left = box.left() + index * pitch
        height = share * box.height()
        if height < 1:
            painter.fillRect(QRectF(left, box.bottom() - 1, pitch - gap, 1), floor_ink)
        else:
            bar = QRectF(left, box.bottom() - height, pitch - gap, height)
            draw_box(painter, bar, min(1.5, height / 2), ink)
