"""TablesWindow: all tables with their occupancy, and the commands for the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QSize

from app.controls.buttons import Button
from app.controls.message_bar import MessageBar
from app.controls.record_table import RecordTable, first_row
from app.controls.text_label import TextLabel
from app.features.side_window import Hairline, SideWindow
from app.features.tables import strings
from app.features.tables.rows import (
    COLUMNS,
    Abilities,
    TableRow,
    abilities_of,
    learned_id,
    rows_of,
    size_text,
    table_id,
)
from app.features.tables.state import Tables
from app.session.status import recognised
from app.theme.measures import column_of, row_of
from core.events import LearnedTable, TableInfo

SIZE = QSize(1180, 480)
_MINIMUM = QSize(640, 320)


class TablesWindow(SideWindow):
    """`show_tables` after each change. The commands refer to the selected table."""

    def __init__(self) -> None:
        super().__init__(strings.TITLE, SIZE, _MINIMUM)
        self._tables = Tables()
        self.save = Button(strings.SAVE, small=True, icon_name="save")
        self.load = Button(strings.LOAD, small=True, icon_name="bolt")
        self.import_ = Button(strings.IMPORT, small=True, icon_name="import")
        self.export = Button(strings.EXPORT, small=True, icon_name="export")
        self.reset = Button(strings.RESET, "danger", small=True, icon_name="reset")
        # The outcome of the last command; families saved elsewhere; files that could not be used.
        self.told = MessageBar(strings.CLOSE_NOTICE)
        self.read_only, self.set_aside = MessageBar(), MessageBar()
        self.list = RecordTable[TableRow](strings.LIST, COLUMNS, instead=first_row)
        self.list.set_empty(strings.NONE_YET, strings.NONE_YET_HINT)
        self.sum = TextLabel("", 12, 16, tabular=True)
        self.folder = Button(strings.SHOW_FOLDER, "link", small=True)
        self._lay_out()
        self.list.row_selected.connect(lambda row_id: self._show_selected())
        self.show_tables(Tables(), alive=False)

    @property
    def selected(self) -> TableInfo | LearnedTable | None:
        chosen = self.list.selected
        for info in self._tables.tables:
            if table_id(info) == chosen:
                return info
        for table in self._tables.learned:
            if learned_id(table) == chosen:
                return table
        return None

    def show_tables(self, tables: Tables, *, alive: bool) -> None:
        """Shows the tables. `alive`: the worker runs."""
        self._tables, self._alive = tables, alive
        now = datetime.now()
        self.list.show_rows(rows_of(tables.tables, tables.learned, now))
        reasons = {info.family: info for info in tables.tables if info.why_not_saved}
        held = [
            strings.read_only(recognised(each.family_name), each.why_not_saved) for each in reasons.values()
        ]
        self.read_only.show_message(" ".join(held), bad=True)
        self._show_set_aside(tables.set_aside)
        count = len(tables.tables) + len(tables.learned)
        self.sum.setText(strings.tables(count, size_text(tables.disk_bytes) if tables.disk_bytes else ""))
        self._show_selected()

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Shows the progress or outcome of a command; an empty text hides it."""
        self.told.show_message(text, bad=bad)

    # ---- inside

    def _lay_out(self) -> None:
        privacy = TextLabel(strings.PRIVACY, 11, 15, wrap=True)
        head = row_of((self.sum, 1), self.folder, gap=8)
        foot = column_of(head, privacy, gap=4, margins=(26, 8, 18, 12))
        commands = ((self.save, self.load), (self.import_, self.export), (self.reset,))
        header = self.make_header(*commands, subtitle=strings.SUBTITLE)
        bars = (self.told, self.read_only, self.set_aside)
        column_of(header, *bars, (self.list, 1), Hairline(), foot, parent=self)
        self.list.setFocus()

    def _show_set_aside(self, files: Sequence[str]) -> None:
        """Shows names of files that could not be used, or sentences about them."""
        if not files:
            self.set_aside.show_message("")
            return
        head = strings.set_aside(len(files))
        first = files[0] if len(files) == 1 else f"{files[0]} {strings.more(len(files) - 1)}"
        self.set_aside.show_message(f"{head} {first}", bad=True, full="\n".join((head, *files)))

    def _show_selected(self) -> None:
        self._enable(abilities_of(self._tables, self.selected, alive=self._alive))

    def _enable(self, abilities: Abilities) -> None:
        for button, why_not, help_text in (
            (self.save, abilities.save, strings.SAVE_HELP),
            (self.load, abilities.load, strings.LOAD_HELP),
            (self.import_, abilities.import_, strings.IMPORT_HELP),
            (self.export, abilities.export, strings.EXPORT_HELP),
            (self.reset, abilities.reset, strings.RESET_HELP),
        ):
            button.setEnabled(not why_not)
            button.setToolTip(why_not or help_text)
            button.setAccessibleDescription(why_not or help_text)
