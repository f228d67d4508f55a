"""What lies behind a row of a list: a hairline below it, or a pill if it is selected or pointed at."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from app.controls.focus_ring import RING_PX
from app.controls.shapes import draw_box
from app.theme.theme import Theme
from app.theme.zoom import design_rect

INSET_PX = 8
PADDING_PX = 12
_RADIUS_PX = 8


def paint_ground(painter: QPainter, option: QStyleOptionViewItem, theme: Theme) -> None:
    """With a painter that takes design pixels."""
    pill = design_rect(QRectF(option.rect)).adjusted(INSET_PX, 0, -INSET_PX, 0)
    state = option.state
    selected = bool(state & QStyle.StateFlag.State_Selected)
    if not selected:
        line = QRectF(pill.left() + PADDING_PX, pill.bottom() - 1, pill.width() - 2 * PADDING_PX, 1)
        painter.fillRect(line, theme.color("hair"))
    if selected or state & QStyle.StateFlag.State_MouseOver:
        fill = theme.color("sel")
        fill.setAlphaF(1.0 if selected else 0.45)
        draw_box(painter, pill, _RADIUS_PX, fill)
    if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
        half = RING_PX / 2
        painter.setPen(QPen(theme.color("focus"), RING_PX))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = _RADIUS_PX - half
        painter.drawRoundedRect(pill.adjusted(half, half, -half, -half), radius, radius)
