"""TablesController: the state of the tables, their window, and the worker's commands about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

from app.controllers.app import App
from app.controls.buttons import Kind, on_click
from app.controls.sheets import first_folder, open_file, save_file
from app.features.tables import state as known
from app.features.tables import strings
from app.features.tables.rows import abilities_of
from app.features.tables.state import Tables
from app.session.status import recognised
from app.session.turn import effects as fx
from core.errors import RequestError, WorkerError
from core.events import (
    ExportTable,
    Failed,
    ImportTable,
    ListTables,
    LoadTables,
    ResetTable,
    SaveTables,
    TableAction,
    TableDone,
    TableInfo,
    TableList,
    TableStatus,
    failure,
)
from core.events.tables import TableCommand, TableEvent
from core.worker.client import CommandError

if TYPE_CHECKING:  # imported with the window
    from app.features.tables.window import TablesWindow


class TablesController(QObject):
    """Call `show()` after each step of the state machine."""

    def __init__(self, app: App, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._tables = Tables()
        self._window: TablesWindow | None = None
        self._listing = False

    def open(self, window: TablesWindow) -> TablesWindow:
        self._window = window
        window.destroyed.connect(self._forget_window)
        window.shown.connect(self._on_shown)
        on_click(
            (window.save, lambda: self._do("save", SaveTables(""))),
            (window.load, self._ask_load),
            (window.reset, self._ask_reset),
            (window.export, self._export),
            (window.import_, self._import),
            (window.folder, self._show_folder),
            (window.told.close_button, self._dismiss),
        )
        self.show()
        return window

    # ---- events

    def on_status(self, status: TableStatus) -> None:
        self._take(status)

    def on_model(self, effect: fx.ModelReady | fx.ModelGone) -> None:
        info = effect.info if isinstance(effect, fx.ModelReady) else None
        if info != self._tables.model:
            self._tables = known.with_model(self._tables, info)
            self._refresh()

    def on_worker_ready(self, effect: fx.WorkerReady) -> None:
        self._refresh()

    def on_worker_gone(self, effect: fx.RestartWorker | fx.WorkerDied) -> None:
        self._tables = known.without_worker(self._tables)

    # ---- commands

    def _do(self, action: TableAction, command: TableCommand) -> None:
        self._tables = known.begin(self._tables, action)
        self._app.worker.begin(self._ask(command, TableDone))
        self.show()

    async def _ask(self, command: TableCommand, kind: type[TableDone | TableList]) -> None:
        try:
            self._take(await self._app.worker.ask(command, kind))
        except CommandError as error:
            self._fail(error.failed)
        except WorkerError as error:
            if kind is TableDone:  # a person's command; a list is requested again from the next worker
                self._fail(failure(error, command=""))

    def _fail(self, failed: Failed) -> None:
        self._tables = known.fail(self._tables, failed)
        self.show()
        self._refresh()

    def _take(self, event: TableEvent) -> None:
        self._tables = known.handle(self._tables, event)
        self.show()
        self._refresh()

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
        title = strings.load_question(recognised(info.family_name))
        question = window.open_question(title, detail, strings.CANCEL, answers)

        def load(answer: str) -> None:
            if why_not := abilities_of(self._tables, info, alive=self._app.link.connected).load:
                self._fail(failure(RequestError(why_not), command=""))  # changed since the question
            else:
                self._do("load", LoadTables("", answer == "previous"))

        question.chosen.connect(load)

    def _ask_reset(self) -> None:
        window, info = self._window, self._selected()
        if window is None or info is None:
            return
        own = self._tables.of_family(info.family)
        question = window.open_question(
            strings.reset_question(recognised(info.family_name)),
            strings.reset_detail(sum(one.figures.used for one in own)),
            strings.CANCEL,
            [("reset", strings.RESET_YES, "danger")],
        )
        question.chosen.connect(lambda answer: self._do("reset", ResetTable("", info.family)))

    def _export(self) -> None:
        info = self._selected()
        if info is None or self._window is None:
            return
        name = f"{recognised(info.family_name)}-n{info.n}.safetensors"

        def export(path: Path) -> None:
            slots = info.figures.slots
            command = ExportTable("", info.family, info.n, slots, str(path), replace=True)
            self._do("export", command)

        title, proposed = strings.EXPORT_TITLE, Path(first_folder(), name)
        save_file(self._window, title, proposed, export, kinds=strings.FILE_FILTER)

    def _import(self) -> None:
        if self._window is None:
            return

        def load(path: Path) -> None:
            self._do("import", ImportTable("", str(path)))

        open_file(self._window, strings.IMPORT_TITLE, load, kinds=strings.FILE_FILTER)

    def _show_folder(self) -> None:
        folder = Path(self._tables.folder)
        shown = bool(self._tables.folder) and folder.is_dir()
        if not (shown and QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))) and self._window:
            self._window.tell(strings.no_folder(str(folder)), bad=True)

    # ---- inside

    def _dismiss(self) -> None:
        self._tables = known.dismissed(self._tables)
        self.show()

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
        if seen and self._tables.stale and not self._listing and self._app.link.connected:
            self._listing = True
            self._app.worker.begin(self._list())

    async def _list(self) -> None:
        try:
            await self._ask(ListTables(""), TableList)
        finally:
            self._listing = False

    def show(self) -> None:
        window, tables = self._window, self._tables
        if window is None:
            return
        window.show_tables(tables, alive=self._app.link.connected)
        if tables.doing:
            window.tell(strings.working(tables.doing, waits=self._app.link.works))
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
