"""RowDelegate: paints a request's row, 46 high, in the columns that the header names."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.controls.row_ground import INSET_PX, PADDING_PX, paint_ground
from app.controls.row_model import ROW, Index
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import design_rect, px, zoom
from app.windows.server.rows import Level, RequestRow

ROW_PX = 46
_LINES_PX = (18, 14)
# From the right; the client takes what is left.
_WIDTHS_PX = (
    ("state", 132),
    ("tokens", 72),
    ("speed", 78),
    ("accepted", 84),
    ("cached", 128),
    ("first_token", 84),
    ("came", 96),
)
RIGHT = ("tokens", "speed", "accepted", "cached", "first_token", "came")
_INKS: dict[Level, str] = {"live": "accent", "plain": "text2", "bad": "danger"}


def columns(row: QRectF) -> dict[str, QRectF]:
    """Where the columns of a row lie."""
    right, boxes = row.right() - INSET_PX - PADDING_PX, {}
    for name, width in reversed(_WIDTHS_PX):
        boxes[name] = QRectF(right - width, row.top(), width, row.height())
        right -= width
    left = row.left() + INSET_PX + PADDING_PX
    boxes["client"] = QRectF(left, row.top(), max(0.0, right - left - 12), row.height())
    return boxes


class RowDelegate(QStyledItemDelegate):
    """For a list of requests."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, px(ROW_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ROW)
        assert isinstance(row, RequestRow)
        painter.save()
        painter.scale(zoom(), zoom())
        paint_ground(painter, option, self._theme)
        boxes, color = columns(design_rect(QRectF(option.rect))), self._theme.color
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        box = boxes["client"]
        top = box.top() + (ROW_PX - sum(_LINES_PX)) / 2
        for text, font, ink, y, height in (
            (row.title, ui_font(13, 500), "text", top, _LINES_PX[0]),
            (row.subtitle, ui_font(11), "text2", top + _LINES_PX[0], _LINES_PX[1]),
        ):
            cut = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, box.width())
            draw_text(painter, QRectF(box.left(), y, box.width(), height), cut, font, color(ink), left)
        draw_text(painter, boxes["state"], row.state, ui_font(13), color(_INKS[row.level]), left)
        figures = ui_font(13, tabular=True)
        for name in RIGHT:
            ink = "text2" if name == "came" else "text"
            draw_text(painter, boxes[name], getattr(row, name), figures, color(ink), right)
        painter.restore()
