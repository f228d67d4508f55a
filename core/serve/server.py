"""LocalServer: the APIs at an address, on the running loop. `start()`, then `stop()`; once each.

Installs no signal handlers and no loop, logs no request, and leaves no task, socket or connection behind.
uvicorn waits without limit for a request's head, for a body and for a client that does not read;
`Connection` limits each. Bodies are limited by `http.read_fields`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from core.errors import DraftlightError, RequestError, reason_of
from core.serve.answering import Serving, answer_endpoint, client_name, count_endpoint, new_id
from core.serve.chat import read_chat
from core.serve.completions import read_completion
from core.serve.embeddings import embeddings_endpoint
from core.serve.http import OURS, ApiError, api_error, reading_refused_bodies, refuse, send_json
from core.serve.images import erase_leftovers
from core.serve.messages import count_request, read_message
from core.serve.queue import Answers, ClientGoneError
from core.serve.response_memory import ResponseMemory, kept_input, kept_response
from core.serve.security import Guard
from core.serve.served_requests import ServedRequest
from core.serve.status import Models, about, health

if TYPE_CHECKING:
    from uvicorn import Server

LOOPBACK = "127.0.0.1"
_LOOPBACKS = (LOOPBACK, "::1", "localhost")
_SECOND = {LOOPBACK: "::1", "localhost": "::1", "0.0.0.0": "::1", "::": "0.0.0.0"}
_BACKLOG = 128
# Errors of machines without IPv6.
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)


class AddressError(RequestError):
    """The server cannot listen on the address."""

    code = "bad-address"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host in _LOOPBACKS:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets for `host`, an address or a name of this machine; port 0 is any free one.

    With IPv4 there is one more at ::1, where the machine has that: some clients try it first, and another
    program must not answer them. `::` includes IPv4. Raises `AddressError`.
    """
    first = await _bound(LOOPBACK if host == "localhost" else host, port)
    second = _SECOND.get(host)
    if second is None:
        return [first]
    try:
        return [first, await _bound(second, first.getsockname()[1])]
    except BaseException as error:
        if isinstance(error, AddressError) and getattr(error.__cause__, "errno", 0) in _NOT_HERE:
            return [first]
        first.close()
        raise


async def _bound(host: str, port: int) -> socket.socket:
    made: socket.socket | None = None
    try:
        # Not by the socket module: a name server may take seconds, and the loop may be the window's.
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setblocking(False)
        made.bind(address)
        made.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        if made is not None:
            made.close()
        reason = reason_of(error)
        taken = getattr(error, "errno", 0) == errno.EADDRINUSE
        raise AddressError(
            f"Cannot listen on {host}, port {port}: {reason}.",
            "Choose another port, or end what uses it." if taken else "Choose an address of this machine.",
        ) from error
    return made


HEAD_S = 15.0
STUCK_S = 60.0
# Maximum number of open connections of any kind.
MOST_CONNECTIONS = 120


class Connection(H11Protocol):
    """The connection of one client."""

    _head_timer: asyncio.TimerHandle | None = None
    _stuck_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client, or close the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            if data.strip(b"\r\n"):
                self.transport.abort()
            return
        before = self.cycle
        if self._head_timer is None and (before is None or before.response_complete):
            self._await_head()
        super().data_received(data)
        if self.cycle is not before:
            self._stop(self._head_timer)
            self._head_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The client disconnected."""
        self._stop(self._head_timer)
        self._stop(self._stuck_timer)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read: limit the time."""
        super().pause_writing()
        self._stuck_timer = self.loop.call_later(STUCK_S, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stop(self._stuck_timer)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """The data is not HTTP. Within an answer no error can be sent."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
        else:
            super().send_400_response(msg)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self.transport.abort)

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


_MOST_PATH = 200
_APIS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
    "/v1/models",
)
_WITHOUT_V1 = tuple(f"{path}/" for path in _APIS)
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


def application(answers: Answers, serving: Serving) -> ASGIApp:
    """The ASGI application."""
    answer, count = partial(answer_endpoint, answers, serving), partial(count_endpoint, answers, serving)
    models, memory = Models(answers, serving.installed), ResponseMemory()
    counted: dict[str, str] = {"object": "response.input_tokens"}
    routes = [
        _route("/", "GET", about),
        _route("/health", "GET", partial(health, answers)),
        _route("/v1/models", "GET", models.all),
        _route("/v1/models/{model:path}", "GET", models.one),
        _route("/v1/chat/completions", "POST", partial(answer, "chatcmpl-", read_chat)),
        _route("/v1/completions", "POST", partial(answer, "cmpl-", read_completion)),
        _route("/v1/requests/{id}/cancel", "POST", partial(cancel_endpoint, answers)),
        _route("/v1/responses", "POST", partial(answer, "resp_", memory.read)),
        _route("/v1/responses/input_tokens", "POST", partial(count, counted, memory.requested)),
        _route("/v1/responses/{id}", "GET", partial(kept_response, memory)),
        _route("/v1/responses/{id}", "DELETE", partial(kept_response, memory)),
        _route("/v1/responses/{id}/input_items", "GET", partial(kept_input, memory)),
        _route("/v1/embeddings", "POST", partial(embeddings_endpoint, answers, serving)),
        _route("/v1/messages", "POST", partial(answer, "msg_", read_message)),
        _route("/v1/messages/count_tokens", "POST", partial(count, {}, count_request)),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _our_error})
    app.state.requests = answers.requests
    app.router.redirect_slashes = False

    def note(scope: Scope, error: ApiError) -> None:
        # One record for each reason: a client without a key cannot push others off the list.
        answers.requests.refuse(_refusal(scope, error, f"refused-{error.code}"))

    return reading_refused_bodies(_tidy_paths(Guard(app, serving.doors, note)))


def _tidy_paths(app: ASGIApp) -> ASGIApp:
    """`app` with paths as its routes have them: clients add slashes, leave /v1 out, or have it twice."""

    async def tidied(scope: Scope, receive: Receive, send: Send) -> None:
        path = "/" + "/".join(part for part in scope["path"].split("/") if part)
        while path.startswith("/v1/v1/"):
            path = path.removeprefix("/v1")
        if f"/v1{path}/".startswith(_WITHOUT_V1):
            path = f"/v1{path}"
        await app({**scope, "path": path}, receive, send)

    return tidied


def _refusal(scope: Scope, error: ApiError, name: str) -> ServedRequest:
    """The record of a request that was refused before it reached the worker."""
    return ServedRequest(
        id=name,
        path=scope["path"][:_MOST_PATH],
        client=client_name(scope),
        model="",
        came_s=time.time(),
        streams=False,
        state="failed",
        problem=error.message,
    )


class _Endpoint:
    """An endpoint whose errors become responses. Starlette treats a function as one of its endpoints."""

    def __init__(self, inner: Endpoint) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._inner(scope, receive, send)
        except ClientGoneError:
            return
        except (ApiError, DraftlightError) as error:
            refusal = api_error(error)
            if scope["method"] == "POST" and "draftlight.begun" not in scope:  # for the server's window
                scope["app"].state.requests.refuse(_refusal(scope, refusal, new_id("refused-")))
            await refuse(refusal, send, scope["path"])


def _route(path: str, method: str, endpoint: Endpoint) -> Route:
    return Route(path, _Endpoint(endpoint), methods=[method])


async def _our_error(request: Request, error: Exception) -> Response:
    """500 for a bug. The traceback goes to stderr only."""
    told = ApiError(500, OURS, code="internal")
    return Response(told.encoded(request.url.path), 500, media_type="application/json")


async def _http_error(request: Request, error: Exception) -> Response:
    """Starlette's errors: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:_MOST_PATH]
    if error.status_code == 405:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=dict(error.headers or {}))
        told = ApiError(405, f"{request.method} is not supported at {path}.", code="method_not_allowed")
    else:
        message = f"There is nothing at {path}. The server's APIs are {', '.join(_APIS)}."
        told = ApiError(error.status_code, message, code="not_found")
    return Response(
        told.encoded(request.url.path), told.status, {**(error.headers or {})}, media_type="application/json"
    )


async def cancel_endpoint(answers: Answers, scope: Scope, receive: Receive, send: Send) -> None:
    """Ends the request with an id within a step or a chunk of its prompt. Its client gets its text."""
    request = scope["path_params"]["id"]
    if not answers.cancel(request):
        raise ApiError(404, "No waiting or running request has this id.", param="id", code="not_found")
    await send_json(send, {"id": request, "object": "request.cancelled", "cancelled": True})


_GRACE_S = 2
# Clients keep a connection for their next request, and fail if it is closed at that moment.
_IDLE_S = 60
_HEAD_BYTES = 64 * 1024
_LOOK_S = 0.01


class NoKeyError(RequestError):
    """The address accepts other machines, and no key is set."""

    code = "no-key"


class LocalServer:
    """Serves `answers`. Raises `NoKeyError` for an address that other machines reach, without a key."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        if not is_loopback(serving.doors.host) and not serving.doors.key:
            raise NoKeyError(
                f"Other machines can reach {serving.doors.host}, so an API key is required.",
                f"Set a key, or listen on {LOOPBACK} only.",
            )
        self._answers = answers
        self._serving = serving
        self._server: Server | None = None
        self._life: asyncio.Task[None] | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """The base address, without `/v1`; empty while the server does not run."""
        host = self._serving.doors.host
        named = f"[{host}]" if ":" in host else host
        return f"http://{named}:{self._port}" if self._life is not None else ""

    async def start(self) -> None:
        """Listen. Raises `AddressError`."""
        # Imported on demand, so that a window without a server starts faster.
        import uvicorn

        class _Server(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        await asyncio.to_thread(erase_leftovers)
        sockets = await listen(self._serving.doors.host, self._serving.port)
        self._port = sockets[0].getsockname()[1]
        config = uvicorn.Config(
            application(self._answers, self._serving),
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
        """End all answers and close all connections. Safe to call twice."""
        life, self._life = self._life, None
        if life is None or self._server is None:
            return
        self._answers.end_all()
        self._server.should_exit = True
        await life
        while self._server.server_state.connections:
            for connection in tuple(self._server.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(_LOOK_S)
