"""RowModel: the rows of the list as a Qt model."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.windows.tables.rows import TableRow

ROW = Qt.ItemDataRole.UserRole
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class RowModel(QAbstractListModel):
    """Rows that stay in their places change without a reset, so that what is selected stays so."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[TableRow, ...] = ()

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """All of them."""
        return self._rows

    def show(self, rows: Sequence[TableRow]) -> None:
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

    def index_of(self, row_id: str) -> QModelIndex:
        """The row's index; an invalid one if it is not there."""
        for place, row in enumerate(self._rows):
            if row.id == row_id:
                return self.index(place)
        return QModelIndex()

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return row.spoken
            case Qt.ItemDataRole.ToolTipRole:
                return row.tip
            case _ if role == ROW:
                return row
        return None
