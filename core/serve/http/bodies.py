"""Request bodies: read within limits of size and time, and decoded as JSON."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.types import Receive

from core.events.text import well_formed_json
from core.serve.answers.answer import ClientGoneError
from core.serve.errors import ApiError
from core.serve.http.security import too_large

BODY_S = 60.0
_BAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)


async def read_body(receive: Receive, most_bytes: int) -> bytes:
    """All of it. Raises `ApiError` 413 or 408, `ClientGoneError`."""
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
    """A JSON object; what in it is no text is replaced. Raises `ApiError` 400."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except _BAD as error:
        try:
            better = well_formed_json(body)
            if better != body:
                return msgspec.json.decode(better, type=dict[str, Any])
        except _BAD:
            pass
        raise ApiError(
            400, f"The body is not a JSON object: {_short(str(error))}.", code="invalid_json"
        ) from None


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"
