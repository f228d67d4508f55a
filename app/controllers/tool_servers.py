"""ToolServers: the tool servers that a person has added, and the window's side of their process.

The list of servers is in the preferences, without the values of secrets, which `core.tools.secrets` keeps.
Each server is off until it is switched on. It starts when it is needed: when it is switched on, when tools
are chosen, or when a chat with its tools sends a question. The modules for servers and secrets are imported
with the first one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app.controllers import strings
from app.store.preferences import PreferencesFile
from core.tools.messages import ServerEntry, ServerLog, ServerState, ServerTool, ToolsError, check_entry

if TYPE_CHECKING:
    from core.tools.client import ToolsClient

_LOG_LINES = 500


class ToolServers(QObject):
    """Lives as long as the window. `report` shows an error to the person."""

    changed = Signal()  # the servers, which are on, their states or tools
    logged = Signal(str)  # a server wrote a line to its log
    died = Signal(object)  # ServerState of a server that died and is ready again, or failed

    def __init__(
        self,
        preferences: PreferencesFile,
        report: Callable[[ToolsError], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self.report = report
        self._logs: dict[str, deque[str]] = {}
        self._told: dict[str, int] = {}  # by server, the last run whose end was reported
        self._storing = asyncio.Lock()  # secrets, without which a server must not start
        self._tasks: set[asyncio.Task[None]] = set()

    @cached_property
    def client(self) -> ToolsClient:
        """The client of the tools' process."""
        from core.tools.client import ToolsClient

        return ToolsClient(self._take)

    # ---- the list

    @property
    def entries(self) -> tuple[ServerEntry, ...]:
        """The servers in the order in which they were added."""
        return self._preferences.now.tool_servers

    def entry(self, name: str) -> ServerEntry | None:
        return next((each for each in self.entries if each.name == name), None)

    def is_on(self, name: str) -> bool:
        return name in self._preferences.now.tool_servers_on

    @property
    def on(self) -> tuple[ServerEntry, ...]:
        """The servers that are switched on."""
        return tuple(each for each in self.entries if self.is_on(each.name))

    def state(self, name: str) -> ServerState:
        return self.client.states.get(name) or ServerState(name, "off")

    def tools(self, name: str) -> tuple[ServerTool, ...]:
        """The tools of a server; empty unless it is ready."""
        state = self.state(name)
        return state.tools if state.phase == "ready" else ()

    def log(self, name: str) -> str:
        """The last lines of a server's log."""
        return "\n".join(self._logs.get(name, ()))

    def put(self, entry: ServerEntry, replaces: str = "") -> None:
        """Add a server, or change the one named `replaces`. It is off until it is switched on.

        `entry` has the values of its secrets, which are stored separately. Raises `ToolsError` if invalid.
        """
        from core.tools.secrets import without_values

        check_entry(entry)
        others = [each.name for each in self.entries if each.name != replaces]
        if entry.name in others:
            raise ToolsError(strings.server_exists(entry.name), strings.SERVER_EXISTS_HINT)
        stored = without_values(entry)
        kept = list(self.entries)
        old = self.entry(replaces)
        if old is None:
            kept.append(stored)
        else:
            kept[kept.index(old)] = stored
        on = tuple(
            name for name in self._preferences.now.tool_servers_on if name not in (replaces, entry.name)
        )
        self._preferences.change(tool_servers=tuple(kept), tool_servers_on=on)
        self._begin(self._keep_secrets(entry, old))
        self.changed.emit()

    def remove(self, name: str) -> None:
        """Remove a server with its secrets, and end it."""
        entry = self.entry(name)
        if entry is None:
            return
        kept = tuple(each for each in self.entries if each.name != name)
        on = tuple(each for each in self._preferences.now.tool_servers_on if each != name)
        self._preferences.change(tool_servers=kept, tool_servers_on=on)
        self._logs.pop(name, None)
        self._begin(self._erase(entry))
        self.changed.emit()

    def set_on(self, name: str, on: bool) -> None:
        """Switch a server on, which starts it, or off, which ends it."""
        entry = self.entry(name)
        if entry is None or on == self.is_on(name):
            return
        others = tuple(each for each in self._preferences.now.tool_servers_on if each != name)
        self._preferences.change(tool_servers_on=(*others, name) if on else others)
        self._begin(self._start(entry) if on else self.client.stop(name))
        self.changed.emit()

    # ---- running

    def start(self, names: Iterable[str] | None = None) -> None:
        """Start servers that are on, by default all of them, if they do not run."""
        for entry in self.on:
            if (names is None or entry.name in names) and self.state(entry.name).phase == "off":
                self._begin(self._start(entry))

    async def ready(self, names: Iterable[str]) -> None:
        """Start those of the servers that are on, and return once each is ready or failed."""
        wanted = set(names)
        starts = [self._start(entry) for entry in self.on if entry.name in wanted]
        await asyncio.gather(*starts)

    def restart(self, name: str) -> None:
        """End a server and start it again."""
        entry = self.entry(name)
        if entry is not None:
            self._begin(self._restart(entry))

    async def close(self) -> None:
        """End all servers. Safe to call twice."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.client.on_event = lambda event: None
        await self.client.close()  # also one that never ran, so that nothing starts after this

    # ---- inside

    async def _start(self, entry: ServerEntry) -> None:
        async with self._storing:
            pass
        if self.state(entry.name).phase != "failed":
            await self.client.start(entry)

    async def _restart(self, entry: ServerEntry) -> None:
        await self.client.stop(entry.name)
        await self.client.start(entry)

    async def _keep_secrets(self, entry: ServerEntry, old: ServerEntry | None) -> None:
        """Store the values of the secrets, and erase those that only the old entry has."""
        from core.tools.secrets import forget, keep, missing, with_stored

        async with self._storing:
            renamed = old is not None and old.name != entry.name
            if old is not None:
                await self.client.stop(old.name)
            if old is not None and renamed:  # unchanged values are stored under the old name
                entry = await asyncio.to_thread(with_stored, entry, old.name)
            stored = await asyncio.to_thread(keep, entry)
            if old is not None:
                gone = missing(old) if renamed else set(missing(old)) - set(missing(stored))
                await asyncio.to_thread(forget, old.name, tuple(gone))

    async def _erase(self, entry: ServerEntry) -> None:
        from core.tools.secrets import forget, missing

        await self.client.stop(entry.name)
        async with self._storing:
            await asyncio.to_thread(forget, entry.name, missing(entry))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ToolsError):
            self.report(error)
        elif error is not None:
            context = {"message": "A task of the tool servers failed.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _take(self, event: ServerState | ServerLog) -> None:
        if isinstance(event, ServerLog):
            self._logs.setdefault(event.server, deque(maxlen=_LOG_LINES)).append(event.line)
            self.logged.emit(event.server)
            return
        if (
            event.restarts
            and event.phase in ("ready", "failed")
            and self._told.get(event.server) != event.run
        ):
            self._told[event.server] = event.run
            self.died.emit(event)
        self.changed.emit()
