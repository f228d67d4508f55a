"""RowDelegate: paints a row, 46 high, in the columns that the header names."""

from __future__ import annotations

from typing import Generic, TypeVar

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.controls.elided import elided_at, show_tip
from app.controls.rows.columns import Column, least_width, place
from app.controls.rows.row_ground import paint_ground
from app.controls.rows.row_model import ROW, Index, Row
from app.theme.theme import Theme
from app.theme.zoom import design_rect, px, px_size, zoom

ROW_PX = 46
_Row = TypeVar("_Row", bound=Row)


class RowDelegate(QStyledItemDelegate, Generic[_Row]):
    """For a list of `RowModel`. A row is as wide as all `columns` need: a narrower list scrolls sideways."""

    columns: tuple[Column, ...] = ()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = theme

    def boxes(self, option: QStyleOptionViewItem) -> dict[str, QRectF]:
        """Where the columns of the row lie, in design pixels."""
        return place(design_rect(QRectF(option.rect)), self.columns)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(px_size(QSize(least_width(self.columns), 0)).width(), px(ROW_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        option = QStyleOptionViewItem(option)
        # The list gives a row the width that is seen.
        option.rect.setWidth(max(option.rect.width(), self.sizeHint(option, index).width()))
        painter.save()
        painter.scale(zoom(), zoom())
        paint_ground(painter, option, self.theme)
        self.paint_row(painter, self.boxes(option), index.data(ROW), option, index.row())
        painter.restore()

    def helpEvent(
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """Shows the full text of an elided cell, else the row's tooltip."""
        elided = elided_at(lambda painter: self.paint(painter, option, index), QPointF(event.pos()))
        show_tip(event, view, elided or str(index.data(Qt.ItemDataRole.ToolTipRole) or ""))
        return True

    def paint_row(
        self,
        painter: QPainter,
        boxes: dict[str, QRectF],
        row: _Row,
        option: QStyleOptionViewItem,
        number: int,
    ) -> None:
        """Paint what is on the ground, with a painter that takes design pixels."""
        raise NotImplementedError
