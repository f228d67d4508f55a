"""Words of rows: a name with a line below it, and how something stands, legible on the chosen row, too."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from app.controls.rows.level import Level
from app.controls.rows.row_delegate import ROW_PX
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme

_LINES_PX = (18, 14)
_DOT_PX = 8
_DOT_GAP_PX = 6
_INKS: dict[Level, str] = {"live": "text", "plain": "text", "bad": "danger", "dim": "text2"}
_LEFT = Qt.AlignmentFlag.AlignLeft


def draw_names(painter: QPainter, theme: Theme, box: QRectF, title: str, subtitle: str) -> None:
    """Two lines, or one in the middle."""
    lines = [(title, ui_font(13, 500), "text", _LINES_PX[0])]
    if subtitle:
        lines.append((subtitle, ui_font(11), "text2", _LINES_PX[1]))
    top = box.top() + (ROW_PX - sum(height for *_, height in lines)) / 2
    for text, font, ink, height in lines:
        draw_text(painter, QRectF(box.left(), top, box.width(), height), text, font, theme.color(ink), _LEFT)
        top += height


def draw_state(
    painter: QPainter, theme: Theme, box: QRectF, state: str, level: Level, option: QStyleOptionViewItem
) -> None:
    """What is live has a dot: blue words would be too pale on the chosen row, as red ones would."""
    chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    ink = "text" if level == "bad" and chosen else _INKS[level]
    if level == "live":
        dot = QRectF(box.left(), box.center().y() - _DOT_PX / 2, _DOT_PX, _DOT_PX)
        draw_box(painter, dot, _DOT_PX / 2, theme.color("series_blue"))
        box = box.adjusted(_DOT_PX + _DOT_GAP_PX, 0, 0, 0)
    draw_text(painter, box, state, ui_font(13), theme.color(ink), _LEFT)
