"""TableList: the tables as rows, one selected."""

from __future__ import annotations

from app.controls.rows.row_list import RowList, RowView
from app.controls.rows.row_model import RowModel
from app.theme.theme import Theme
from app.windows.tables import strings
from app.windows.tables.row_delegate import COLUMNS, TableRowDelegate
from app.windows.tables.rows import TableRow


class TableList(RowList[TableRow]):
    """The first one is selected where none was."""

    def __init__(self, theme: Theme) -> None:
        model = RowModel[TableRow]()
        super().__init__(theme, model, RowView(theme, strings.LIST, model, TableRowDelegate), COLUMNS)
