"""RequestList: the requests as rows, the newest first, one selected."""

from __future__ import annotations

from app.controls.rows.row_list import RowList, RowView
from app.controls.rows.row_model import RowModel
from app.theme.theme import Theme
from app.windows.server import strings
from app.windows.server.row_delegate import COLUMNS, RequestRowDelegate
from app.windows.server.rows import RequestRow


class RequestList(RowList[RequestRow]):
    """Where none was selected, the one that is being answered is, or the newest."""

    def __init__(self, theme: Theme) -> None:
        model = RowModel[RequestRow]()
        super().__init__(theme, model, RowView(theme, strings.LIST, model, RequestRowDelegate), COLUMNS)

    def instead(self, place: int) -> str:
        return next((row.id for row in self.rows if row.level == "live"), self.rows[0].id)
