"""Fields that the APIs share, and requests from decoded JSON.

A known field with a value that is not supported is refused by name if it would change the answer.
Everything else that the answer does not honour, unknown fields among it, is a `Change`, which the client
reads in `draftlight.changes`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import fields as struct_fields
from msgspec.structs import replace

from core.errors import SettingError
from core.events import Change, Generate, ModelInfo
from core.serve.http import ApiError, field_error
from core.settings import Settings, assign
from core.settings.declaration import find

# A model's name; a path could reveal the files of this machine.
_MODEL_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_MOST_SEED = 2**31
_MOST_VALUE = 200
_NO_THOUGHT = ("none", "minimal")


class OwnObject(Struct, forbid_unknown_fields=True):
    """`"draftlight": {…}`. `tokens`: each chunk has the origins of its tokens. `forced`: tokens that a
    grammar forces are drafted; false gives the same answer more slowly, for measurements.
    """

    tokens: bool = False
    forced: bool = True


class OwnFields(Struct, kw_only=True, dict=True):
    """Draftlight's own fields, and those that local servers share."""

    drafter: str | None = None
    specprefill: bool | None = None
    specprefill_keep_pct: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    draftlight: OwnObject = field(default_factory=OwnObject)

    @property
    def changes(self) -> list[Change]:
        """Parts of the request that the answer does not honour."""
        changes: list[Change] = self.__dict__.setdefault("changes", [])
        return changes

    def own_settings(self) -> Iterable[tuple[str, str, Any]]:
        """(field, the setting's key, its value) of each given field."""
        for key, value in self.settings.items():
            _check_open(key, value)
            yield f"settings.{key}", key, value
        if self.drafter is not None:
            yield "drafter", "drafting.drafter", self.drafter
        if self.specprefill is not None:
            yield "specprefill", "prefill.mode", "on" if self.specprefill else "off"
        if self.specprefill_keep_pct is not None:
            yield "specprefill_keep_pct", "prefill.keep_pct", self.specprefill_keep_pct


def settings_with(base: Settings, values: Iterable[tuple[str, str, Any]]) -> Settings:
    """`base` with the fields' values. Raises `ApiError` 400 that names the field and the allowed values."""
    settings = base
    for name, key, value in values:
        try:
            settings = assign(settings, key, value)
        except SettingError as error:
            raise field_error(name, f"“{name}”: {error}") from None
    if settings.tables.learn and not base.tables.learn:
        raise refused("settings.tables.learn", "only the server's own settings enable learning")
    return settings


def seed_of(seed: int | None) -> int:
    """A seed in the sampler's range; a random one without a `seed`."""
    return random.randrange(_MOST_SEED) if seed is None else seed % _MOST_SEED


def change(name: str, requested: Any, used: str, reason: str) -> Change:
    """A field of the request that the answer does not honour."""
    text = requested if isinstance(requested, str) else msgspec.json.encode(requested).decode()
    return Change(name, text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}…", used, reason)


def effort_changes(name: str, effort: str | None, model: ModelInfo) -> list[Change]:
    """The change that a level of effort is, if the model does not think or has only an on-off switch."""
    if effort is None or not thinks_at(effort):
        return []
    if model.thinks or model.format.thinks:
        return [change(name, effort, "thinking on", "this model thinks or does not; it has no levels")]
    return [change(name, effort, "thinking off", "this model does not think before it answers")]


def thinks_at(effort: str) -> bool:
    """Whether a level of effort switches thinking on."""
    return effort not in _NO_THOUGHT


def refused(name: str, why: str) -> ApiError:
    """400: the field is known, but its value is not supported."""
    return field_error(name, f"“{name}” is not supported here: {why}.", "unsupported_parameter")


def _check_open(key: str, value: Any) -> None:
    """Raises `ApiError` for settings that name files of this machine."""
    try:
        names = find(key).names
    except SettingError as error:
        raise field_error(f"settings.{key}", str(error)) from None
    if names == "file" or (names == "model" and value and not _MODEL_NAME.fullmatch(str(value))):
        raise refused(f"settings.{key}", "a request names no file or folder of this machine")


def with_own_system_message(generate: Generate) -> Generate:
    """The settings' system prompt is used only if the client sends no system message."""
    if not any(message.role == "system" for message in generate.messages):
        return generate
    return replace(generate, settings=assign(generate.settings, "chat.system_prompt", ""))


_T = TypeVar("_T", bound=OwnFields)
_BAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)
# msgspec's words: “Expected `int`, got `str` - at `$.messages[0].role`”.
_PLACE = re.compile(r" - at `\$\.?(?P<place>.*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>.*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>.*)`$")
_INDEX = re.compile(r"\[\d+\]")
_MOST_NAMED = 50
_MOST_SHORT = 5
# Schemas, arguments of calls and settings: null is a value in them.
_OWN = frozenset({"parameters", "schema", "input", "settings"})
_SIMILAR = 0.7


def convert_fields(
    fields: dict[str, Any],
    kind: type[_T],
    ignored: frozenset[str],
    unsupported: Mapping[str, str] | None = None,
    changes: tuple[Change, ...] = (),
) -> _T:
    """`fields` as a `kind`; null, or an empty value of an optional field, means absent.

    The request's `changes` are `changes` and its unknown fields.

    `ignored` names fields that cannot change the answer, at any depth. `unsupported` maps top-level fields
    that would change it to the reason why they are refused. Raises `ApiError` 400 that names the field.
    """
    try:
        said = _without_nulls(fields)
    except RecursionError:
        raise field_error("", "The request is nested too deeply.") from None
    optional = {each.encode_name for each in struct_fields(kind) if not each.required}
    said = {name: value for name, value in said.items() if name not in optional or value not in ("", [], {})}
    for name, why in (unsupported or {}).items():
        # An empty list or text asks for nothing.
        if said.pop(name, None) not in (None, False, "", [], {}):
            raise refused(name, why)
    try:
        # Some clients send numbers as text, or whole ones with a decimal point.
        request = msgspec.convert(said, kind, strict=False)
    except _BAD as error:
        raise _named(str(error)) from None
    request.changes.extend([*changes, *_unknown(said, request, ignored)])
    return request


def _without_nulls(value: Any) -> Any:
    """`value` without the null members of its objects, except in those that are the client's own."""
    if isinstance(value, dict):
        return {
            name: inner if name in _OWN and isinstance(inner, dict) else _without_nulls(inner)
            for name, inner in value.items()
            if inner is not None
        }
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _unknown(said: dict[str, Any], request: Struct, ignored: frozenset[str]) -> Iterator[Change]:
    """One change for each unknown field, however many list items have it."""
    found: dict[str, tuple[str, Any, str]] = {}
    for place, value, nearest in _unknown_fields(said, request, ignored, ""):
        if len(found) == _MOST_NAMED:
            break
        found.setdefault(_INDEX.sub("[]", place), (place, value, nearest))
    for place, value, nearest in found.values():
        hint = f"; the nearest supported field is “{nearest}”" if nearest else ""
        yield change(place, value, "", f"Draftlight does not support this field{hint}")


def _unknown_fields(
    raw: Any, value: Any, ignored: frozenset[str], place: str
) -> Iterator[tuple[str, Any, str]]:
    """(path, value, similar field) of each key in `raw` that the struct decoded from it does not have."""
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
                yield where, inner, nearest_name(key, known)


def nearest_name(name: str, known: Collection[str]) -> str:
    """The name in `known` that `name` may be a misspelling of; empty if none is similar.

    Short names with another letter, such as `top_a`, are other servers' fields rather than misspellings.
    """
    candidates = [one for one in known if len(one) != len(name) or len(name) > _MOST_SHORT]
    return next(iter(get_close_matches(name[:_MOST_VALUE], candidates, 1, _SIMILAR)), "")


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
