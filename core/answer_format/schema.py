"""Types of arguments by a tool's JSON schema, for syntaxes that write values as plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.answer_format.values import BrokenValueError, UnfinishedValueError, read_value

_DEPTH = 8


def parameters_schema(text: str) -> Mapping[str, Any]:
    """A tool's schema; empty if `text` is not a JSON object."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return schema if isinstance(schema, dict) else {}


def typed(text: str, key: str, schema: Mapping[str, Any]) -> Any:
    """The value that `text` stands for as the argument `key`.

    Text of a type that the schema does not allow stays text, so that the caller sees what was written.
    """
    types = _declared_types(key, schema)
    stripped = text.strip()
    if not types:
        value, whole = _read(stripped)
        return value if whole and not isinstance(value, str) else text
    if "null" in types and stripped in ("null", "None", "nil", ""):
        if stripped or "string" not in types:
            return None
        return text
    return next(iter(_candidates(stripped, types)), text)


def is_text_only(key: str, schema: Mapping[str, Any]) -> bool:
    """Whether the schema allows nothing but a string as the argument `key`."""
    return _declared_types(key, schema) == {"string"}


def allows_text(key: str, schema: Mapping[str, Any]) -> bool:
    """Whether the schema allows a string as the argument `key`, or says nothing of it."""
    types = _declared_types(key, schema)
    return not types or "string" in types


def _declared_types(key: str, schema: Mapping[str, Any]) -> frozenset[str]:
    properties = schema.get("properties")
    return _types(properties.get(key) if isinstance(properties, dict) else None, schema, 0)


def _candidates(text: str, types: frozenset[str]) -> list[Any]:
    value, whole = _read(text)
    if "boolean" in types and text.lower() in ("true", "false"):
        return [text.lower() == "true"]
    if not whole or isinstance(value, str | bool) or value is None:
        return []
    if isinstance(value, int) and types & {"integer", "number"}:
        return [value]
    if isinstance(value, float):
        if "number" in types:
            return [value]
        if "integer" in types and value.is_integer():
            return [int(value)]
    if isinstance(value, dict) and "object" in types:
        return [value]
    if isinstance(value, list) and "array" in types:
        return [value]
    return []


def _read(text: str) -> tuple[Any, bool]:
    try:
        value, end = read_value(text)
    except (BrokenValueError, UnfinishedValueError):
        return None, False
    return value, end == len(text)


def _types(schema: Any, root: Mapping[str, Any], depth: int) -> frozenset[str]:
    """The names of the types that `schema` allows; empty where it names none."""
    if not isinstance(schema, dict) or depth > _DEPTH:
        return frozenset()
    found: set[str] = set()
    declared = schema.get("type")
    found.update([declared] if isinstance(declared, str) else declared if isinstance(declared, list) else [])
    values = [*(schema.get("enum") or []), *([schema["const"]] if "const" in schema else [])]
    found.update(_type_of(value) for value in values)
    for word in ("anyOf", "oneOf", "allOf"):
        for choice in schema.get(word) or []:
            found |= _types(choice, root, depth + 1)
    if schema.get("nullable") is True:
        found.add("null")
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        found |= _types(target, root, depth + 1)
    return frozenset(str(name) for name in found)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    names = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in names if isinstance(value, kind)), "object")
