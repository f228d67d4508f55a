"""The window's local server over the window's worker, and its requests.

`WorkerSharing`: the window's questions and the server's requests wait in the queue of one worker. The gate's
state is that of the link. A dead worker is restarted for a server request, since the person may be away,
unless it dies repeatedly. If the person loads another model, requests to the loaded one end; if a request
loads one (`server.load_models`), they do not.

`ServerController`: one task starts and stops the server at the configured address, so that quick changes
never run two. A server that cannot be started is reported with a remedy, and retried when its settings
change. Queue and worker outlive the server.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.app import App
from app.features.server import strings
from app.session.turn import effects as fx
from app.session.turn.intents import Restart, Served
from app.session.turn.link_state import Link, Phase
from core.errors import RequestError
from core.events import (
    Command,
    Failed,
    Generate,
    ModelEntry,
    TakeTurn,
)
from core.serve.queue import Answers, GateState, InstalledModels, WorkerGate
from core.serve.security import AccessPolicy
from core.serve.served_requests import ServedRequests
from core.settings import Settings, assign
from core.settings.window import Server
from core.system.files import key_of, new_key, write_key
from core.worker.client import CommandError

if TYPE_CHECKING:
    from core.serve.server import LocalServer

KEPT_REQUESTS = 300
# After this many deaths without a loaded model it would die again.
_MOST_DEATHS = 3
_LOADED = frozenset({Phase.READY, Phase.READING, Phase.WRITING, Phase.STOPPING})

_Reply = TypeVar("_Reply")


class WorkerSharing(QObject):
    """The worker of the gate. `may_learn`: whether requests teach the tables.

    Call `follow()` after each step of the state machine.
    """

    line_moved = Signal()  # a request was sent, began or ended

    def __init__(self, app: App, may_learn: Callable[[], bool], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._may_learn = may_learn
        self._deaths = 0
        self._phase = Phase.STARTING
        self._loading = False
        self.gate = WorkerGate(self, self._revive_if_dead)
        self.requests = ServedRequests(KEPT_REQUESTS, whole=True)
        self.answers = Answers(self.gate, self.requests, 0, self._line_moved)
        self._revive_soon = QTimer(self, singleShot=True, interval=0)
        self._revive_soon.timeout.connect(self._revive)

    @property
    def client(self) -> str:
        """The client being answered through the server; empty for none."""
        sent = [record for request in self.answers.sent if (record := self.requests.of(request))]
        first = next((record for record in sent if record.state != "waiting"), sent[0] if sent else None)
        return strings.short_name(first.client) if first is not None else ""

    @property
    def waiting(self) -> int:
        """The number of waiting requests, the window's question included."""
        return max(0, len(self.answers.sent) + self._app.link.busy - 1)

    def follow(self, link: Link) -> None:
        """Update after a change of the worker, its model or its turn."""
        before, self._phase = self._phase, link.phase
        was_loading, self._loading = self._loading, link.loading
        if link.phase is Phase.DEAD and before is not Phase.DEAD:
            self._deaths += 1
        elif link.phase in _LOADED:
            self._deaths = 0
        if link.loading and before in _LOADED and not was_loading:
            self._end_all("model-changed", strings.CHANGED, strings.CHANGED_HINT)
        if link.phase is Phase.CLOSED:
            self.answers.end_all()
        state = self._state(link)
        self.gate.follow(state, link.info if state == "ready" else None, released=link.released)
        self._count()
        if self.gate.is_awaited:
            self._revive_if_dead()

    # ---- as the gate's `Worker`

    async def ask(self, command: Command, kind: type[_Reply], progress: Callable[[Any], None]) -> _Reply:
        if isinstance(command, Generate):
            learns = command.settings.tables.learn and self._may_learn()
            command = replace(command, settings=assign(command.settings, "tables.learn", learns))
        try:
            return await self._app.worker.ask(command, kind, progress)
        except CommandError as error:
            if isinstance(command, TakeTurn) and error.failed.code != "cancelled":
                info = self._app.link.info
                failed = fx.LoadFailed(error.failed, info.name if info else "", command.model)
                self._app.trouble.on_load_failed(failed)
            raise

    def post(self, command: Command) -> None:
        self._app.worker.send(command)

    # ---- inside

    def _state(self, link: Link) -> GateState:
        if link.loading or link.phase is Phase.STARTING:
            return "starting"
        if link.phase in _LOADED:
            return "ready"
        return "starting" if self._revivable(link) else "empty"

    def _count(self) -> None:
        sent, link = len(self.answers.sent), self._app.link
        if sent != link.served and link.phase is not Phase.CLOSED:
            self._app.handle(Served(sent))

    def _line_moved(self) -> None:
        self._count()
        self.line_moved.emit()

    def _end_all(self, code: str, message: str, hint: str) -> None:
        self.answers.end_all(lambda request: Failed(request, "generate", "request", code, message, hint))

    def _revivable(self, link: Link) -> bool:
        return link.phase is Phase.DEAD and self._deaths < _MOST_DEATHS

    def _revive_if_dead(self) -> None:
        # Not within the step that reports the death: its receivers finish first.
        if self._revivable(self._app.link):
            self._revive_soon.start()

    def _revive(self) -> None:
        if self._revivable(self._app.link):
            self._app.handle(Restart())


# Stepping the port's field passes many values that are not meant.
_SETTLE_MS = 600
# Settings that apply without a restart of the server.
_LIVE = {"waiting": 0, "learn": False}


class ServerState(Struct, frozen=True):
    """`address` is the base URL for clients, with `/v1`; `problem` says why an enabled server does
    not run.
    """

    status: Literal["off", "starting", "on", "failed"] = "off"
    address: str = ""
    problem: RequestError | None = None


class ServerController(QObject):
    """`base` returns the default settings of requests, `listed` the installed models. Call `start()` once the
    loop runs.
    """

    changed = Signal(object)  # ServerState

    def __init__(
        self,
        sharing: WorkerSharing,
        key: Key,
        base: Callable[[], Settings],
        listed: Callable[[], Awaitable[Sequence[ModelEntry]]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.state = ServerState()
        self._sharing = sharing
        self.key = key
        self.served_key = ""  # of the running server; empty if it requires none
        self._base = base
        self._listed = listed
        self._wanted: Server | None = None
        self._running: Server | None = None
        self._server: LocalServer | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = self._closed = False
        self._soon = QTimer(self, singleShot=True, interval=_SETTLE_MS)
        self._soon.timeout.connect(self._settle)

    @property
    def settings(self) -> Server | None:
        """The running server's settings; None while it is off."""
        return self._running

    def start(self) -> None:
        """Start the server if it is enabled. Needs the running loop."""
        self._started = True
        self._settle()

    def apply(self, settings: Server) -> None:
        self._sharing.answers.length = settings.waiting
        wanted = replace(settings, **_LIVE) if settings.on else None
        if wanted == self._wanted:
            return
        at_once = wanted is None or self._wanted is None
        self._wanted = wanted
        if not self._started:
            return
        if at_once:
            self._settle()
        else:
            self._soon.start()

    def renew_key(self) -> str:
        """Create a new key, which the running server requires from now on. Raises `KeyFileError`."""
        key = self.key.renew()
        if self._running is not None:
            self._running = None
            self._say(ServerState("starting"))
            self._settle()
        return key

    async def close(self) -> None:
        """End the server and its requests. Safe to call twice."""
        self._closed = True
        self._soon.stop()
        self._wanted = None
        if self._task is not None:
            await self._task
        await self._stop()

    # ---- inside

    def _settle(self) -> None:
        self._soon.stop()
        if self._started and not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._reach())

    async def _reach(self) -> None:
        """Start or stop until the running server, or the failed attempt, matches the settings."""
        while self._running != self._wanted or (self._wanted is None and self._server is not None):
            wanted = self._running = self._wanted
            await self._stop()
            if wanted is None:
                self._say(ServerState())
                continue
            self._say(ServerState("starting"))
            try:
                await self._begin(wanted)
            except RequestError as error:
                self._say(ServerState("failed", problem=error))
            except Exception as error:
                self._say(ServerState("failed", problem=RequestError(strings.BROKEN, strings.BROKEN_HINT)))
                context = {"message": "The local server could not be started.", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    async def _begin(self, wanted: Server) -> None:
        # starlette and uvicorn take longer to import than the UI thread may be blocked.
        await asyncio.to_thread(import_module, "core.serve.server")
        from core.serve.answering import Serving
        from core.serve.server import LocalServer

        doors = doors_of(wanted, self.key)
        server = LocalServer(
            self._sharing.answers,
            Serving(
                doors,
                wanted.port,
                self._base,
                wanted.strict,
                wanted.longest_answer,
                InstalledModels(self._installed) if wanted.load_models else None,
                self._installed,
            ),
        )
        await server.start()
        self._server = server
        self.served_key = doors.key
        self._say(ServerState("on", f"{server.address}/v1"))

    async def _installed(self) -> Sequence[ModelEntry]:
        await self._sharing.gate.settled()  # a worker that is being started lists nothing
        return await self._listed()

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    def _say(self, state: ServerState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit(state)


_MB = 1024 * 1024
# As in a Host header, without the port.
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\.?", re.ASCII)


class ServerSettingError(RequestError):
    """A setting with which the server cannot run."""

    code = "bad-server-setting"


def doors_of(settings: Server, key: Key) -> AccessPolicy:
    """Returns the access policy. Raises `ServerSettingError`, `KeyFileError`."""
    return AccessPolicy(
        host=_address(settings.address),
        hosts=tuple(_name(each) for each in _listed(settings.hosts)),
        origins=tuple(_origin(each) for each in _listed(settings.origins)),
        key=key.get() if settings.ask_key else "",
        most_bytes=settings.max_body_mb * _MB,
    )


def _listed(given: str) -> list[str]:
    """Returns the entries of a list separated by commas or lines."""
    return given.replace(",", " ").split()


def _name(given: str) -> str:
    if not _NAME.fullmatch(given):
        raise ServerSettingError(strings.bad_name(given), strings.BAD_NAME_HINT)
    return given.removesuffix(".")


def _address(given: str) -> str:
    """Returns an address given in digits: resolving a name can take long."""
    address = given.strip().strip("[]")
    if address.lower() == "localhost":
        return "localhost"
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise ServerSettingError(strings.no_address(given), strings.NO_ADDRESS_HINT) from None
    return address


def _origin(given: str) -> str:
    try:
        parts = urlsplit(given)
        fine = (
            parts.scheme in ("http", "https") and parts.netloc and given == f"{parts.scheme}://{parts.netloc}"
        )
    except ValueError:
        fine = False
    if not fine:
        raise ServerSettingError(strings.bad_origin(given), strings.BAD_ORIGIN_HINT)
    return given


class Key:
    """The server's API key, in a file that only its owner can read; without a folder, for this run only."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / "server.key" if folder else None
        self._held = ""

    def get(self) -> str:
        """Returns the key, created if missing. Raises `KeyFileError`."""
        if self._path is not None:
            return key_of(self._path)[0]
        self._held = self._held or new_key()
        return self._held

    def renew(self) -> str:
        """Replaces the key; the old one is refused from now on. Raises `KeyFileError`."""
        key = new_key()
        if self._path is not None:
            write_key(self._path, key)
        self._held = key
        return key
