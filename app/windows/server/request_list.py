"""RequestList: the requests as rows, the newest first, one selected. Delete deletes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent

from app.controls.rows.row_list import RowList, RowView
from app.controls.rows.row_model import RowModel
from app.theme.theme import Theme
from app.windows.server import strings
from app.windows.server.row_delegate import COLUMNS, RequestRowDelegate
from app.windows.server.rows import RequestRow


class RequestList(RowList[RequestRow]):
    """Where none was selected, the one that is being answered is, or the newest."""

    delete_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        model = RowModel[RequestRow]()
        view = _View(theme, strings.LIST, model, RequestRowDelegate)
        super().__init__(theme, model, view, COLUMNS)
        view.delete_requested.connect(self.delete_requested)

    @property
    def selected_row(self) -> RequestRow | None:
        """The selected request."""
        return next((row for row in self.rows if row.id == self.selected), None)

    def instead(self, place: int) -> str:
        if place >= 0:
            return self.rows[min(place, len(self.rows) - 1)].id
        return next((row.id for row in self.rows if row.level == "live"), self.rows[0].id)


class _View(RowView):
    delete_requested = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.delete_requested.emit()
            event.accept()
        else:
            super().keyPressEvent(event)
