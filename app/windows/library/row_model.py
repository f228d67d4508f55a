"""DocumentModel: the rows of the list as a Qt model. A name that was edited is asked for, not taken."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal

from app.controls.rows.row_model import Index, RowModel
from app.windows.library.rows import LibraryRow


class DocumentModel(RowModel[LibraryRow]):
    """Its names can be edited in place."""

    renamed = Signal(str, str)  # document id, its new name

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        shown = Qt.ItemDataRole.DisplayRole if role == Qt.ItemDataRole.EditRole else role
        return super().data(index, shown)

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        self.renamed.emit(self.rows[index.row()].id, str(value))
        return True
