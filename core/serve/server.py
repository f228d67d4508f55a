"""LocalServer: the API at an address, on the loop that is there. `start()`, then `stop()`; once each.

Installs no signal handlers and no loop, logs no request, and leaves no task, socket or connection behind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.errors import RequestError
from core.serve.answering import Serving
from core.serve.answers.answer import Answers
from core.serve.http.listening import LOOPBACK, is_loopback, listen
from core.serve.metrics import Metrics

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
