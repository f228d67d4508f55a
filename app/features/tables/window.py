"""TablesWindow: all tables, the commands for the selected one, and how tables learn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button, Kind
from app.controls.message_bar import MessageBar
from app.controls.question import Question
from app.controls.record_table import RecordTable, first_row
from app.controls.scroll_bar import ScrollPage
from app.features.side_window import Hairline, SideWindow
from app.features.tables import strings
from app.features.tables.detail import TableDetail
from app.features.tables.learning import WIDTH_PX as LEARNING_PX
from app.features.tables.learning import Learning
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
from app.session.worker.families import recognised
from app.theme.measures import (
    lay_beside,
    set_maximum_height,
)
from app.theme.theme import Theme
from app.theme.zoom import width_of
from core.events import LearnedTable, TableInfo

SIZE = QSize(1180, 732)
_MINIMUM = QSize(1020, 620)
_FOOT_PX = 366
# In a narrower window the learning panel is below the charts.
_BESIDE_FROM_PX = LEARNING_PX + 440
_LIST_SHARE, _FOOT_SHARE = 2, 3


class TablesWindow(SideWindow):
    """`show_tables` after each change. The commands refer to the selected table."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.TITLE, SIZE, _MINIMUM, parent)
        self._tables = Tables()
        self.save = Button(theme, strings.SAVE, small=True, icon_name="save")
        self.load = Button(theme, strings.LOAD, small=True, icon_name="bolt")
        self.import_ = Button(theme, strings.IMPORT, small=True, icon_name="import")
        self.export = Button(theme, strings.EXPORT, small=True, icon_name="export")
        self.reset = Button(theme, strings.RESET, "danger", small=True, icon_name="reset")
        # The outcome of the last command; families saved elsewhere; files that could not be used.
        self.told = MessageBar(theme, strings.CLOSE_NOTICE)
        self.read_only, self.set_aside = MessageBar(theme), MessageBar(theme)
        self.list = RecordTable[TableRow](theme, strings.LIST, COLUMNS, instead=first_row)
        self.detail = TableDetail(theme)
        self.learning = Learning(theme)
        self._lay_out()
        self.list.row_selected.connect(lambda row_id: self._show_selected())
        theme.zoomed.connect(self._arrange)
        self.show_tables(Tables(), alive=False)

    @property
    def selected(self) -> TableInfo | LearnedTable | None:
        """The selected table."""
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
        self.learning.show_sum(len(tables.tables) + len(tables.learned), size_text(tables.disk_bytes))
        self.learning.rehearsal.show_rehearsal(tables.rehearsal)
        self._show_selected()

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Shows the progress or outcome of a command; an empty text hides it."""
        self.told.show_message(text, bad=bad)

    def ask(self, title: str, detail: str, answers: Sequence[tuple[str, str, Kind]]) -> Question:
        """Opens a question over the window and returns it."""
        return self.open_question(title, detail, strings.CANCEL, answers)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # ---- inside

    def _lay_out(self) -> None:
        page = QWidget()
        self._parts = QBoxLayout(QBoxLayout.Direction.LeftToRight, page)
        self._parts.setContentsMargins(0, 0, 0, 0)
        self._parts.setSpacing(0)
        self._parts.addWidget(self.detail, 1)
        self._parts.addWidget(self.learning)
        self._foot = QWidget()
        set_maximum_height(self._foot, _FOOT_PX)
        inside = QVBoxLayout(self._foot)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(0)
        inside.addWidget(Hairline(self._theme))
        inside.addWidget(ScrollPage(self._theme, page))
        header = self.make_header(
            (self.save, self.load), (self.import_, self.export), (self.reset,), subtitle=strings.SUBTITLE
        )
        bars = ((bar, 0) for bar in (self.told, self.read_only, self.set_aside))
        self.make_column((header, 0), *bars, (self.list, _LIST_SHARE), (self._foot, _FOOT_SHARE))

    def _arrange(self) -> None:
        """Lays the learning panel out beside the charts, or below them in a narrow window."""
        beside = width_of(self) >= _BESIDE_FROM_PX
        lay_beside(self._parts, beside)
        self.learning.set_beside(beside)

    def _show_set_aside(self, files: Sequence[str]) -> None:
        """Shows names of files that could not be used, or sentences about them."""
        if not files:
            self.set_aside.show_message("")
            return
        head = strings.set_aside(len(files))
        first = files[0] if len(files) == 1 else f"{files[0]} {strings.more(len(files) - 1)}"
        self.set_aside.show_message(f"{head} {first}", bad=True, full="\n".join((head, *files)))

    def _show_selected(self) -> None:
        chosen = self.selected
        if isinstance(chosen, TableInfo):
            self.detail.show_table(chosen, datetime.now())
        elif isinstance(chosen, LearnedTable):
            self.detail.show_learned(chosen)
        else:
            self.detail.show_nothing(listed=self._tables.listed)
        self._enable(abilities_of(self._tables, chosen, alive=self._alive))

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
