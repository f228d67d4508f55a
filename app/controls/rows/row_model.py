"""RowModel: the rows of a list, each a record of its own, as a Qt model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

ROW = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class Row(Protocol):
    """`id` names it while it exists; `spoken` is the row as assistive technology reads it."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def spoken(self) -> str: ...
    @property
    def tip(self) -> str: ...


_Row = TypeVar("_Row", bound=Row)


class RowModel(QAbstractListModel, Generic[_Row]):
    """Rows that stay in their places change without a reset, so that what is selected stays so."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[_Row, ...] = ()

    @property
    def rows(self) -> tuple[_Row, ...]:
        """All of them."""
        return self._rows

    def show(self, rows: Sequence[_Row]) -> None:
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

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
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
