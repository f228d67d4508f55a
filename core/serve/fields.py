"""Fields that the APIs share, requests from decoded JSON, and the shapes of other APIs.

A known field with a value that is not supported is refused by name if it would change the answer, and so is
an unknown field that may carry or replace a part of the conversation (`_carries`). Everything
else that the answer does not honour is a `Change`, which the client reads in `draftlight.changes`.

Tools in the shape of another API, or of an older version, are rewritten: they mean the same, and clients mix
them. `conversation` reads the messages.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import fields as struct_fields

from core.errors import SettingError
from core.events import Change, ModelInfo
from core.serve.http import BAD_JSON, ApiError, field_error, short
from core.settings import Settings
from core.settings.declaration import assign_allowed, find
from core.settings.request import ThinkingMode
from core.system.prepared import prepared

# A model's name; a path could reveal the files of this machine.
_MODEL_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_MOST_SEED = 2**31
_MOST_VALUE = 200
_NO_THOUGHT = ("none", "minimal")


# Other servers' names of a schema for the answer: vLLM's, llama.cpp's and SGLang's, Ollama's; where it is.
_SCHEMAS: dict[str, Callable[[Any], Any]] = {
    "guided_json": lambda value: value,
    "structured_outputs": lambda value: value.get("json") or value.get("json_object"),
    "json_schema": lambda value: value.get("schema", value) if isinstance(value, dict) else value,
    "response_schema": lambda value: value,
    "format": lambda value: value,
    "output_format": lambda value: value.get("schema", value) if isinstance(value, dict) else value,
}
FORMS = dict.fromkeys(
    ("guided_choice", "guided_regex", "guided_grammar", "grammar", "regex", "ebnf", "structural_tag"),
    "the form of an answer is a JSON schema; send “response_format”",
)


def with_answer_form(fields: dict[str, Any]) -> dict[str, Any]:
    """`fields` with the form of the answer in `response_format`, wherever another server has it.

    Raises `ApiError` 400 for two forms, and for one that is not a JSON schema.
    """
    given = fields.get("response_format")
    names = [name for name in _SCHEMAS if fields.get(name)]
    if names and (len(names) > 1 or (isinstance(given, dict) and given.get("type", "text") != "text")):
        raise refused(names[-1], "the request also has another answer format")
    if names:
        value = _decoded(fields[names[0]])
        if names[0] == "structured_outputs" and not isinstance(value, dict):
            raise refused(names[0], FORMS["regex"])
        form = _decoded(_SCHEMAS[names[0]](value))
        if form is not True and not isinstance(form, dict):
            raise refused(names[0], FORMS["regex"])
    elif isinstance(given, dict) and given.get("type") in ("json", "json_object", "json_schema"):
        if given.get("json_schema"):
            return fields
        form = _decoded(
            given.get("value") or given.get("schema") or given["type"] == "json"
        )  # Hugging Face's
        if not form:
            return fields
    else:
        return fields
    made = (
        {"type": "json_schema", "json_schema": {"schema": form}}
        if form is not True
        else {"type": "json_object"}
    )
    return {key: value for key, value in fields.items() if key not in names} | {"response_format": made}


def _decoded(value: Any) -> Any:
    """A schema that is given as JSON; True for any object."""
    if value in ("json", "json_object"):
        return True
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError:
        return None


class OwnObject(Struct, forbid_unknown_fields=True):
    """`"draftlight": {…}`. `tokens`: each chunk has the origins of its tokens. `annotations`: the answer has
    the origins of its text in the documents. `forced`: tokens that a grammar forces are drafted; false gives
    the same answer more slowly, for measurements.
    """

    tokens: bool = False
    annotations: bool = False
    forced: bool = True


class OwnFields(Struct, kw_only=True, dict=True):
    """Draftlight's own fields, and those that local servers share."""

    drafter: str | None = None
    specprefill: bool | None = None
    specprefill_keep_pct: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    draftlight: OwnObject = field(default_factory=OwnObject)

    @cached_property
    def changes(self) -> list[Change]:
        """Parts of the request that the answer does not honour; filled in as they are found."""
        return []

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
    given = list(values)
    settings, errors = assign_allowed(base, [(key, value) for _, key, value in given])
    if errors:
        place, error = next(iter(errors.items()))
        raise field_error(given[place][0], f"“{given[place][0]}”: {error}")
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
    if effort is None or thinking_at(effort) == "off":
        return []
    if model.thinks or model.format.thinks:
        return [change(name, effort, "thinking on", "this model thinks or does not; it has no levels")]
    return [change(name, effort, "thinking off", "this model does not think before it answers")]


def thinking_at(effort: str) -> ThinkingMode:
    """The value of `chat.thinking` for a level of effort."""
    return "off" if effort in _NO_THOUGHT else "on"


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
        raise refused(f"settings.{key}", "requests may not name files or folders of this machine")


_T = TypeVar("_T", bound=OwnFields)
# msgspec's words: “Expected `int`, got `str` - at `$.messages[0].role`”.
_PLACE = " - at `$"
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>.*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>.*)`$")
_INDEX = re.compile(r"\[\d+\]")
# Unknown fields with these words in their names, or texts in their values, may be a part of the conversation.
_CARRYING = re.compile(
    r"(?:^|_)(?:thread|conversation|history|dialog(?:ue)?|transcript|message|turn|item|input|output|call|result"
    r"|tool|prompt|prefill|instruction|system|context|content|document|attachment|file|image|memor(?:y|ie)"
    r"|summar(?:y|ie)|compact(?:ion|ed)?|previous|prior|parent|continu(?:e|ation)|resume|checkpoint|replay)s?"
    r"(?:_|$)"
)
_CARRIED = frozenset(
    {"role", "content", "text", "parts", "messages", "input", "output", "arguments", "history"}
)
# A name with one of these words is about such a part, and an id or a name within a message is a label.
_ABOUT = re.compile(
    r"(?:^|_)(?:options?|config|settings?|filters?|limits?|modes?|formats?|sizes?|kinds?|types?|management|metadata"
    r"|retention|fingerprint|params|when)(?:_|$)"
)
_LABEL = re.compile(r"_(?:id|name)$")
_MOST_NAMED = 50
_MUST_CALL = ("any", "required")
# Fields of the user, storage, billing and caching, at any depth: these do not change the answer.
IGNORED = frozenset(
    {"access_programs", "background_options", "betas", "billing_policy", "cache_control", "caller",
     "client_metadata", "diagnostics", "eager_input_streaming", "fallback_credit_token", "fallbacks",
     "inference_geo", "metadata", "moderation", "prompt_cache_key", "prompt_cache_options",
     "prompt_cache_retention", "safety_identifier", "service_tier", "speed", "store", "truncation", "user",
     "user_profile_id", "workspace_id"}
)  # fmt: skip
# Schemas, arguments of calls and settings: null is a value in them.
_OWN = frozenset({"parameters", "schema", "input", "settings"})


class UnknownFields:
    """The unknown fields of one request, of which those that are `ignored` cannot change the answer."""

    def __init__(self, ignored: Collection[str] = IGNORED) -> None:
        self._ignored = ignored
        self._found: dict[str, Change] = {}

    @property
    def changes(self) -> Iterable[Change]:
        """One change for each unknown field, however many list items have it."""
        return self._found.values()

    def check(self, place: str, given: Mapping[str, Any], known: Collection[str]) -> None:
        """Notes the fields of `given`, the object at `place`, that are not `known`; null means absent.

        Raises `ApiError` 400 for one that may be a part of the conversation.
        """
        for name, value in given.items():
            if name in known or name in self._ignored or value is None:
                continue
            where = f"{place}.{name}" if place else name
            if not where.startswith("tools[") and _carries(where, value):
                why = "it may be a part of the conversation. Send all of it in the API's own fields"
                raise refused(where, why)
            if len(self._found) < _MOST_NAMED:
                reason = "Draftlight does not support this field"
                self._found.setdefault(_INDEX.sub("[]", where), change(where, value, "", reason))


def convert_fields(
    fields: dict[str, Any],
    kind: type[_T],
    unsupported: Mapping[str, str] | None = None,
    changes: Iterable[Change] = (),
    unknown: UnknownFields | None = None,
) -> _T:
    """`fields` as a `kind`; null, or an empty value of an optional field, means absent.

    The request's `changes` are `changes` and its unknown fields, with those that are in `unknown` already.
    `unsupported` maps top-level fields that would change the answer to the reason why they are refused.
    Raises `ApiError` 400 that names the field.
    """
    try:
        said = _without_nulls(fields)
    except RecursionError:
        raise field_error("", "The request is nested too deeply.") from None
    optional = _optional(kind)
    said = {name: value for name, value in said.items() if name not in optional or value not in ("", [], {})}
    for name, why in (unsupported or {}).items():
        # An empty list or text asks for nothing.
        if said.pop(name, None) not in (None, False, "", [], {}):
            raise refused(name, why)
    try:
        # Some clients send numbers as text, or whole ones with a decimal point.
        request = msgspec.convert(said, prepared(kind), strict=False)
    except BAD_JSON as error:
        raise _named(str(error)) from None
    unknown = unknown or UnknownFields()
    _note_unknown(said, request, unknown, "")
    request.changes.extend([*changes, *unknown.changes])
    return request


@cache
def _optional(kind: type[Struct]) -> frozenset[str]:
    """Names of the fields that may be left out, kept because resolving annotations takes a millisecond."""
    return frozenset(each.encode_name for each in struct_fields(kind) if not each.required)


def _without_nulls(value: Any) -> Any:
    """`value` without the null members of its objects, except in those that are the client's own."""
    if isinstance(value, dict):
        return {
            name: inner if name in _OWN and isinstance(inner, dict) else _without_nulls(inner)
            for name, inner in value.items()
            if inner is not None
        }
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _carries(place: str, value: Any) -> bool:
    """Whether an unknown field may carry or replace a part of the conversation."""
    if not isinstance(value, str | list | dict) or not value:
        return False
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", place.rpartition(".")[2]).lower()
    about = _ABOUT.search(words) or (isinstance(value, str) and "]" in place and _LABEL.search(words))
    return (not about and bool(_CARRYING.search(words))) or _has_text(value)


def _has_text(value: Any) -> bool:
    if isinstance(value, dict):
        return not _CARRIED.isdisjoint(value) or any(map(_has_text, value.values()))
    return isinstance(value, list) and any(map(_has_text, value))


def _note_unknown(raw: Any, value: Any, unknown: UnknownFields, place: str) -> None:
    """Notes each key in `raw` that the struct decoded from it does not have."""
    if isinstance(value, list) and isinstance(raw, list):
        for number, (inner, decoded) in enumerate(zip(raw, value)):
            _note_unknown(inner, decoded, unknown, f"{place}[{number}]")
    elif isinstance(value, Struct) and isinstance(raw, dict):
        known = dict(zip(value.__struct_encode_fields__, value.__struct_fields__))
        unknown.check(place, raw, {*known, value.__struct_config__.tag_field or ""})
        for key in filter(known.get, raw):
            where = f"{place}.{key}" if place else key
            _note_unknown(raw[key], getattr(value, known[key]), unknown, where)


def _named(words: str) -> ApiError:
    # The words may quote a long text of the request.
    what, found, place = words.rpartition(_PLACE)
    what, place = (what, place.removeprefix(".").removesuffix("`")) if found else (words, "")
    if unknown := _UNKNOWN.match(what):
        name = f"{place}.{unknown['field']}" if place else unknown["field"]
        return field_error(
            name,
            f"“{short(name)}” is not supported. Remove it.",
            "unsupported_parameter",
        )
    if missing := _MISSING.match(what):
        name = f"{place}.{missing['field']}" if place else missing["field"]
        return field_error(name, f"“{short(name)}” is missing.", "missing_required_parameter")
    return field_error(place, f"“{short(place)}”: {short(what)}.")


# ---- tools in other APIs' shapes


def with_tools(
    fields: dict[str, Any], changes: list[Change], *, custom: bool = False, typed: bool = True
) -> dict[str, Any]:
    """`fields` with the functions of `tools` alone, and with `tool_choice`, as the requests have them.

    `custom` keeps custom tools. Not `typed`: a custom tool is a function, as at Anthropic's. Other tools are
    appended to `changes`.
    """
    tools = fields.get("tools")
    kept: list[Any] = []
    missing = set()
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        tool = flat_tool(tool, typed=typed)
        kind = _type_of(tool)
        if kind in (None, "function") or (custom and kind == "custom"):
            kept.append(tool)
        else:
            missing.add(str(tool.get("name") or kind))
            reason = "the model can call functions of the client only"
            changes.append(change(f"tools[{number}]", kind, "left out", reason))
    if isinstance(tools, list):
        fields = fields | {"tools": kept}
    choice = fields.get("tool_choice")
    named = choice.get("name") or choice.get("type") if isinstance(choice, dict) else choice
    if missing and isinstance(named, str) and (named in missing or (not kept and named in _MUST_CALL)):
        changes.append(change("tool_choice", choice, "auto", "the tool that must be called was left out"))
        choice = None
    names = [tool.get("name") for tool in kept if isinstance(tool, dict)]
    return fields | {"tool_choice": flat_choice(choice, names) if choice else choice}


def _type_of(part: Any) -> str | None:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else None


def flat_tool(tool: Any, *, typed: bool = True) -> Any:
    """`tool` with the fields of `GivenTool`, whatever API's shape it has.

    Not `typed`: the type “custom” means a function, as at Anthropic's.
    """
    if not isinstance(tool, dict):
        return tool
    key = next((key for key in ("function", "custom") if isinstance(tool.get(key), dict)), "")
    tool = {name: value for name, value in tool.items() if name != key} | (tool[key] if key else {})
    if "input_schema" in tool:
        tool["parameters"] = tool.pop("input_schema")
        typed = False
    if tool.get("type") is None or (tool["type"] == "custom" and not typed):
        tool["type"] = "function"
    return tool


def flat_choice(choice: Any, declared: Sequence[Any]) -> Any:
    """`choice` with the fields of `Choice`, whatever API's shape it has; `declared` are the tools' names."""
    if isinstance(choice, str):
        if choice in declared:
            return {"type": "required", "names": [choice]}
        choice = {"type": choice}
    if not isinstance(choice, dict):
        return choice
    choice = dict(choice)
    kind = choice.pop("type", "function")
    if kind == "allowed_tools" and isinstance(allowed := choice.pop("allowed_tools", choice), dict):
        tools = allowed.get("tools")
        names = [_name_of(tool) for tool in tools] if isinstance(tools, list) else tools
        return {"type": allowed.get("mode") or "auto", "names": names}
    if kind in ("function", "tool", "custom"):
        name = _name_of(choice)
        for key in ("name", "function", "custom"):
            choice.pop(key, None)
        return {**choice, "type": "required", "names": [name]}
    return {**choice, "type": "required" if kind == "any" else kind}


def _name_of(tool: Any) -> Any:
    """The name in a tool or a choice, at the top or nested."""
    if not isinstance(tool, dict):
        return tool
    nested = next((tool[key] for key in ("function", "custom") if isinstance(tool.get(key), dict)), tool)
    return nested.get("name") or ""
