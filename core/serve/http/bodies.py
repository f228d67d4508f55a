"""Bodies in: read within a size and a time, decoded by msgspec, refused by the field that is wrong."""

from __future__ import annotations

import asyncio
import re
from typing import Any, TypeVar

import msgspec
from starlette.types import Receive

from core.events.text import well_formed_json
from core.serve.answers.answer import ClientGoneError
from core.serve.errors import ApiError, field_error
from core.serve.http.security import too_large

_T = TypeVar("_T")
BODY_S = 60.0
_BAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)
# msgspec's words: “Expected `int`, got `str` - at `$.messages[0].role`”.
_PLACE = re.compile(r" - at `\$\.?(?P<place>.*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>.*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>.*)`$")


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


def convert_fields(fields: dict[str, Any], kind: type[_T], ignored: frozenset[str]) -> _T:
    """`fields` as a `kind`; null is as if it had not been said, and `ignored` ones do not matter.

    Raises `ApiError` 400 that names the field.
    """
    said = {name: value for name, value in fields.items() if value is not None and name not in ignored}
    try:
        return msgspec.convert(said, kind)
    except _BAD as error:
        raise _named(str(error)) from None


def _named(words: str) -> ApiError:
    at = _PLACE.search(words)
    place = at["place"] if at else ""
    what = words[: at.start()] if at else words
    if unknown := _UNKNOWN.match(what):
        name = f"{place}.{unknown['field']}" if place else unknown["field"]
        return field_error(
            name,
            f"“{_short(name)}” is not supported here, and would change the answer. Leave it out.",
            "unsupported_parameter",
        )
    if missing := _MISSING.match(what):
        name = f"{place}.{missing['field']}" if place else missing["field"]
        return field_error(name, f"“{_short(name)}” is missing.", "missing_required_parameter")
    return field_error(place, f"“{_short(place)}”: {_short(what)}.")


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"
