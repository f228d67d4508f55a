"""RecordTable: records as rows in columns under a header, one of them selected.

A window declares its columns and gives rows; keyboard, selection, scrolling and accessibility come from
`QListView`. A table narrower than its columns scrolls sideways, and its header with it. Lengths are design
pixels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct
from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QHelpEvent, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLineEdit,
    QListView,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.controls.focus_ring import RING_PX
from app.controls.scroll_bar import lay_bars_over
from app.controls.shapes import PaintedRow, draw_box, draw_text, elided_at, show_tip
from app.theme.fonts import ui_font
from app.theme.measures import add_gap, set_fixed_height, set_font
from app.theme.theme import color, theme
from app.theme.zoom import (
    area_of,
    design_px,
    design_rect,
    painter_on,
    px,
    px_rect,
    px_size,
    width_of,
    zoom,
)

ROW_PX = 46
_HEADER_PX = 28
_LEAST_PX = 120
_ABOVE_PX = 5
_SIDEWAYS_PX = 40
_INSET_PX, _PADDING_PX, _RADIUS_PX = 8, 12, 8
# Heights of a row's two lines, in its middle.
_LINES_PX = 18, 14
_DOT_PX, _DOT_GAP_PX = 8, 6
_MOST_CHARACTERS = 200
# Of the message in an empty table: distance of its text from the sides, height of its title.
_EMPTY_SIDE_PX, _EMPTY_TITLE_PX = 40, 20
_ROW = Qt.ItemDataRole.UserRole
_NOWHERE = QModelIndex()
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
_Index = QModelIndex | QPersistentModelIndex

# Working now; in order; wrong; finished or unimportant.
Level = Literal["live", "plain", "bad", "dim"]
_INKS = {"live": "text", "plain": "text", "bad": "danger", "dim": "text2"}


class Row(Protocol):
    """`id` identifies the row; `spoken` is its text for assistive technology, `tip` its tooltip."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def spoken(self) -> str: ...
    @property
    def tip(self) -> str: ...


_Row = TypeVar("_Row", bound=Row)


class Cell(Struct, frozen=True):
    """What a column paints: `row`'s value into `box`. `number` is the row's index."""

    painter: QPainter
    box: QRectF
    row: Any
    number: int
    selected: bool

    def lines(self) -> tuple[QRectF, QRectF]:
        """Returns the boxes of the row's two lines."""
        box = self.box
        top = box.top() + (ROW_PX - sum(_LINES_PX)) / 2
        first = QRectF(box.left(), top, box.width(), _LINES_PX[0])
        return first, QRectF(box.left(), first.bottom(), box.width(), _LINES_PX[1])

    def write(self, box: QRectF, text: str, size_px: int, ink: str = "text", weight: int = 400) -> None:
        """Writes one line with tabular figures at the left of `box`, elided if it is too long."""
        font = ui_font(size_px, weight, tabular=True)
        draw_text(self.painter, box, text, font, color(ink), _LEFT)


class Column(Struct, frozen=True):
    """Shows the row's attribute `name` as a line in the colour `ink`, or what `paint` paints.

    `width_px` includes the free space `before_px` and `after_px`. A column that `grows` gets the spare width.
    """

    name: str
    title: str
    width_px: int
    right: bool = False
    before_px: int = 0
    after_px: int = 0
    grows: bool = False
    ink: str = "text"
    paint: Callable[[Cell], None] | None = None


def paint_names(cell: Cell) -> None:
    """Paints the row's `title`, and its `subtitle` below it, if any."""
    first, second = cell.lines()
    if not cell.row.subtitle:
        first.moveCenter(cell.box.center())
    cell.write(first, cell.row.title, 13, weight=500)
    cell.write(second, cell.row.subtitle, 11, "text2")


def paint_state(cell: Cell) -> None:
    """Paints the row's `state` in the colour of its `level`, with a dot for a live one.

    Blue or red text has too little contrast on a selected row.
    """
    level, box = cell.row.level, cell.box
    if level == "live":
        dot = QRectF(box.left(), box.center().y() - _DOT_PX / 2, _DOT_PX, _DOT_PX)
        draw_box(cell.painter, dot, _DOT_PX / 2, color("series_blue"))
        box = box.adjusted(_DOT_PX + _DOT_GAP_PX, 0, 0, 0)
    cell.write(box, cell.row.state, 13, "text" if level == "bad" and cell.selected else _INKS[level])


class RecordTable(QWidget, Generic[_Row]):
    """`row_selected` reports the person's choice, and a new selection when rows come and go.

    `instead` returns the row to select after the one at an index (-1: none) has disappeared; the neighbour
    if it is None. `editable` is the accessible name of the first column's editor, if there is one.
    """

    row_selected = Signal(str)  # the row's id; empty if there is none
    opened = Signal(str)  # the row's id: Return or a double click
    remove_requested = Signal()  # Delete or Backspace
    renamed = Signal(str, str)  # the row's id, the edited text

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        *,
        instead: Callable[[tuple[_Row, ...], int], _Row] | None = None,
        editable: str = "",
    ) -> None:
        super().__init__()
        self.model = _Model(bool(editable), self)
        self.view = _View(name, self.model, _Delegate(columns, editable))
        self._instead = instead or _neighbour
        self._chosen = ""
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(_Header(self.view, columns))
        add_gap(layout, _ABOVE_PX)
        layout.addWidget(self.view, 1)
        self.view.chosen.connect(self._choose)
        self.view.opened.connect(self.opened)
        self.view.remove_requested.connect(self.remove_requested)
        self.model.renamed.connect(self.renamed)

    @property
    def selected(self) -> str:
        """The selected row's id; empty if none is."""
        return self._chosen

    @property
    def rows(self) -> tuple[_Row, ...]:
        return self.model.rows

    def show_rows(self, rows: Sequence[_Row]) -> None:
        """Replaces the rows. Selection and scroll position stay if the selected row does."""
        place, bar = self.model.index_of(self._chosen).row(), self.view.verticalScrollBar()
        at = bar.value()
        self.view.silent = True
        self.model.show(rows)
        self.view.silent = False
        if self.model.index_of(self._chosen).isValid():
            self.select(self._chosen, scroll=False)
            bar.setValue(at)
        else:
            self.select(self._instead(self.rows, place).id if rows else "")
        self._describe()

    def set_empty(self, title: str, hint: str = "") -> None:
        """Sets the message in the middle of the table while it has no rows."""
        self.view.empty = title, hint
        self._describe()
        self.view.viewport().update()

    def select(self, row_id: str, *, scroll: bool = True) -> None:
        """Selects the row of that id; an unknown one selects nothing."""
        index = self.model.index_of(row_id)
        if index.isValid() and self.view.currentIndex() != index:
            self.view.silent = True
            flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
            self.view.selectionModel().setCurrentIndex(index, flag)
            self.view.silent = False
        if index.isValid() and scroll:
            self.view.scrollTo(index)
        self._choose(row_id if index.isValid() else "")

    def rename(self) -> None:
        index = self.model.index_of(self._chosen)
        if index.isValid():
            self.view.setFocus()
            self.view.edit(index)

    def _describe(self) -> None:
        self.view.setAccessibleDescription("" if self.rows else ". ".join(filter(None, self.view.empty)))

    def _choose(self, row_id: str) -> None:
        if row_id != self._chosen:
            self._chosen = row_id
            self.row_selected.emit(row_id)


def first_row(rows: tuple[_Row, ...], place: int) -> _Row:
    return rows[0]


def _neighbour(rows: tuple[_Row, ...], place: int) -> _Row:
    return rows[min(max(0, place), len(rows) - 1)]


class _Model(QAbstractListModel):
    """Rows that keep their places change without a reset, which would lose the selection."""

    renamed = Signal(str, str)

    def __init__(self, editable: bool, parent: QObject) -> None:
        super().__init__(parent)
        self._editable = editable
        self.rows: tuple[Any, ...] = ()

    def show(self, rows: Sequence[Any]) -> None:
        rows = tuple(rows)
        if [row.id for row in rows] == [row.id for row in self.rows]:
            self.rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def index_of(self, row_id: str) -> QModelIndex:
        """Returns the row's index; an invalid one for an unknown id."""
        for place, row in enumerate(self.rows):
            if row.id == row_id:
                return self.index(place)
        return QModelIndex()

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        editable = Qt.ItemFlag.ItemIsEditable if self._editable else Qt.ItemFlag.NoItemFlags
        return super().flags(index) | editable

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return row.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return row.spoken
            case Qt.ItemDataRole.ToolTipRole:
                return row.tip
            case _ if role == _ROW:
                return row
        return None

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        self.renamed.emit(self.rows[index.row()].id, str(value))
        return True


class _View(QListView):
    chosen = Signal(str)
    opened = Signal(str)
    remove_requested = Signal()

    def __init__(self, name: str, model: _Model, delegate: _Delegate) -> None:
        super().__init__()
        self.silent = False
        self.empty = "", ""
        self.setModel(model)
        delegate.setParent(self)
        self.setItemDelegate(delegate)
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setAccessibleName(name)
        self.viewport().setAutoFillBackground(False)
        lay_bars_over(self)
        self.doubleClicked.connect(lambda index: self.opened.emit(index.data(_ROW).id))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(_LEAST_PX, 2 * ROW_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        title, hint = self.empty
        if not title or self.model().rowCount():
            return
        painter, box = painter_on(self.viewport()), area_of(self.viewport())
        box.adjust(_EMPTY_SIDE_PX, 0, -_EMPTY_SIDE_PX, 0)
        flags = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        painter.setFont(ui_font(12))
        height = painter.boundingRect(box, flags, hint).height() if hint else 0.0
        top = box.center().y() - (_EMPTY_TITLE_PX + height) / 2
        painter.setPen(color("text2"))
        painter.drawText(QRectF(box.left(), top + _EMPTY_TITLE_PX, box.width(), height), flags, hint)
        painter.setFont(ui_font(13, 600))
        painter.setPen(color("text"))
        painter.drawText(QRectF(box.left(), top, box.width(), _EMPTY_TITLE_PX), flags, title)

    def updateGeometries(self) -> None:
        """Lets the list scroll sideways: Qt takes the view's width for that of a single column."""
        super().updateGeometries()
        bar, width = self.horizontalScrollBar(), self.viewport().width()
        bar.setPageStep(width)
        bar.setRange(0, max(0, self.sizeHintForColumn(0) - width))

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        indexes = selected.indexes()
        if indexes and not self.silent:
            self.chosen.emit(indexes[0].data(_ROW).id)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Adds Return (on a Mac it would edit), Delete, F2 on a Mac, and Left and Right to scroll."""
        key, current = event.key(), self.currentIndex()
        if self.state() == QListView.State.EditingState:
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and current.isValid():
            self.opened.emit(current.data(_ROW).id)
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.remove_requested.emit()
        elif key == Qt.Key.Key_F2 and sys.platform == "darwin":
            self.edit(current)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() + (px(_SIDEWAYS_PX) if key == Qt.Key.Key_Right else -px(_SIDEWAYS_PX)))
        else:
            super().keyPressEvent(event)


class _Delegate(QStyledItemDelegate):
    """Paints a row on its ground: a hairline, or a rounded box if it is selected or under the pointer."""

    def __init__(self, columns: Sequence[Column], editable: str) -> None:
        super().__init__()
        self._columns = tuple(columns)
        self._editable = editable

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(px_size(QSize(_least_width(self._columns), 0)).width(), px(ROW_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        option = QStyleOptionViewItem(option)
        # The list gives a row the visible width.
        option.rect.setWidth(max(option.rect.width(), self.sizeHint(option, index).width()))
        painter.save()
        painter.scale(zoom(), zoom())
        self._paint_ground(painter, option)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        boxes = _boxes(design_rect(QRectF(option.rect)), self._columns)
        for column, box in zip(self._columns, boxes, strict=True):
            row = index.data(_ROW)
            if column.paint is not None:
                column.paint(Cell(painter, box, row, index.row(), selected))
                continue
            align, color = _RIGHT if column.right else _LEFT, theme.color(column.ink)
            draw_text(painter, box, getattr(row, column.name), ui_font(13, tabular=True), color, align)
        painter.restore()

    def helpEvent(
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: _Index
    ) -> bool:
        """Shows the full text of an elided cell, else the row's tooltip."""
        elided = elided_at(lambda painter: self.paint(painter, option, index), QPointF(event.pos()))
        show_tip(event, view, elided or str(index.data(Qt.ItemDataRole.ToolTipRole) or ""))
        return True

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        editor = QLineEdit(parent)
        set_font(editor, 13, 500)
        editor.setFrame(False)
        editor.setMaxLength(_MOST_CHARACTERS)
        editor.setAccessibleName(self._editable)
        editor.setProperty("kind", "editor")
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        name = _boxes(design_rect(QRectF(option.rect)), self._columns)[0]
        editor.setGeometry(px_rect(QRectF(name.left() - 2, name.top() + 4, name.width(), 24)).toRect())

    def _paint_ground(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        pill = design_rect(QRectF(option.rect)).adjusted(_INSET_PX, 0, -_INSET_PX, 0)
        state = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if not selected:
            line = QRectF(pill.left() + _PADDING_PX, pill.bottom() - 1, pill.width() - 2 * _PADDING_PX, 1)
            painter.fillRect(line, color("hair"))
        if selected or state & QStyle.StateFlag.State_MouseOver:
            fill = color("sel")
            fill.setAlphaF(1.0 if selected else 0.45)
            draw_box(painter, pill, _RADIUS_PX, fill)
        if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
            half = RING_PX / 2
            painter.setPen(QPen(color("focus"), RING_PX))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            radius = _RADIUS_PX - half
            painter.drawRoundedRect(pill.adjusted(half, half, -half, -half), radius, radius)


class _Header(PaintedRow):
    """The columns' titles with a hairline below."""

    def __init__(self, view: QListView, columns: Sequence[Column]) -> None:
        super().__init__()
        self._view = view
        self._columns = tuple(columns)
        set_fixed_height(self, _HEADER_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        view.horizontalScrollBar().valueChanged.connect(self.update)

    def paint_row(self, painter: QPainter) -> None:
        width = width_of(self)
        left = -design_px(self._view.horizontalScrollBar().value())
        row = QRectF(left, 0, max(width, _least_width(self._columns)), _HEADER_PX)
        for column, box in zip(self._columns, _boxes(row, self._columns), strict=True):
            draw_text(
                painter, box, column.title, ui_font(11), color("text2"), _RIGHT if column.right else _LEFT
            )
        painter.fillRect(QRectF(0, _HEADER_PX - 1, width, 1), color("hair"))


def _least_width(columns: Sequence[Column]) -> int:
    return 2 * (_INSET_PX + _PADDING_PX) + sum(column.width_px for column in columns)


def _boxes(row: QRectF, columns: Sequence[Column]) -> list[QRectF]:
    """Returns the box of each column, as high as the row."""
    left, boxes = row.left() + _INSET_PX + _PADDING_PX, []
    spare = max(0.0, row.width() - _least_width(columns))
    for column in columns:
        width = column.width_px + (spare if column.grows else 0.0)
        box = QRectF(left, row.top(), width, row.height())
        boxes.append(box.adjusted(column.before_px, 0, -column.after_px, 0))
        left += width
    return boxes
