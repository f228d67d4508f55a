"""ChatRows: the sidebar's rows as a Qt model: group titles, and chats under them.

Thousands of rows cost a list and nothing else: what a row shows is asked for when it is painted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.panels.chats import strings
from app.panels.chats.chat_row import ChatRow, grouped, time_label

ROW = Qt.ItemDataRole.UserRole
TIME = Qt.ItemDataRole.UserRole + 1
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class ChatRows(QAbstractListModel):
    """A group title is a row without a `ROW`."""

    renamed = Signal(str, str)  # chat id, title as typed

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[str | ChatRow] = []
        self._places: dict[str, int] = {}
        self._now = datetime.now()
        self._found = False

    def show_chats(self, chats: Sequence[ChatRow], now: datetime) -> None:
        """In groups by age."""
        rows: list[str | ChatRow] = []
        for title, members in grouped(chats, now):
            rows += [title, *members]
        self._show(rows, now, found=False)

    def show_results(self, title: str, results: Sequence[ChatRow], now: datetime) -> None:
        """As found, best first, under one title."""
        self._show([title, *results], now, found=True)

    def set_busy(self, chat_id: str) -> None:
        """The chat that is being answered; empty if none is. A title that is being edited stays so."""
        for place, row in enumerate(self._rows):
            if isinstance(row, ChatRow) and row.busy != (row.id == chat_id):
                self._rows[place] = replace(row, busy=row.id == chat_id)
                self.dataChanged.emit(self.index(place), self.index(place))

    def index_of(self, chat_id: str) -> QModelIndex:
        """The chat's row; an invalid index if it is not there."""
        place = self._places.get(chat_id)
        return self.index(place) if place is not None else QModelIndex()

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self._rows[index.row()]
        if isinstance(row, str):
            shown = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole)
            return row if role in shown else None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.title or strings.UNTITLED
            case Qt.ItemDataRole.EditRole | Qt.ItemDataRole.ToolTipRole:
                return row.title
            case Qt.ItemDataRole.AccessibleTextRole:
                marks = (
                    strings.ARCHIVED if row.archived else "",
                    strings.PINNED if row.pinned else "",
                    strings.BUSY if row.busy else "",
                )
                parts = (row.title or strings.UNTITLED, row.passage, *marks)
                return ", ".join(part for part in parts if part)
            case _ if role == ROW:
                return row
            case _ if role == TIME:
                if row.archived and self._found:
                    return strings.ARCHIVED
                return time_label(row.when, self._now)
        return None

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row = self._rows[index.row()]
        if role != Qt.ItemDataRole.EditRole or isinstance(row, str):
            return False
        self.renamed.emit(row.id, str(value))
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], str):
            return Qt.ItemFlag.NoItemFlags
        flag = Qt.ItemFlag
        return flag.ItemIsEnabled | flag.ItemIsSelectable | flag.ItemIsEditable | flag.ItemNeverHasChildren

    def _show(self, rows: list[str | ChatRow], now: datetime, *, found: bool) -> None:
        self.beginResetModel()
        self._rows, self._now, self._found = rows, now, found
        self._places = {row.id: place for place, row in enumerate(rows) if isinstance(row, ChatRow)}
        self.endResetModel()
