"""Requests from decoded JSON: wrong values are refused by name, unknown fields are ignored and listed.

A client written for another server sends fields that Draftlight does not support. They do not fail the
request: the answer's `draftlight.changes` names each of them once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields as struct_fields

from core.events import Change
from core.serve.errors import ApiError, field_error
from core.serve.fields import OwnFields, change, refused

_T = TypeVar("_T", bound=OwnFields)
_BAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)
# msgspec's words: “Expected `int`, got `str` - at `$.messages[0].role`”.
_PLACE = re.compile(r" - at `\$\.?(?P<place>.*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>.*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>.*)`$")
_INDEX = re.compile(r"\[\d+\]")
_MOST_NAMED = 50


def convert_fields(
    fields: dict[str, Any],
    kind: type[_T],
    ignored: frozenset[str],
    unsupported: Mapping[str, str] | None = None,
    changes: tuple[Change, ...] = (),
) -> _T:
    """`fields` as a `kind`; null means absent. The request's `changes` are `changes` and its unknown fields.

    `ignored` names fields that cannot change the answer, at any depth. `unsupported` maps top-level fields
    that would change it to the reason why they are refused. Raises `ApiError` 400 that names the field.
    """
    said = {name: value for name, value in fields.items() if value is not None}
    for name, why in (unsupported or {}).items():
        # An empty list or text asks for nothing.
        if said.pop(name, None) not in (None, False, "", [], {}):
            raise refused(name, why)
    try:
        request = msgspec.convert(said, kind)
    except _BAD as error:
        raise _named(str(error)) from None
    request.changes.extend([*changes, *_unknown(said, request, ignored)])
    return request


def _unknown(said: dict[str, Any], request: Struct, ignored: frozenset[str]) -> Iterator[Change]:
    """One change for each unknown field, however many list items have it."""
    found: dict[str, tuple[str, Any]] = {}
    for place, value in _unknown_fields(said, request, ignored, ""):
        if len(found) == _MOST_NAMED:
            break
        found.setdefault(_INDEX.sub("[]", place), (place, value))
    for place, value in found.values():
        yield change(place, value, "", "Draftlight does not support this field")


def _unknown_fields(raw: Any, value: Any, ignored: frozenset[str], place: str) -> Iterator[tuple[str, Any]]:
    """(place, value) of each key in `raw` that the struct decoded from it does not have."""
    if isinstance(value, list) and isinstance(raw, list):
        for number, (inner, decoded) in enumerate(zip(raw, value)):
            yield from _unknown_fields(inner, decoded, ignored, f"{place}[{number}]")
    elif isinstance(value, Struct) and isinstance(raw, dict):
        known = {each.encode_name: each.name for each in struct_fields(value)}
        for key, inner in raw.items():
            where = f"{place}.{key}" if place else key
            if key in known:
                yield from _unknown_fields(inner, getattr(value, known[key]), ignored, where)
            elif key not in ignored and key != value.__struct_config__.tag_field and inner is not None:
                yield where, inner


def _named(words: str) -> ApiError:
    at = _PLACE.search(words)
    place = at["place"] if at else ""
    what = words[: at.start()] if at else words
    if unknown := _UNKNOWN.match(what):
        name = f"{place}.{unknown['field']}" if place else unknown["field"]
        return field_error(
            name,
            f"“{_short(name)}” is not supported. Remove it.",
            "unsupported_parameter",
        )
    if missing := _MISSING.match(what):
        name = f"{place}.{missing['field']}" if place else missing["field"]
        return field_error(name, f"“{_short(name)}” is missing.", "missing_required_parameter")
    return field_error(place, f"“{_short(place)}”: {_short(what)}.")


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"
