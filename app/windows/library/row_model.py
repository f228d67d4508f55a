"""RowModel: the rows of the list as a Qt model. A name that was edited is asked for, not taken."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.windows.library.rows import LibraryRow

ROW = Qt.ItemDataRole.UserRole
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class RowModel(QAbstractListModel):
    """Rows that stay in their places change without a reset, so that what is selected stays so."""

    renamed = Signal(str, str)  # document id, its new name

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[LibraryRow, ...] = ()

    @property
    def rows(self) -> tuple[LibraryRow, ...]:
        """All of them."""
        return self._rows

    def show(self, rows: Sequence[LibraryRow]) -> None:
        """Show these."""
        rows = tuple(rows)
        if [row.id for row in rows] == [row.id for row in self._rows]:
            self._rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def index_of(self, document_id: str) -> QModelIndex:
        """The row's index; an invalid one if it is not there."""
        for place, row in enumerate(self._rows):
            if row.id == document_id:
                return self.index(place)
        return QModelIndex()

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole | Qt.ItemDataRole.ToolTipRole:
                return row.name
            case Qt.ItemDataRole.AccessibleTextRole:
                return row.spoken
            case _ if role == ROW:
                return row
        return None

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        self.renamed.emit(self._rows[index.row()].id, str(value))
        return True
