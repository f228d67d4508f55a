"""Answers as they go out: JSON in one piece, or events as they come (SSE). Plain ASGI, no tasks left.

While something is answered, one task listens for the client's going away; it ends with the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.types import Receive, Send

from core.serve.errors import ApiError

_JSON = "application/json"


async def send_json(
    send: Send, body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """`body` as JSON; bytes are JSON already."""
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    await send_whole(send, encoded, _JSON, status, headers)


async def send_whole(
    send: Send, body: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """`body` in one piece."""
    told = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": _raw(told)})
    await send({"type": "http.response.body", "body": body})


async def refuse(error: ApiError, send: Send, path: str = "") -> None:
    """Say what is wrong and close the line: a body that nobody reads is not waited for."""
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
            # Neither a cache nor a proxy on the way may hold an event back.
            told = {"content-type": "text/event-stream", "cache-control": "no-cache", **self._headers}
            await self._send({"type": "http.response.start", "status": 200, "headers": _raw(told)})
        if events:
            await self._send({"type": "http.response.body", "body": events, "more_body": True})

    async def close(self) -> None:
        """After the last event."""
        await self._send({"type": "http.response.body", "body": b""})


def event(data: Any, name: str = "") -> bytes:
    """One event; `data` is encoded as JSON, unless it is bytes."""
    encoded = data if isinstance(data, bytes) else msgspec.json.encode(data)
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encoded + b"\n\n"


def comment(words: str) -> bytes:
    """A line that clients skip: it keeps the connection alive, and a person may read it."""
    return f": {words}\n\n".encode()


@asynccontextmanager
async def watched(receive: Receive, gone: Callable[[], None]) -> AsyncIterator[None]:
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
