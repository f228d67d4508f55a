"""LocalServer: the API at an address, on the loop that is there. `start()`, then `stop()`; once each.

Installs no signal handlers and no loop, logs no request, and leaves no task, socket or connection behind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from core.errors import RequestError
from core.events import Generate
from core.serve.answers.answer import Answers
from core.serve.http.listening import LOOPBACK, is_loopback, listen
from core.serve.http.security import Doors
from core.serve.metrics import Metrics
from core.serve.sampling import Sampling
from core.settings import Settings

if TYPE_CHECKING:
    from uvicorn import Server

_GRACE_S = 2
# Clients keep a line for their next question; one that is closed just as it comes is an error to them.
_IDLE_S = 60
_HEAD_BYTES = 64 * 1024
_LOOK_S = 0.01


class NoKeyError(RequestError):
    """Others than this machine could ask, and no key is set."""

    code = "no-key"


class Serving(Struct, frozen=True):
    """What is served, and to whom.

    `base`: the settings of a request that says nothing about them, asked for each. `metrics`: whether
    figures are told at `/metrics`. `strict`: what the server would leave out of a request and name in
    `draftlight.changes` is refused, other names than the loaded model's among it.
    """

    doors: Doors = Doors()
    port: int = 8317
    metrics: bool = False
    base: Callable[[], Settings] = Settings
    strict: bool = False

    def accepted(self, asked: Sampling, generate: Generate) -> Generate:
        """`generate`, the command of the request `asked`. Raises `ApiError` 400 if it is `strict`."""
        if self.strict:
            asked.check_strictly()
        return generate


class LocalServer:
    """Serves `answers` by `serving`. Raises `NoKeyError` for an address that others reach, without a key."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        if not is_loopback(serving.doors.host) and not serving.doors.key:
            raise NoKeyError(
                f"At {serving.doors.host} other machines reach this one, so a key must be set.",
                f"Set a key, or serve {LOOPBACK} alone.",
            )
        self._answers = answers
        self._serving = serving
        self._server: Server | None = None
        self._metrics = Metrics(answers) if serving.metrics else None
        self._life: asyncio.Task[None] | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """What clients take as their base address, without `/v1`; empty while nothing is served."""
        host = self._serving.doors.host
        named = f"[{host}]" if ":" in host else host
        return f"http://{named}:{self._port}" if self._life is not None else ""

    async def start(self) -> None:
        """Listen. Raises `AddressError`."""
        # Imported when there is something to serve: a window that serves nothing does not wait for it.
        import uvicorn

        from core.serve.http.connection import Connection
        from core.serve.routes import application

        class _Server(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        sockets = listen(self._serving.doors.host, self._serving.port)
        self._port = sockets[0].getsockname()[1]
        config = uvicorn.Config(
            application(self._answers, self._serving, self._metrics),
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=_GRACE_S,
            h11_max_incomplete_event_size=_HEAD_BYTES,
        )
        self._server = _Server(config)
        self._life = asyncio.ensure_future(self._server.serve(sockets))
        while not self._server.started and not self._life.done():
            await asyncio.sleep(_LOOK_S)
        if self._life.done():
            life, self._life = self._life, None
            life.result()

    async def stop(self) -> None:
        """End every answer, close every connection, and wait for all of it. Safe to call twice."""
        life, self._life = self._life, None
        if life is None or self._server is None:
            return
        self._answers.end_all()
        if self._metrics is not None:
            self._metrics.close()
        self._server.should_exit = True
        await life
        while self._server.server_state.connections:
            for connection in tuple(self._server.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(_LOOK_S)
