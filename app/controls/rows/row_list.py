"""RowList: records as rows under a header with the names of their columns, one selected.

A list that is narrower than its columns scrolls sideways, and its header with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QFrame, QListView, QSizePolicy, QVBoxLayout, QWidget

from app.controls.elided import PaintedRow
from app.controls.rows.columns import Column, least_width, place
from app.controls.rows.row_delegate import RowDelegate
from app.controls.rows.row_model import ROW, Row, RowModel
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.measures import add_gap, set_fixed_height
from app.theme.theme import Theme
from app.theme.zoom import design_px, px, width_of

_HEADER_PX = 28
_ABOVE_PX = 5
_SIDEWAYS_PX = 40
_Row = TypeVar("_Row", bound=Row)


class RowView(QListView):
    """The rows. `chosen` tells a person's choice; Left and Right scroll where not all columns are seen."""

    chosen = Signal(str)  # the row's id

    def __init__(
        self, theme: Theme, name: str, model: RowModel[_Row], delegate: type[RowDelegate[_Row]]
    ) -> None:
        super().__init__()
        self.silent = False
        self.setModel(model)
        self.setItemDelegate(delegate(theme, self))
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setAccessibleName(name)
        self.viewport().setAutoFillBackground(False)
        for orientation in (Qt.Orientation.Vertical, Qt.Orientation.Horizontal):
            OverlayScrollBar(theme, self, orientation)
        theme.changed.connect(self.viewport().update)

    def updateGeometries(self) -> None:
        """A list of one column takes its own width for that of its rows, and would not scroll sideways."""
        super().updateGeometries()
        bar, width = self.horizontalScrollBar(), self.viewport().width()
        bar.setPageStep(width)
        bar.setRange(0, max(0, self.sizeHintForColumn(0) - width))

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        indexes = selected.indexes()
        if indexes and not self.silent:
            self.chosen.emit(indexes[0].data(ROW).id)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        way = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if way:
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() + way * px(_SIDEWAYS_PX))
        else:
            super().keyPressEvent(event)


class RowList(QWidget, Generic[_Row]):
    """`row_selected` tells a person's choice and what is chosen when rows come and go."""

    row_selected = Signal(str)  # the row's id; empty if there is none

    def __init__(self, theme: Theme, model: RowModel[_Row], view: RowView, columns: Sequence[Column]) -> None:
        super().__init__()
        self.model = model
        self.view = view
        model.setParent(self)
        self._chosen = ""
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(_Header(theme, view, columns))
        add_gap(layout, _ABOVE_PX)
        layout.addWidget(view, 1)
        view.chosen.connect(self._choose)

    @property
    def selected(self) -> str:
        """The selected row's id; empty if none is."""
        return self._chosen

    @property
    def rows(self) -> tuple[_Row, ...]:
        """What is shown."""
        return self.model.rows

    def show_rows(self, rows: Sequence[_Row]) -> None:
        """Show these; what is selected stays so if it is there, and what is seen stays where it is."""
        place, bar = self.model.index_of(self._chosen).row(), self.view.verticalScrollBar()
        at = bar.value()
        self.view.silent = True
        self.model.show(rows)
        self.view.silent = False
        if self.model.index_of(self._chosen).isValid():
            self.select(self._chosen, scroll=False)
            bar.setValue(at)
        else:
            self.select(self.instead(place) if rows else "")

    def instead(self, place: int) -> str:
        """Which of the rows is selected where that at `place` (-1: none) is gone; the first."""
        return self.rows[0].id

    def select(self, row_id: str, *, scroll: bool = True) -> None:
        """Select the row of that id; what is not there selects nothing."""
        index = self.model.index_of(row_id)
        if index.isValid() and self.view.currentIndex() != index:
            self.view.silent = True
            flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
            self.view.selectionModel().setCurrentIndex(index, flag)
            self.view.silent = False
        if index.isValid() and scroll:
            self.view.scrollTo(index)
        self._choose(row_id if index.isValid() else "")

    def _choose(self, row_id: str) -> None:
        if row_id != self._chosen:
            self._chosen = row_id
            self.row_selected.emit(row_id)


class _Header(PaintedRow):
    """The columns' names, 28 high, with a hairline below."""

    def __init__(self, theme: Theme, view: RowView, columns: Sequence[Column]) -> None:
        super().__init__()
        self._theme = theme
        self._view = view
        self._columns = tuple(columns)
        set_fixed_height(self, _HEADER_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        view.horizontalScrollBar().valueChanged.connect(self.update)
        theme.changed.connect(self.update)

    def paint_row(self, painter: QPainter) -> None:
        width, color = width_of(self), self._theme.color
        left = -design_px(self._view.horizontalScrollBar().value())
        row = QRectF(left, 0, max(width, least_width(self._columns)), _HEADER_PX)
        boxes = place(row, self._columns)
        for column in self._columns:
            align = Qt.AlignmentFlag.AlignRight if column.right else Qt.AlignmentFlag.AlignLeft
            draw_text(painter, boxes[column.name], column.title, ui_font(11), color("text2"), align)
        painter.fillRect(QRectF(0, _HEADER_PX - 1, width, 1), color("hair"))
