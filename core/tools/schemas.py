"""JSON schemas as grammars: keywords that a grammar cannot enforce, and references in a larger schema. Pure.

llguidance refuses a schema with a keyword that a grammar cannot enforce. zod writes `propertyNames` for every
record, pydantic writes `uniqueItems` for every set, and both write regular expressions with look-ahead. The
grammar keeps everything else, and `relaxed` names the rules that are not enforced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from core.answer_format import SCHEMA_DATA, SCHEMA_MAPS
from core.events import Grammar

# llguidance 1.9 refuses a schema with one of these (tests/core/tools/test_schemas.py tries every keyword).
_DROPPED = frozenset(
    {
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveRef",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "minContains",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
_FORMATS = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"}
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_ONES = frozenset({"items", "additionalItems", "additionalProperties"})
# Look-around, back references and word boundaries; a backslash or a class before them makes them plain. An
# unclosed class is read once: from each of its brackets it would take quadratic time.
_IRREGULAR = re.compile(r"\(\?(?:[=!]|<[=!]|P=)|\\[1-9bBk]")
_PLAIN = re.compile(r"\\\\|\[\^?\]?(?:\\.|[^\]\\])*\]?")
_MOST_REFERENCES = 16
_LONG_PATTERN = 10_000
_MOST_NAMED = 50


def relaxed(grammar: Grammar) -> tuple[Grammar, list[tuple[str, Any]]]:
    """`grammar` without the keywords that it cannot enforce, and these: path in the schema, and value.

    A path is like `.properties.days.uniqueItems`. At most 50 are named.
    """
    if grammar.kind == "json_object":
        return grammar, []
    schema = msgspec.json.decode(grammar.text)
    dropped: list[tuple[str, Any]] = []
    try:
        kept = _kept(schema, schema, "", dropped)
    except RecursionError:
        return grammar, []  # the compiler reports the error
    if kept != schema:
        grammar = replace(grammar, text=msgspec.json.encode(kept).decode())
    return grammar, dropped[:_MOST_NAMED]


def _kept(schema: Any, root: Any, place: str, dropped: list[tuple[str, Any]]) -> Any:
    """`schema` without keywords that a grammar cannot enforce; appends these to `dropped`."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        where = f"{place}.{name}"
        if (
            name in _DROPPED
            or (name == "format" and isinstance(value, str) and value not in _FORMATS)
            or (name == "pattern" and isinstance(value, str) and _is_irregular(value))
        ):
            dropped.append((where, value))
        elif name in SCHEMA_MAPS and isinstance(value, dict):
            kept[name] = {key: _kept(one, root, f"{where}.{key}", dropped) for key, one in value.items()}
        elif name in _LISTS and isinstance(value, list):
            inner = [_kept(one, root, f"{where}[{at}]", dropped) for at, one in enumerate(value)]
            if name == "oneOf" and "anyOf" not in schema:
                # The compiler does not follow references, and refuses branches that are not clearly disjoint.
                if not _disjoint(value, root):
                    dropped.append((where, value))
                name = "anyOf"
            kept[name] = inner
        elif name in _ONES:
            kept[name] = _kept(value, root, where, dropped)
        else:
            kept[name] = value
    return kept


def _is_irregular(pattern: str) -> bool:
    return len(pattern) > _LONG_PATTERN or bool(_IRREGULAR.search(_PLAIN.sub("", pattern)))


def _disjoint(branches: Sequence[Any], root: Any) -> bool:
    """Whether no value can match two of `branches`: their types or tags differ."""
    resolved = [_resolved(one, root) for one in branches]
    if not all(isinstance(one, dict) for one in resolved):
        return False
    types = [one.get("type") for one in resolved]
    if all(isinstance(one, str) for one in types) and len({*types}) == len(types):
        return not {"integer", "number"} <= {*types}
    tags = [_tags(one) for one in resolved]
    return any(len({each.get(name) for each in tags}) == len(tags) for name in tags[0]) if tags else True


def _tags(schema: dict[str, Any]) -> dict[str, bytes]:
    """The required properties that allow one value only, with this value."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    return {
        name: msgspec.json.encode(one["const"])
        for name, one in properties.items()
        if isinstance(one, dict) and "const" in one and name in required
    }


def _resolved(schema: Any, root: Any) -> Any:
    for _ in range(_MOST_REFERENCES):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            if isinstance(schema, list) and part.isdecimal():  # `anyOf` of several tools
                schema = {str(at): one for at, one in enumerate(schema)}.get(part)
            else:
                schema = schema.get(part) if isinstance(schema, dict) else None
    return schema


def moved(schema: Any, root: str) -> Any:
    """`schema` with its references rewritten for the path `root`."""
    if isinstance(schema, list):
        return [moved(one, root) for one in schema]
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    for name, value in schema.items():
        if name in SCHEMA_MAPS and isinstance(value, dict):
            copy[name] = {key: moved(one, root) for key, one in value.items()}
        else:
            copy[name] = value if name in SCHEMA_DATA else moved(value, root)
    reference = copy.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        copy["$ref"] = root + reference.removeprefix("#")
    return copy
