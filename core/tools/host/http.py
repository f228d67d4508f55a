"""Streamable HTTP: the SDK's streams over a client with size limits that follows no redirection.

A redirection would send a call twice, and its headers, with their keys, to another address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from core.tools.messages import ServerEntry

_WAIT_S = 30.0
_READ_S = 300.0
# Most bytes of one answer, and of one line of an event stream.
_ANSWER_BYTES = 32 * 1024 * 1024
_LINE_BYTES = 16 * 1024 * 1024


class HttpAnswers:
    """The last refusal of a server, in words; empty if there was none."""

    def __init__(self) -> None:
        self.problem = ""
        self.hint = ""

    async def look(self, response: httpx2.Response) -> None:
        """A hook of the client."""
        status = response.status_code
        if status < 300:
            return
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = ""
        self.problem = f"The server answered with {status} {phrase}".rstrip() + "."
        if status in (401, 403):
            self.hint = (
                "Add a header with a key, such as Authorization. Signing in with a browser is not supported."
            )
        elif status < 400:
            self.hint = "Enter the address that it redirects to."
        else:
            self.hint = "Check the address."


@asynccontextmanager
async def http_streams(entry: ServerEntry, answers: HttpAnswers) -> AsyncIterator[tuple[Any, Any]]:
    """The SDK's pair of streams for the address of `entry`."""
    client = httpx2.AsyncClient(
        headers={**entry.headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(_WAIT_S, read=_READ_S),
        follow_redirects=False,
        transport=_Bounded(),
        event_hooks={"response": [answers.look]},
    )
    async with client, streamable_http_client(entry.url, http_client=client) as streams:
        yield streams


class _Bounded(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, despite the request", request=request)
        # The SDK follows redirections within an origin, whatever the client's setting is.
        response.headers.pop("location", None)
        response.stream = _BoundedBytes(response.stream, endless=request.method == "GET")
        return response


class _BoundedBytes(httpx2.AsyncByteStream):
    """`stream` with size limits. `endless`: an event stream that stays open."""

    def __init__(self, stream: Any, endless: bool) -> None:
        self._stream = stream
        self._endless = endless

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = line = 0
        async for piece in self._stream:
            whole += len(piece)
            line = len(piece) - piece.rfind(b"\n") if b"\n" in piece else line + len(piece)
            if line > _LINE_BYTES or (whole > _ANSWER_BYTES and not self._endless):
                raise httpx2.ReadError("the answer is too long")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
