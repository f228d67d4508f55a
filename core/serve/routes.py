"""What there is to ask for, and by whom it is answered. The guard stands before all of it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import DraftlightError
from core.serve.answering import client_name, new_id
from core.serve.answers.answer import Answers, ClientGoneError
from core.serve.answers.requests import ServedRequest
from core.serve.anthropic.messages import CountEndpoint, MessagesEndpoint
from core.serve.cancelling import CancelEndpoint
from core.serve.errors import OURS, ApiError, of_error
from core.serve.http.responses import refuse
from core.serve.http.security import Guard
from core.serve.metrics import Metrics
from core.serve.openai.chat import ChatEndpoint
from core.serve.openai.completions import CompletionsEndpoint
from core.serve.openai.models import About, Health, Model, Models
from core.serve.responses.responses import ResponsesEndpoint

if TYPE_CHECKING:
    from core.serve.server import Serving

_MOST_PATH = 200
_APIS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/models")
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


def application(answers: Answers, serving: Serving, metrics: Metrics | None = None) -> ASGIApp:
    """All of it, as an ASGI application; figures are told if they are counted."""
    routes = [
        _route("/", "GET", About()),
        _route("/health", "GET", Health(answers)),
        _route("/v1/models", "GET", Models(answers)),
        _route("/v1/models/{model:path}", "GET", Model(answers)),
        _route("/v1/chat/completions", "POST", ChatEndpoint(answers, serving)),
        _route("/v1/completions", "POST", CompletionsEndpoint(answers, serving)),
        _route("/v1/requests/{id}/cancel", "POST", CancelEndpoint(answers)),
        _route("/v1/responses", "POST", ResponsesEndpoint(answers, serving)),
        _route("/v1/messages", "POST", MessagesEndpoint(answers, serving)),
        _route("/v1/messages/count_tokens", "POST", CountEndpoint(answers, serving)),
    ]
    if metrics is not None:
        routes.append(_route("/metrics", "GET", metrics))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _our_error})
    app.state.requests = answers.requests
    app.router.redirect_slashes = False

    def note(scope: Scope, error: ApiError) -> None:
        # One record for each reason: a client without a key cannot push others off the list.
        answers.requests.refuse(_refusal(scope, error, f"refused-{error.code}"))

    return _tidy_paths(Guard(app, serving.doors, note))


def _tidy_paths(app: ASGIApp) -> ASGIApp:
    """`app` with paths as its routes have them: clients add slashes to addresses, or /v1 twice."""

    async def tidied(scope: Scope, receive: Receive, send: Send) -> None:
        path = "/" + "/".join(part for part in scope["path"].split("/") if part)
        while path.startswith("/v1/v1/"):
            path = path.removeprefix("/v1")
        await app({**scope, "path": path}, receive, send)

    return tidied


class _Endpoint:
    """An endpoint whose errors are answered."""

    def __init__(self, inner: Endpoint) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._inner(scope, receive, send)
        except ClientGoneError:
            return
        except ApiError as error:
            _note_refusal(scope, error)
            await refuse(error, send, scope["path"])
        except DraftlightError as error:
            _note_refusal(scope, of_error(error))
            await refuse(of_error(error), send, scope["path"])


def _note_refusal(scope: Scope, error: ApiError) -> None:
    """Record a request that was refused before the worker was asked, for whoever watches the server."""
    if scope["method"] == "POST" and "draftlight.begun" not in scope:
        scope["app"].state.requests.refuse(_refusal(scope, error, new_id("refused")))


def _refusal(scope: Scope, error: ApiError, name: str) -> ServedRequest:
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


def _route(path: str, method: str, endpoint: Endpoint) -> Route:
    return Route(path, _Endpoint(endpoint), methods=[method])


async def _our_error(request: Request, error: Exception) -> Response:
    """A bug. Its traceback goes to stderr, and nothing of it to the client."""
    told = ApiError(500, OURS, code="internal")
    return Response(told.encoded(request.url.path), 500, media_type="application/json")


async def _http_error(request: Request, error: Exception) -> Response:
    """Starlette's own: no such path, no such method."""
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
