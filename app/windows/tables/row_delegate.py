"""RowDelegate: paints a table's row, 46 high, in the columns that the header names."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.controls.row_ground import INSET_PX, PADDING_PX, paint_ground
from app.controls.row_model import ROW
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import design_rect, px, zoom
from app.windows.tables.rows import TableRow

ROW_PX = 46
_BAR_PX = 200
_BAR_HEIGHT_PX = 4
_SWATCH_PX = 9
# The first tables' colours; green, amber and vermilion mean other things.
_SWATCHES = ("series_blue", "series_purple", "series_grey", "series_sky", "text", "normal_mark")
_Index = QModelIndex | QPersistentModelIndex
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


def columns(row: QRectF) -> dict[str, QRectF]:
    """Where the columns of a row lie; the last takes what is left."""
    left, boxes = row.left() + INSET_PX + PADDING_PX, {}
    for name, width in (
        ("family", 168),
        ("entries", 262),
        ("hits", 92),
        ("accepted", 92),
        ("size", 92),
        ("saved", 112),
    ):
        boxes[name] = QRectF(left, row.top(), width, row.height())
        left += width
    boxes["learned"] = QRectF(left, row.top(), row.right() - INSET_PX - PADDING_PX - left, row.height())
    boxes["family"].adjust(18, 0, -8, 0)
    boxes["saved"].adjust(24, 0, 0, 0)
    return boxes


class RowDelegate(QStyledItemDelegate):
    """For a list of `RowModel`."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(0, px(ROW_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        row = index.data(ROW)
        assert isinstance(row, TableRow)
        painter.save()
        painter.scale(zoom(), zoom())
        paint_ground(painter, option, self._theme)
        boxes = columns(design_rect(QRectF(option.rect)))
        self._paint_family(painter, boxes["family"], row, index.row())
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        self._paint_entries(painter, boxes["entries"], row, "hair2" if selected else "fill2")
        text, text2 = self._theme.color("text"), self._theme.color("text2")
        figures = ui_font(13, tabular=True)
        for name, value in (("hits", row.hits), ("accepted", row.accepted), ("size", row.size)):
            draw_text(painter, boxes[name], value, figures, text, _RIGHT)
        draw_text(painter, boxes["saved"], row.saved, ui_font(13, tabular=True), text2, _LEFT)
        draw_text(painter, boxes["learned"], row.learned_from, ui_font(13), text2, _LEFT)
        painter.restore()

    def _paint_family(self, painter: QPainter, box: QRectF, row: TableRow, place: int) -> None:
        swatch = QRectF(box.left() - 18, box.center().y() - _SWATCH_PX / 2, _SWATCH_PX, _SWATCH_PX)
        ink: QColor | None = self._theme.color(_SWATCHES[place % len(_SWATCHES)])
        if row.share is None:  # chats do not fill it
            draw_box(painter, swatch, 2, None, ink)
        else:
            draw_box(painter, swatch, 2, ink)
        first, second = _lines(box)
        draw_text(painter, first, row.title, ui_font(13, 500), self._theme.color("text"), _LEFT)
        font = ui_font(11, tabular=True)
        draw_text(painter, second, row.subtitle, font, self._theme.color("text2"), _LEFT)

    def _paint_entries(self, painter: QPainter, box: QRectF, row: TableRow, track: str) -> None:
        color = self._theme.color
        font = ui_font(12, 500, tabular=True)
        if row.share is None:
            draw_text(painter, box, row.entries, ui_font(12, tabular=True), color("text2"), _LEFT)
            return
        first, second = _lines(box)
        draw_text(painter, first, row.entries, font, color("text"), _LEFT)
        first.setLeft(first.left() + QFontMetricsF(font).horizontalAdvance(row.entries))
        draw_text(painter, first, row.of_entries, ui_font(12, tabular=True), color("text2"), _LEFT)
        bar = QRectF(box.left(), second.center().y() - 1, _BAR_PX, _BAR_HEIGHT_PX)
        draw_box(painter, bar, 2, color(track))
        filled = min(1.0, row.share) * _BAR_PX
        if filled > 0:
            # A first sliver is at least as wide as the bar's ends are round.
            used = QRectF(bar.left(), bar.top(), max(filled, 2.0), _BAR_HEIGHT_PX)
            draw_box(painter, used, min(2.0, used.width() / 2), color("series_blue"))
        painter.fillRect(QRectF(bar.left() + _BAR_PX / 2, bar.top() - 2, 1, 8), color("text3"))


def _lines(box: QRectF) -> tuple[QRectF, QRectF]:
    """The two lines of a row: 18 and 14 high."""
    top = box.top() + (ROW_PX - 32) / 2
    return QRectF(box.left(), top, box.width(), 18), QRectF(box.left(), top + 18, box.width(), 14)
