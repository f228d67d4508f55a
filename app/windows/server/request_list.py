"""RequestList: the requests as rows under a header, the newest first, one selected."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QRectF, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QListView, QSizePolicy, QVBoxLayout, QWidget

from app.controls.row_model import ROW, RowModel
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.measures import add_gap, set_fixed_height
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on
from app.windows.server import strings
from app.windows.server.row_delegate import RIGHT, RowDelegate, columns
from app.windows.server.rows import RequestRow

_HEADER_PX = 28
_ABOVE_PX = 5
_TITLES = {
    "client": strings.CLIENT,
    "state": strings.STATE,
    "tokens": strings.TOKENS,
    "speed": strings.SPEED,
    "accepted": strings.ACCEPTED,
    "cached": strings.CACHED,
    "first_token": strings.FIRST_TOKEN,
    "came": strings.CAME,
}


class RequestList(QWidget):
    """`row_selected` tells a person's choice, and what is selected where there was none."""

    row_selected = Signal(str)  # the request's id; empty if there is none

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chosen = ""
        self.view = _View(theme)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(_Header(theme))
        add_gap(layout, _ABOVE_PX)
        layout.addWidget(self.view, 1)
        self.view.chosen.connect(self._choose)

    @property
    def selected(self) -> str:
        """The selected request's id; empty if none is."""
        return self._chosen

    @property
    def rows(self) -> tuple[RequestRow, ...]:
        """What is shown."""
        return self.view.model_.rows

    def show_rows(self, rows: Sequence[RequestRow]) -> None:
        """Show these; what is selected stays so if it is there, else the one that is being answered is, or
        the newest.
        """
        bar = self.view.verticalScrollBar()
        at = bar.value()
        self.view.silent = True
        self.view.model_.show(rows)
        self.view.silent = False
        there = any(row.id == self._chosen for row in rows)
        first = next((row.id for row in rows if row.level == "live"), rows[0].id if rows else "")
        self.select(self._chosen if there else first, scroll=not there)
        if there:
            bar.setValue(at)

    def select(self, row_id: str, *, scroll: bool = True) -> None:
        """Select the row of that id; an empty one selects nothing."""
        index = self.view.model_.index_of(row_id)
        if index.isValid() and self.view.currentIndex() != index:
            self.view.silent = True
            self.view.selectionModel().setCurrentIndex(
                index, QItemSelectionModel.SelectionFlag.ClearAndSelect
            )
            self.view.silent = False
        if index.isValid() and scroll:
            self.view.scrollTo(index)
        self._choose(row_id if index.isValid() else "")

    def _choose(self, row_id: str) -> None:
        if row_id != self._chosen:
            self._chosen = row_id
            self.row_selected.emit(row_id)


class _View(QListView):
    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.silent = False
        self.model_: RowModel[RequestRow] = RowModel(self)
        self.setModel(self.model_)
        self.setItemDelegate(RowDelegate(theme, self))
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMouseTracking(True)
        self.setAccessibleName(strings.LIST)
        self.viewport().setAutoFillBackground(False)
        OverlayScrollBar(theme, self)
        theme.changed.connect(self.viewport().update)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        indexes = selected.indexes()
        if indexes and not self.silent:
            row = indexes[0].data(ROW)
            assert isinstance(row, RequestRow)
            self.chosen.emit(row.id)


class _Header(QWidget):
    """The columns' names, 28 high, with hairlines."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        set_fixed_height(self, _HEADER_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = area_of(self)
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        for name, column in columns(box).items():
            align = right if name in RIGHT else left
            draw_text(painter, column, _TITLES[name], ui_font(11), self._theme.color("text2"), align)
        painter.fillRect(QRectF(0, box.bottom() - 1, box.width(), 1), self._theme.color("hair"))
        painter.end()
