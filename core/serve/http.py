"""Errors, bodies and answers over HTTP: `ApiError`, JSON in, JSON or events (SSE) out. Plain ASGI.

No error contains a path of this machine. While something is answered, one task listens for the client's
disconnection; it ends with the answer.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import DraftlightError
from core.events import Failed, failure
from core.events.wire import well_formed_json
from core.serve.queue import ClientGoneError

_STATUSES = {"queue-full": 503, "no-model": 503, "server-ends": 503, "model-changed": 503, "cancelled": 499,
             "request-too-large": 413}  # fmt: skip
# Absolute paths; of addresses (http://…) and of the API's own (/v1/…) nothing is cut. In quotation marks a
# path ends with them; elsewhere up to three words before a slash are a folder's name.
_PATH = re.compile(
    r"(?<=“)(?:~|[A-Za-z]:)?/(?!v1\b)(?:[^/“”]+/)+(?P<quoted>[^/“”]*)"
    r"|(?<![\w:/.])(?:~|[A-Za-z]:)?/(?!v1\b)"
    r"(?:[^\s/“”\"',:;]+(?:(?<![.!?]) [^\s/“”\"',:;]+){0,2}/)+(?P<last>[^\s/“”\"',:;]*)"
)
_PROMPT_TOKENS = re.compile(r"The prompt has ([\d,]+) tokens")
TOO_LONG = "context_length_exceeded"
OURS = "Draftlight failed with an internal error."


class FieldNames(Struct, frozen=True):
    """An API's names of the fields that the worker may refuse: of the prompt, and of the grammar."""

    prompt: str = "messages"
    grammar: str = "response_format"


class ApiError(Exception):
    """An error response. `param` is the wrong field, `code` a stable identifier for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = headers or {}
        self.anthropic_message = message
        self.details: dict[str, Any] = {}  # Anthropic's

    @property
    def type(self) -> str:
        """OpenAI's type of the error."""
        if self.status == 401:
            return "authentication_error"
        return "invalid_request_error" if self.status < 500 else "server_error"

    def body(self) -> dict[str, Any]:
        """OpenAI's error object."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }

    def encoded(self, path: str = "") -> bytes:
        """The body as JSON, in the shape of the API at `path`; OpenAI's where no other is known."""
        return msgspec.json.encode(error_body(self) if path.startswith("/v1/messages") else self.body())


def field_error(param: str, message: str, code: str = "invalid_value") -> ApiError:
    """400: a field of the request is wrong."""
    return ApiError(400, message, param=param, code=code)


NO_FIELDS = FieldNames("model", "")  # of a request that the worker does not have yet


def api_error(error: ApiError | DraftlightError | Failed, names: FieldNames = NO_FIELDS) -> ApiError:
    """The response to a request that failed here or in the worker; `names` are those of its fields."""
    if isinstance(error, ApiError):
        return error
    failed = error if isinstance(error, Failed) else failure(error, command="generate")
    if failed.kind == "internal":
        return ApiError(500, OURS, code="internal")
    message = without_paths(f"{failed.message} {failed.hint}".strip())
    code = failed.code.replace("-", "_")
    if failed.kind == "worker":
        return ApiError(500, message, code=code)
    match failed.code:
        case "prompt-too-long":
            return _too_long(failed, message, names)
        case "empty-prompt":
            return field_error(
                names.prompt, f"“{names.prompt}” ends with an empty text. Send a text to answer.", code
            )
        case "bad-grammar" if names.grammar:
            # Not every API's error has a place for the field, so the message names it, too.
            return field_error(names.grammar, f"“{names.grammar}”: {message}", code)
    status = _STATUSES.get(failed.code, 400)
    # The wait is unknown while a model is loaded.
    again = {"retry-after": str(getattr(error, "retry_after_s", 0) or 2)} if status == 503 else {}
    return ApiError(status, message, code=code, headers=again)


def _too_long(failed: Failed, message: str, names: FieldNames) -> ApiError:
    """400: clients recognize the wording and shorten the conversation; Anthropic's has both figures."""
    found = _PROMPT_TOKENS.search(failed.message)
    if found is None:
        return field_error(names.prompt, message, TOO_LONG)
    tokens = int(found[1].replace(",", ""))
    most = tokens - failed.over_tokens
    error = field_error(
        names.prompt,
        f"The prompt has {tokens} tokens; this model's maximum context length is {most + 1} tokens,"
        f" so at most {most} can be read. {failed.hint}".strip(),
        TOO_LONG,
    )
    error.anthropic_message = f"prompt is too long: {tokens} tokens > {most} maximum"
    return error


def without_paths(text: str) -> str:
    """`text` with only the last component of each path in it."""
    return _PATH.sub(lambda found: found["quoted"] or found["last"] or "…", text)


def too_large(most_bytes: int) -> ApiError:
    """413: the body is too large."""
    return ApiError(413, f"A request may have at most {most_bytes:,} bytes.", code="request_too_large")


_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def error_body(error: ApiError) -> dict[str, Any]:
    """Anthropic's error object; a separate event in a stream."""
    kind = _TYPES.get(error.status) or ("invalid_request_error" if error.status < 500 else "api_error")
    details = {"details": error.details} if error.details else {}
    return {"type": "error", "error": {"type": kind, "message": error.anthropic_message, **details}}


async def send_json(
    send: Send, body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """Send `body` as JSON; bytes are JSON already."""
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    told = {"content-type": "application/json", "content-length": str(len(encoded)), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": _raw(told)})
    await send({"type": "http.response.body", "body": encoded})


async def refuse(error: ApiError, send: Send, path: str = "") -> None:
    """Send the error and close the connection: the unread body is not waited for."""
    await send_json(send, error.encoded(path), error.status, {**error.headers, "connection": "close"})


class EventLine:
    """A line of events to one client. Nothing is sent before the first `write`."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self._send = send
        self._headers = headers
        self.is_open = False

    async def write(self, events: bytes) -> None:
        """`events` are whole: each ends with an empty line."""
        if not self.is_open:
            self.is_open = True
            # No cache or proxy may delay an event.
            told = {"content-type": "text/event-stream", "cache-control": "no-cache", **self._headers}
            await self._send({"type": "http.response.start", "status": 200, "headers": _raw(told)})
        if events:
            await self._send({"type": "http.response.body", "body": events, "more_body": True})

    async def close(self) -> None:
        """End the stream after the last event."""
        await self._send({"type": "http.response.body", "body": b""})


def event(data: Any, name: str = "") -> bytes:
    """One event; `data` is encoded as JSON, unless it is bytes."""
    encoded = data if isinstance(data, bytes) else msgspec.json.encode(data)
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encoded + b"\n\n"


def comment(words: str) -> bytes:
    """A comment, which clients skip: it keeps the connection alive and shows progress."""
    return f": {words}\n\n".encode()


@asynccontextmanager
async def watched(receive: Receive, gone: Callable[[], object]) -> AsyncIterator[None]:
    """Inside, `gone` is called when the client goes away. The request's body was read before."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone()

    watching = asyncio.ensure_future(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


BODY_S = 60.0
_DISCARDED_BYTES, _DISCARD_S, _DISCARD_PAUSE_S = 64 * 2**20, 10.0, 0.5


def reading_refused_bodies(app: ASGIApp) -> ASGIApp:
    """`app`, which reads the remaining refused body up to a limit before it sends the error.

    Otherwise the connection is reset, and its client may not see the error.
    """

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        more = True

        async def received() -> Message:
            nonlocal more
            message = await receive()
            more = bool(message.get("more_body"))
            return message

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400 and not waits:
                size = 0
                with suppress(TimeoutError):
                    async with asyncio.timeout(_DISCARD_S):
                        while more and size <= _DISCARDED_BYTES:
                            async with asyncio.timeout(_DISCARD_PAUSE_S):
                                size += len((await received()).get("body", b""))
            await send(message)

        waits = "expect" in Headers(scope=scope)  # for a word before it sends the body
        await app(scope, received, sent)

    return reading


BAD_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)


async def read_fields(scope: Scope, receive: Receive, most_bytes: int) -> dict[str, Any]:
    """The JSON object of a request, at most `most_bytes` of it.

    Raises `ApiError` 400, 408, 413 or 415, `ClientGoneError`.
    """
    coding = Headers(scope=scope).get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise ApiError(
            415,
            f"The content encoding “{coding[:40]}” is not supported. Send the body uncompressed.",
            code="unsupported_content_encoding",
        )
    return decode_fields(await _read_body(receive, most_bytes))


async def _read_body(receive: Receive, most_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                piece = message.get("body", b"")
                size += len(piece)
                if size > most_bytes:
                    raise too_large(most_bytes)
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise ApiError(
            408, f"The request did not arrive within {BODY_S:.0f} s.", code="request_timeout"
        ) from None


def decode_fields(body: bytes) -> dict[str, Any]:
    """A JSON object; invalid UTF-8 and surrogates in it are replaced. Raises `ApiError` 400."""
    body = body.removeprefix(codecs.BOM_UTF8)  # PowerShell writes it
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except BAD_JSON as error:
        try:
            better = well_formed_json(body)
            if better != body:
                return msgspec.json.decode(better, type=dict[str, Any])
        except BAD_JSON:
            pass
        raise ApiError(
            400, f"The body is not a JSON object: {short(str(error))}.", code="invalid_json"
        ) from None


def short(text: str) -> str:
    """`text` for a message."""
    return text if len(text) <= 300 else f"{text[:300]}…"
