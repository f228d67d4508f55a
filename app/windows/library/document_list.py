"""DocumentList: the kept documents as rows under a header, one selected.

Return and a double click attach, Delete removes, F2 renames in place.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QFrame, QListView, QSizePolicy, QVBoxLayout, QWidget

from app.controls.row_model import ROW
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.measures import add_gap, set_fixed_height
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on
from app.windows.library import strings
from app.windows.library.row_delegate import RowDelegate, columns
from app.windows.library.row_model import DocumentModel
from app.windows.library.rows import LibraryRow

_HEADER_PX = 28
_ABOVE_PX = 5
_TITLES = {
    "name": strings.NAME,
    "tokens": strings.TOKENS,
    "added": strings.ADDED,
    "used": strings.USED,
}
_REMOVE_KEYS = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)


class DocumentList(QWidget):
    """`row_selected` tells a person's choice and what is chosen when rows come and go."""

    row_selected = Signal(str)  # document id; empty if there is none
    attach_requested = Signal()
    remove_requested = Signal()
    renamed = Signal(str, str)  # document id, its new name

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chosen = ""
        self._model = DocumentModel(self)
        self.view = _View(theme, self._model)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(_Header(theme))
        add_gap(layout, _ABOVE_PX)
        layout.addWidget(self.view, 1)
        self._model.renamed.connect(self.renamed)
        self.view.chosen.connect(self._choose)
        self.view.attach_requested.connect(self.attach_requested)
        self.view.remove_requested.connect(self.remove_requested)

    @property
    def selected(self) -> str:
        """The selected document's id; empty if none is."""
        return self._chosen

    @property
    def rows(self) -> tuple[LibraryRow, ...]:
        """What is shown."""
        return self._model.rows

    def show_rows(self, rows: Sequence[LibraryRow]) -> None:
        """Show these; what is selected stays so if it is there, else its neighbour or the first one is."""
        place = self._model.index_of(self._chosen).row()
        self.view.silent = True
        self._model.show(rows)
        self.view.silent = False
        if any(row.id == self._chosen for row in rows):
            self.select(self._chosen)
        else:
            self.select(rows[min(place, len(rows) - 1)].id if rows and place >= 0 else "")

    def select(self, document_id: str) -> None:
        """Select a row; an empty id is the first one's."""
        rows = self._model.rows
        document_id = document_id or (rows[0].id if rows else "")
        index = self._model.index_of(document_id)
        if index.isValid():
            self.view.silent = True
            flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
            self.view.selectionModel().setCurrentIndex(index, flag)
            self.view.silent = False
            self.view.scrollTo(index)
        self._choose(document_id if index.isValid() else "")

    def rename(self) -> None:
        """Let the person edit the selected one's name."""
        index = self._model.index_of(self._chosen)
        if index.isValid():
            self.view.setFocus()
            self.view.edit(index)

    def _choose(self, document_id: str) -> None:
        if document_id != self._chosen:
            self._chosen = document_id
            self.row_selected.emit(document_id)


class _View(QListView):
    chosen = Signal(str)
    attach_requested = Signal()
    remove_requested = Signal()

    def __init__(self, theme: Theme, model: DocumentModel) -> None:
        super().__init__()
        self.silent = False
        self.setModel(model)
        self.setItemDelegate(RowDelegate(theme, self))
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setAccessibleName(strings.LIST)
        self.viewport().setAutoFillBackground(False)
        OverlayScrollBar(theme, self)
        self.doubleClicked.connect(self._double_clicked)
        theme.changed.connect(self.viewport().update)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        indexes = selected.indexes()
        if indexes and not self.silent:
            row = indexes[0].data(ROW)
            assert isinstance(row, LibraryRow)
            self.chosen.emit(row.id)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        editing = self.state() == QListView.State.EditingState
        # On a Mac Return renames in a list of files; here it does what the list is for.
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not editing:
            self.attach_requested.emit()
        elif event.key() in _REMOVE_KEYS and not editing:
            self.remove_requested.emit()
        elif event.key() == Qt.Key.Key_F2 and sys.platform == "darwin":
            self.edit(self.currentIndex())
        else:
            super().keyPressEvent(event)
            return
        event.accept()

    def _double_clicked(self, index: QModelIndex) -> None:
        self.attach_requested.emit()


class _Header(QWidget):
    """The columns' names, 28 high, with a hairline below."""

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
            align = right if name == "tokens" else left
            draw_text(painter, column, _TITLES[name], ui_font(11), self._theme.color("text2"), align)
        hair = self._theme.color("hair")
        painter.fillRect(QRectF(0, box.bottom() - 1, box.width(), 1), hair)
