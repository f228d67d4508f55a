"""Every table there is, in one record: those that chats teach and those learned beforehand."""

from __future__ import annotations

from core.events import TableList
from core.system.paths import tables_dir
from core.tables.memory import TableMemory
from core.tables.prebuilt import built


def table_list(memory: TableMemory, request: str) -> TableList:
    """The answer to `list_tables`. Reads every file that is not in memory."""
    tables, set_aside = memory.listing()
    learned, refused = built.listing()
    return TableList(request, str(tables_dir()), tables, set_aside + refused, learned)
