"""DocumentList: the kept documents as rows, one selected.

Return and a double click attach, Delete removes, F2 renames in place.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListView

from app.controls.rows.row_list import RowList, RowView
from app.theme.theme import Theme
from app.windows.library import strings
from app.windows.library.row_delegate import COLUMNS, DocumentRowDelegate
from app.windows.library.row_model import DocumentModel
from app.windows.library.rows import LibraryRow

_REMOVE_KEYS = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)


class DocumentList(RowList[LibraryRow]):
    """The neighbour of one that is gone is selected."""

    attach_requested = Signal()
    remove_requested = Signal()
    renamed = Signal(str, str)  # document id, its new name

    def __init__(self, theme: Theme) -> None:
        model = DocumentModel()
        view = _View(theme, model)
        super().__init__(theme, model, view, COLUMNS)
        model.renamed.connect(self.renamed)
        view.attach_requested.connect(self.attach_requested)
        view.remove_requested.connect(self.remove_requested)

    def instead(self, place: int) -> str:
        return self.rows[min(max(0, place), len(self.rows) - 1)].id

    def rename(self) -> None:
        """Let the person edit the selected one's name."""
        index = self.model.index_of(self.selected)
        if index.isValid():
            self.view.setFocus()
            self.view.edit(index)


class _View(RowView):
    attach_requested = Signal()
    remove_requested = Signal()

    def __init__(self, theme: Theme, model: DocumentModel) -> None:
        super().__init__(theme, strings.LIST, model, DocumentRowDelegate)
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.doubleClicked.connect(lambda index: self.attach_requested.emit())

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
