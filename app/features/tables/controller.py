"""TablesController: the state of the tables, their window, and the worker's commands about them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

from app.controls.buttons import Kind
from app.controls.sheets import first_folder, open_file, save_file
from app.features.side_window import on_click
from app.features.tables import state as known
from app.features.tables import strings
from app.features.tables.state import Tables
from app.session.status import recognised
from app.session.turn import effects as fx
from app.session.turn.intents import AskTables, IdleCommand
from app.session.turn.link_state import Link
from core.events import (
    ExportTable,
    ImportTable,
    ListTables,
    LoadTables,
    ResetTable,
    SaveTables,
    TableAction,
    TableInfo,
)
from core.events.tables import TableEvent

if TYPE_CHECKING:  # imported with the window
    from app.features.tables.window import TablesWindow


class TablesController(QObject):
    """`take` steps the state machine. `follow()` after each step."""

    def __init__(
        self,
        take: Callable[[AskTables], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._take = take
        self._tables = Tables()
        self._connected = False
        self._works = False
        self._window: TablesWindow | None = None
        self._numbers = count(1)
        self._listing = False

    @property
    def tables(self) -> Tables:
        """The state of the tables."""
        return self._tables

    def open(self, window: TablesWindow) -> TablesWindow:
        """Shows the tables in `window` and handles its commands."""
        self._window = window
        window.destroyed.connect(self._forget_window)
        window.shown.connect(self._on_shown)
        on_click(
            (window.save, lambda: self._do("save", SaveTables(self._request()))),
            (window.load, self._ask_load),
            (window.reset, self._ask_reset),
            (window.export, self._export),
            (window.import_, self._import),
            (window.folder, self._show_folder),
        )
        window.told.closed.connect(self._dismiss)
        self._show()
        return window

    # ---- events

    def on_event(self, event: TableEvent) -> None:
        """Handles an event about tables."""
        self._tables = known.handle(self._tables, event)
        self._listing = self._listing and not self._tables.listed
        self._show()
        self._refresh()

    def on_tables_failed(self, effect: fx.TablesFailed) -> None:
        """Handles a failed command."""
        self._tables = known.fail(self._tables, effect.failed)
        self._listing = self._listing and effect.failed.command != "list_tables"
        self._show()
        self._refresh()

    def follow(self, link: Link) -> None:
        """Updates the window after a change of the worker, its model or its turn."""
        info = link.info if link.connected else None
        self._connected, self._works = link.connected, link.works
        if not link.connected:
            self._tables, self._listing = known.without_worker(self._tables), False
        elif info != self._tables.model:
            self._tables = known.with_model(self._tables, info)
        self._show()
        self._refresh()

    # ---- commands

    def _do(self, action: TableAction, command: IdleCommand) -> None:
        self._tables = known.begin(self._tables, action)
        self._take(AskTables(command))
        self._show()

    def _ask_load(self) -> None:
        window, info = self._window, self._selected()
        if window is None or info is None:
            return
        own = self._tables.of_family(info.family)
        previous = any(one.has_previous for one in own)
        answers: list[tuple[str, str, Kind]] = [("saved", strings.LOAD_YES, "primary")]
        if previous:
            answers.insert(0, ("previous", strings.LOAD_PREVIOUS, "plain"))
        detail = strings.load_detail(sum(one.unsaved for one in own), previous)
        question = window.ask(strings.load_question(recognised(info.family_name)), detail, answers)
        question.chosen.connect(
            lambda answer: self._do("load", LoadTables(self._request(), answer == "previous"))
        )

    def _ask_reset(self) -> None:
        window, info = self._window, self._selected()
        if window is None or info is None:
            return
        own = self._tables.of_family(info.family)
        question = window.ask(
            strings.reset_question(recognised(info.family_name)),
            strings.reset_detail(sum(one.figures.used for one in own)),
            [("reset", strings.RESET_YES, "danger")],
        )
        question.chosen.connect(lambda answer: self._do("reset", ResetTable(self._request(), info.family)))

    def _export(self) -> None:
        info = self._selected()
        if info is None or self._window is None:
            return
        name = f"{recognised(info.family_name)}-n{info.n}.safetensors"

        def export(path: Path) -> None:
            slots = info.figures.slots
            command = ExportTable(self._request(), info.family, info.n, slots, str(path), replace=True)
            self._do("export", command)

        title, proposed = strings.EXPORT_TITLE, Path(first_folder(), name)
        save_file(self._window, title, proposed, export, kinds=strings.FILE_FILTER)

    def _import(self) -> None:
        if self._window is None:
            return

        def load(path: Path) -> None:
            self._do("import", ImportTable(self._request(), str(path)))

        open_file(self._window, strings.IMPORT_TITLE, load, kinds=strings.FILE_FILTER)

    def _show_folder(self) -> None:
        folder = Path(self._tables.folder)
        shown = bool(self._tables.folder) and folder.is_dir()
        if not (shown and QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))) and self._window:
            self._window.tell(strings.no_folder(str(folder)), bad=True)

    # ---- inside

    def _dismiss(self) -> None:
        self._tables = known.dismissed(self._tables)
        self._show()

    def _selected(self) -> TableInfo | None:
        chosen = self._window.selected if self._window else None
        return chosen if isinstance(chosen, TableInfo) else None

    def _on_shown(self) -> None:
        """Refreshes the list when the window is shown."""
        self._tables = known.out_of_date(self._tables)
        self._refresh()

    def _refresh(self) -> None:
        """Requests a list if the current one may be outdated and the window is visible."""
        seen = self._window is not None and self._window.isVisible()
        if seen and self._tables.stale and not self._listing and self._connected:
            self._listing = True
            self._take(AskTables(ListTables(self._request())))

    def _show(self) -> None:
        window, tables = self._window, self._tables
        if window is None:
            return
        window.show_tables(tables, alive=self._connected)
        if tables.doing:
            busy = self._works
            window.tell(strings.working(tables.doing, waits=busy))
        elif tables.told and tables.told.done:
            done = tables.told.done
            words = strings.done(done.action, recognised(done.family_name), done.entries, done.path)
            window.tell(" ".join((words, *done.notes)))
        elif tables.told and tables.told.failed:
            failed = tables.told.failed
            window.tell(f"{failed.message} {failed.hint}".strip(), bad=True)
        else:
            window.tell("")

    def _forget_window(self) -> None:
        self._window = None

    def _request(self) -> str:
        return f"tables-{next(self._numbers)}"
