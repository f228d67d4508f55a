"""RecordTable: records as rows in columns under a header, one of them selected.

Keyboard, selection, scrolling, header and accessibility are QTreeView's, the look is the style sheet's. A
window declares its columns and gives rows. A table narrower than its columns scrolls sideways. Lengths are
design pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QHelpEvent, QKeyEvent, QPainter, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from app.controls.scroll_bar import lay_bars_over
from app.controls.shapes import draw_box, draw_ring, draw_text, elided_at, show_tip
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.measures import STRETCH, column_of, set_font
from app.theme.theme import color
from app.theme.zoom import design_rect, px, px_rect, px_size, zoom

ROW_PX = 46
_HEADER_PX = 28
_LEAST_PX = 120
# From the pill of a row to the table's edge, and from a cell's text to its neighbours and to the pill's end.
_INSET_PX, _PADDING_PX, _END_PX = 8, 8, 12
_LINES_PX = 18, 14
_HEADING_PX = 34
_RADIUS_PX = 8
_ICON_PX, _ICON_GAP_PX = 14, 8
_MOST_CHARACTERS = 200
METER_PX, _METER_HEIGHT_PX = 150, 4
_EMPTY_SIDE_PX = 40
_NOWHERE = QModelIndex()
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
_Index = QModelIndex | QPersistentModelIndex


class Row(Protocol):
    """`id` identifies the row; `spoken` is its text for assistive technology, `tip` its tooltip.

    A row without an id is the title of the rows below it.
    """

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def spoken(self) -> str: ...
    @property
    def tip(self) -> str: ...


_Row = TypeVar("_Row", bound=Row)


class Column(Struct, frozen=True):
    """Shows the row's attribute `name`, in the colour `ink` of the palette, which may depend on the row.

    `below` is the attribute with smaller lines below, if it has any; `paint_below` paints one, given its box
    and the row. `icon` returns a pixmap for a row, its index and the screen dots of a design pixel.
    `width_px` includes a padding of 8 px at each side. A column that `grows` gets the spare width.
    """

    name: str
    title: str
    width_px: int
    right: bool = False
    grows: bool = False
    ink: str | Callable[[Any], str] = "text"
    below: str = ""
    paint_below: Callable[[QPainter, QRectF, Any], None] | None = None
    icon: Callable[[Any, int, float], QPixmap | None] | None = None


def swatch(side_px: int, radius_px: float, ratio: float, fill: str, frame: str = "") -> QPixmap:
    """Returns an icon: a rounded box of `side_px` in colours of the palette, open without `fill`."""
    pixmap = QPixmap(QSize(_ICON_PX, _ICON_PX) * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    edge = (_ICON_PX - side_px) / 2
    painter = QPainter(pixmap)
    box = QRectF(edge, edge, side_px, side_px)
    draw_box(painter, box, radius_px, color(fill) if fill else None, color(frame) if frame else None)
    painter.end()
    return pixmap


def draw_meter(
    painter: QPainter, box: QRectF, share: float, ink: str = "series_blue", mark: float | None = None
) -> None:
    """Draws a bar at the left of `box`, filled to `share` (0 to 1) in a colour of the palette, with a `mark`
    at that share.
    """
    bar = QRectF(box.left(), box.center().y() - 1, METER_PX, _METER_HEIGHT_PX)
    draw_box(painter, bar, 2, color("hair2"))
    if share > 0:
        # A first sliver is at least as wide as the bar's rounded ends.
        used = QRectF(bar.left(), bar.top(), max(2.0, min(1.0, share) * METER_PX), _METER_HEIGHT_PX)
        draw_box(painter, used, min(2.0, used.width() / 2), color(ink))
    if mark is not None:
        painter.fillRect(QRectF(bar.left() + METER_PX * mark - 1, bar.top() - 2, 1.5, 8), color("text"))


class EditedInPlace:
    """A base, before Qt's, of a view whose rows stay as they are while a person edits one of them."""

    _later: tuple[Callable[[], object], ...] = ()

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)  # type: ignore[misc]
        later, self._later = self._later, ()
        for change in later:
            self.change_rows(change)

    def change_rows(self, change: Callable[[], object]) -> None:
        """Calls `change`, after the end of editing if a row is being edited."""
        assert isinstance(self, QAbstractItemView)
        if self.state() == QAbstractItemView.State.EditingState:
            self._later += (change,)
        else:
            change()


class RecordTable(EditedInPlace, QTreeView, Generic[_Row]):
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
        self._columns = tuple(columns)
        self._rows = _Model(self._columns, bool(editable), self)
        self._instead = instead or neighbour
        self._chosen = ""
        self._silent = False
        self.empty = "", ""
        self._empty_title = TextLabel("", 13, 20, "text", weight=600, align=Qt.AlignmentFlag.AlignHCenter)
        self._empty_hint = TextLabel("", 12, 16, wrap=True, align=Qt.AlignmentFlag.AlignHCenter)
        self.setModel(self._rows)
        self.setItemDelegate(_Delegate(self._columns, editable, self))
        self.setRootIsDecorated(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QTreeView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QTreeView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QTreeView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        self.setAccessibleName(name)
        self.viewport().setAutoFillBackground(False)
        self.header().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.header().setStretchLastSection(False)
        margins = (_EMPTY_SIDE_PX, 0, _EMPTY_SIDE_PX, 0)
        column_of(
            STRETCH, self._empty_title, self._empty_hint, STRETCH, margins=margins, parent=self.viewport()
        )
        lay_bars_over(self)
        self.doubleClicked.connect(lambda index: self.opened.emit(self.rows[index.row()].id))

    @property
    def selected(self) -> str:
        """The selected row's id; empty if none is."""
        return self._chosen

    @property
    def rows(self) -> tuple[_Row, ...]:
        return self._rows.rows

    def index_of(self, row_id: str) -> QModelIndex:
        """Returns the index of a row's first cell; an invalid one for an unknown id."""
        places = (place for place, row in enumerate(self.rows) if row.id == row_id != "")
        return next((self._rows.index(place, 0) for place in places), QModelIndex())

    def show_rows(self, rows: Sequence[_Row]) -> None:
        """Replaces the rows. Selection and scroll position stay if the selected row does."""
        self.change_rows(lambda: self._show_rows(rows))

    def _show_rows(self, rows: Sequence[_Row]) -> None:
        ids, bar = [row.id for row in self.rows if row.id], self.verticalScrollBar()
        place, at = ids.index(self._chosen) if self._chosen in ids else -1, bar.value()
        titles = [number for number, row in enumerate(rows) if not row.id]
        records = tuple(row for row in rows if row.id)
        self._silent = True
        self._rows.show(rows)
        self._silent = False
        self.setUniformRowHeights(not titles)
        for number in titles:
            self.setFirstColumnSpanned(number, QModelIndex(), True)
        if self.index_of(self._chosen).isValid():
            self.select(self._chosen, scroll=False)
            bar.setValue(at)
        else:
            self.select(self._instead(records, place).id if records else "")
        self._show_empty()

    def set_empty(self, title: str, hint: str = "") -> None:
        """Sets the message in the middle of the table while it has no rows."""
        self.empty = title, hint
        self._show_empty()

    def select(self, row_id: str, *, scroll: bool = True) -> None:
        """Selects the row of that id; an unknown one selects nothing."""
        self.change_rows(lambda: self._select(row_id, scroll))

    def _select(self, row_id: str, scroll: bool) -> None:
        index = self.index_of(row_id)
        if index.isValid() and self.currentIndex() != index:
            self._silent = True
            self.setCurrentIndex(index)
            self._silent = False
        if index.isValid() and scroll:
            self.scrollTo(index)
        self._choose(row_id if index.isValid() else "")

    def rename(self) -> None:
        self.setFocus()
        self.edit(self.index_of(self._chosen))

    # ---- Qt's

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(_LEAST_PX, _HEADER_PX + 2 * ROW_PX))

    def updateGeometries(self) -> None:
        """Gives the columns their widths, at this zoom."""
        spare = self.viewport().width() - sum(px(column.width_px) for column in self._columns)
        spare -= 2 * px(_INSET_PX + _END_PX - _PADDING_PX)
        for at, column in enumerate(self._columns):
            ends = (at == 0) + (at == len(self._columns) - 1)
            width = px(column.width_px) + ends * px(_INSET_PX + _END_PX - _PADDING_PX)
            self.header().resizeSection(at, width + (max(0, spare) if column.grows else 0))
        super().updateGeometries()

    def scrollTo(
        self, index: _Index, hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible
    ) -> None:
        """Scrolls to the row and a title above it, never sideways."""
        across = self.horizontalScrollBar().value()
        above = self._rows.index(index.row() - 1, 0)
        if above.isValid() and not self.rows[above.row()].id:
            super().scrollTo(above, hint)
        super().scrollTo(index, hint)
        self.horizontalScrollBar().setValue(across)

    def currentChanged(self, current: _Index, previous: _Index) -> None:
        """Keeps the first cell current, which assistive technology reads as the row."""
        super().currentChanged(current, previous)
        if current.column() > 0:
            flag = QItemSelectionModel.SelectionFlag.NoUpdate
            self.selectionModel().setCurrentIndex(current.sibling(current.row(), 0), flag)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        indexes = selected.indexes()
        if indexes and not self._silent:
            self._choose(self.rows[indexes[0].row()].id)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Adds Return (on a Mac it would edit), Delete and F2 (which Qt leaves out on a Mac)."""
        key = event.key()
        if self.state() == QTreeView.State.EditingState:
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._chosen:
            self.opened.emit(self._chosen)
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.remove_requested.emit()
        elif key == Qt.Key.Key_F2:
            self.rename()
        else:
            super().keyPressEvent(event)

    def drawRow(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        super().drawRow(painter, option, index)
        keys = option.state & QStyle.StateFlag.State_KeyboardFocusChange
        if self.hasFocus() and keys and index.row() == self.currentIndex().row():
            ring = QRectF(option.rect).adjusted(px(_INSET_PX), 0, -px(_INSET_PX), 0)
            draw_ring(painter, ring, px(_RADIUS_PX))

    # ---- inside

    def _show_empty(self) -> None:
        for label, text in zip((self._empty_title, self._empty_hint), self.empty, strict=True):
            label.setText(text)
            label.setVisible(bool(text) and not self.rows)
        self.setAccessibleDescription("" if self.rows else ". ".join(filter(None, self.empty)))

    def _choose(self, row_id: str) -> None:
        if row_id != self._chosen:
            self._chosen = row_id
            self.row_selected.emit(row_id)


def first_row(rows: tuple[_Row, ...], place: int) -> _Row:
    return rows[0]


def neighbour(rows: tuple[_Row, ...], place: int) -> _Row:
    return rows[min(max(0, place), len(rows) - 1)]


class _Model(QAbstractTableModel):
    """Rows that keep their places change without a reset, which would lose the selection."""

    def __init__(self, columns: Sequence[Column], editable: bool, table: RecordTable[Any]) -> None:
        super().__init__(table)
        self._columns = columns
        self._editable = editable
        self._table = table
        self.rows: tuple[Any, ...] = ()

    def show(self, rows: Sequence[Any]) -> None:
        rows = tuple(rows)
        if [row.id for row in rows] == [row.id for row in self.rows]:
            self.rows = rows
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self._columns) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._columns)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        if not self.rows[index.row()].id:
            return Qt.ItemFlag.NoItemFlags
        editable = Qt.ItemFlag.ItemIsEditable if self._editable and index.column() == 0 else 0
        return super().flags(index) | Qt.ItemFlag(editable)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        column = self._columns[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int((_RIGHT if column.right else _LEFT) | Qt.AlignmentFlag.AlignVCenter)
        return column.title if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """The row's `spoken` is the accessible text of its first cell."""
        row, first = self.rows[index.row()], index.column() == 0
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.tip
        if role == Qt.ItemDataRole.AccessibleTextRole and first:
            return row.spoken
        if role == Qt.ItemDataRole.EditRole and first:
            return row.title
        return (
            getattr(row, self._columns[index.column()].name) if role == Qt.ItemDataRole.DisplayRole else None
        )

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        self._table.renamed.emit(self.rows[index.row()].id, str(value))
        return True


class RowDelegate(QStyledItemDelegate):
    """A delegate whose rows have tooltips of elided texts, and a title that is edited in place."""

    def editor_name(self, index: _Index) -> str:
        """The accessible name of the editor."""
        raise NotImplementedError

    def helpEvent(
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: _Index
    ) -> bool:
        """Shows the full text of an elided cell or line, else the row's tooltip."""
        elided = elided_at(lambda painter: self.paint(painter, option, index), QPointF(event.pos()))
        show_tip(event, view, elided or str(index.data(Qt.ItemDataRole.ToolTipRole) or ""))
        return True

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        editor = QLineEdit(parent)
        set_font(editor, 13)
        editor.setFrame(False)
        editor.setMaxLength(_MOST_CHARACTERS)
        editor.setAccessibleName(self.editor_name(index))
        editor.setProperty("kind", "editor")
        return editor


class _Delegate(RowDelegate):
    """Paints the texts of a cell over the ground that the style sheet gives it."""

    def __init__(self, columns: Sequence[Column], editable: str, table: RecordTable[Any]) -> None:
        super().__init__(table)
        self._columns = columns
        self._editable = editable
        self._table = table

    def editor_name(self, index: _Index) -> str:
        return self._editable

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        row = self._table.rows[index.row()]
        below = (str(getattr(row, column.below)).count("\n") for column in self._columns if column.below)
        return QSize(0, px(ROW_PX + _LINES_PX[1] * max(below, default=0) if row.id else _HEADING_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        row, column = self._table.rows[index.row()], self._columns[index.column()]
        box = self._box(option, index)
        ground = QStyleOptionViewItem(option)
        self.initStyleOption(ground, index)
        ground.text = ""
        if row.id:
            self._table.style().drawControl(
                QStyle.ControlElement.CE_ItemViewItem, ground, painter, self._table
            )
        ink = column.ink if isinstance(column.ink, str) else column.ink(row)
        if ink == "danger" and option.state & QStyle.StateFlag.State_Selected:
            ink = "text"  # too little contrast
        align = _RIGHT if column.right else _LEFT
        painter.save()
        painter.scale(zoom(), zoom())
        if column.icon is not None:
            icon = column.icon(row, index.row(), painter.device().devicePixelRatioF() * zoom())
            if icon is not None:
                painter.drawPixmap(QPointF(box.left(), box.center().y() - _ICON_PX / 2), icon)
                box.setLeft(box.left() + _ICON_PX + _ICON_GAP_PX)
        below: Any = getattr(row, column.below) if column.below else None
        lines = [] if below is None else str(below).splitlines()
        first, *others = _lines(box, len(lines))
        font = ui_font(13, 500 if column.below else 400, tabular=True) if row.id else ui_font(11, 600)
        draw_text(painter, first, getattr(row, column.name), font, color(ink if row.id else "text2"), align)
        if column.paint_below is not None and lines:
            column.paint_below(painter, others[0], row)
        else:
            for line, text in zip(others, lines, strict=True):
                draw_text(painter, line, text, ui_font(11, tabular=True), color("text2"), align)
        painter.restore()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        """Places the editor of a title, and a widget in another cell."""
        box = self._box(option, index)
        if index.column() == 0:
            left = _ICON_PX + _ICON_GAP_PX - 2 if self._columns[0].icon else -2
            box = QRectF(box.left() + left, box.top() + 4, box.width() - left, 24)
        editor.setGeometry(px_rect(box).toRect())

    def _box(self, option: QStyleOptionViewItem, index: _Index) -> QRectF:
        """The box of a cell's icon and texts, in design pixels."""
        ends = _INSET_PX + _END_PX
        left = ends if index.column() == 0 else _PADDING_PX
        right = ends if index.column() == len(self._columns) - 1 else _PADDING_PX
        return design_rect(QRectF(option.rect)).adjusted(left, 0, -right, 0)


def _lines(box: QRectF, below: int) -> list[QRectF]:
    """Returns the boxes of a cell's first line and of those below it, centred."""
    heights = _LINES_PX[0], *[_LINES_PX[1]] * below
    top = box.center().y() - sum(heights) / 2
    tops = [top + sum(heights[:at]) for at in range(len(heights))]
    return [QRectF(box.left(), y, box.width(), high) for y, high in zip(tops, heights, strict=True)]
