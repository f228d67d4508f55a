"""Request bodies: read within limits of size and time, and decoded as JSON."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from core.events.text import well_formed_json
from core.serve.answers.answer import ClientGoneError
from core.serve.errors import ApiError, too_large

BODY_S = 60.0
# zlib's window bits for each encoding: 47 finds out itself whether it is gzip or zlib.
_CODINGS = {"identity": 0, "": 0, "gzip": 47, "x-gzip": 47, "deflate": 47}
_BAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)


async def read_fields(scope: Scope, receive: Receive, most_bytes: int) -> dict[str, Any]:
    """The JSON object of a request, at most `most_bytes` of it, unpacked.

    Raises `ApiError` 400, 408, 413 or 415, `ClientGoneError`.
    """
    coding = Headers(scope=scope).get("content-encoding", "identity").strip().lower()
    if coding not in _CODINGS:
        raise ApiError(
            415,
            f"Bodies in the encoding “{coding[:40]}” are not read. Send it uncompressed, or with gzip.",
            code="unsupported_content_encoding",
        )
    body = await _read_body(receive, most_bytes)
    return decode_fields(_unpacked(body, _CODINGS[coding], most_bytes))


def _unpacked(body: bytes, window_bits: int, most_bytes: int) -> bytes:
    if not window_bits:
        return body
    unpacker = zlib.decompressobj(window_bits)
    try:
        unpacked = unpacker.decompress(body, most_bytes + 1)
    except zlib.error as error:
        raise ApiError(400, f"The compressed body is damaged: {error}.", code="invalid_body") from None
    if len(unpacked) > most_bytes:
        raise too_large(most_bytes)
    if not unpacker.eof:
        raise ApiError(400, "The compressed body is cut off.", code="invalid_body")
    return unpacked


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
