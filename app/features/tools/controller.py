"""ToolsPage: fills the window of the tool servers and runs its commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from PySide6.QtCore import QObject, QTimer

from app.controllers.tool_choice import ToolChoiceController
from app.controllers.tool_servers import ToolServers
from app.controls.buttons import on_click
from app.features.tools import strings
from app.features.tools.rows import allowance_id, allowance_rows, server_row, tool_rows
from app.features.tools.sheets import ImportSheet, ServerSheet
from app.features.tools.window import ToolsWindow
from app.session.tools.permission import Allowance
from app.store.preferences import PreferencesFile
from core.tools.imports import Found, found
from core.tools.messages import ServerEntry, ToolsError

_LOG_EVERY_MS = 200


class ToolsPage(QObject):
    """Lives as long as its window. `titles` returns the titles of the chats by id."""

    def __init__(
        self,
        window: ToolsWindow,
        servers: ToolServers,
        preferences: PreferencesFile,
        choice: ToolChoiceController,
        titles: Callable[[], dict[str, str]],
    ) -> None:
        super().__init__(window)
        self._window, self._servers, self._preferences = window, servers, preferences
        self._tokens, self._titles = choice.tokens, titles
        self._importing: asyncio.Task[None] | None = None
        self._log_soon = QTimer(self, singleShot=True, interval=_LOG_EVERY_MS)
        self._log_soon.timeout.connect(self._show_log)
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.show)
        servers.changed.connect(self._soon.start)
        choice.counted.connect(self._soon.start)
        servers.logged.connect(self._logged)
        window.shown.connect(self.show)
        window.destroyed.connect(self._end_import)
        page = window.servers
        page.list.row_selected.connect(lambda name: self._show_server())
        page.list.remove_requested.connect(self._remove)
        page.detail.switch.clicked.connect(self._switch)
        page.detail.tools.list.row_selected.connect(lambda name: self._show_tool())
        allowed = window.allowed
        allowed.list.row_selected.connect(lambda row: allowed.take_back.setEnabled(bool(row)))
        allowed.list.remove_requested.connect(self._take_back)
        on_click(
            (window.add, self._add),
            (window.import_, self._begin_import),
            (page.detail.restart, lambda: servers.restart(self._selected)),
            (page.detail.edit, self._edit),
            (page.detail.remove, self._remove),
            (allowed.take_back, self._take_back),
            (allowed.take_back_all, self._take_back_all),
        )
        self.show()

    def show(self) -> None:
        """Show the current servers and permissions."""
        servers = self._servers
        rows = [
            server_row(each, servers.state(each.name), servers.is_on(each.name)) for each in servers.entries
        ]
        self._window.servers.show_rows(rows)
        self._show_server()
        self._show_allowed()

    # ---- showing

    @property
    def _selected(self) -> str:
        return self._window.servers.list.selected

    def _show_server(self) -> None:
        entry = self._servers.entry(self._selected)
        if entry is None:
            return
        detail, state = self._window.servers.detail, self._servers.state(entry.name)
        tools = self._servers.tools(entry.name)
        counts = [self._tokens(tool) for tool in tools]
        known = [count for count in counts if count is not None]
        total = sum(known) if tools and len(known) == len(counts) else None
        detail.show_server(entry, state, self._servers.is_on(entry.name), total)
        detail.tools.list.show_rows(tool_rows(tools, self._tokens))
        self._show_tool()
        self._show_log()

    def _show_tool(self) -> None:
        part = self._window.servers.detail.tools
        tools = self._servers.tools(self._selected)
        part.show_tool(next((tool for tool in tools if tool.name == part.list.selected), None))

    def _logged(self, server: str) -> None:
        if server == self._selected and not self._log_soon.isActive():
            self._log_soon.start()

    def _show_log(self) -> None:
        self._window.servers.detail.show_log(self._servers.log(self._selected))

    def _show_allowed(self) -> None:
        self._window.allowed.show_rows(allowance_rows(self._allowances, self._titles()))

    # ---- commands

    def _switch(self, on: bool) -> None:
        self._servers.set_on(self._selected, on)
        if on:
            self._window.servers.detail.tabs.set_value("tools")

    def _add(self) -> None:
        self._open_sheet(None)

    def _edit(self) -> None:
        if entry := self._servers.entry(self._selected):
            self._open_sheet(entry)

    def _open_sheet(self, entry: ServerEntry | None) -> None:
        replaces = entry.name if entry else ""
        taken = [each.name for each in self._servers.entries if each.name != replaces]
        sheet = ServerSheet(entry, taken, self._window)
        sheet.saved.connect(lambda made: self._put([made], replaces))
        sheet.open()

    def _put(self, entries: Sequence[ServerEntry], replaces: str = "") -> None:
        for entry in entries:
            try:
                self._servers.put(entry, replaces)
            except ToolsError as error:
                self._servers.report(error)
        self.show()
        if entries:
            self._window.servers.list.select(entries[-1].name)
            self._window.servers.detail.tabs.set_value("command")

    def _remove(self) -> None:
        name = self._selected
        if self._servers.entry(name) is None:
            return
        question = self._window.open_question(
            strings.remove_title(name),
            strings.REMOVE_DETAIL,
            strings.CANCEL,
            [("remove", strings.REMOVE_ANSWER, "danger")],
        )
        question.chosen.connect(lambda _: self._servers.remove(name))

    def _begin_import(self) -> None:
        if self._importing is None or self._importing.done():
            self._importing = asyncio.ensure_future(self._import())

    async def _import(self) -> None:
        self._open_import(await asyncio.to_thread(found))

    def _open_import(self, listed: Sequence[Found]) -> None:
        sheet = ImportSheet(listed, [each.name for each in self._servers.entries], self._window)
        sheet.imported.connect(partial(self._put, replaces=""))
        sheet.open()

    def _end_import(self) -> None:
        if self._importing is not None:
            self._importing.cancel()

    @property
    def _allowances(self) -> tuple[Allowance, ...]:
        return self._preferences.now.tool_allowances

    def _take_back(self) -> None:
        row = self._window.allowed.list.selected
        self._keep(each for each in self._allowances if allowance_id(each) != row)

    def _take_back_all(self) -> None:
        self._keep(())

    def _keep(self, allowances: Iterable[Allowance]) -> None:
        self._preferences.change(tool_allowances=tuple(allowances))
        self._show_allowed()
