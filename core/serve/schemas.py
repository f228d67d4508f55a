"""JSON schemas of requests: keywords that a grammar cannot enforce are left out of it and checked afterwards.

llguidance refuses a schema with one of them. zod writes `propertyNames` for every record, pydantic writes
`uniqueItems` for every set, and both write regular expressions with look-ahead. The grammar keeps
everything else; the finished answer is checked against the whole schema, and `draftlight.changes` says what
came of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.events import Change, Grammar
from core.serve.fields import change

# llguidance 1.9 refuses a schema with one of these (tests/core/serve/test_schemas.py tries every keyword).
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
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_ONES = frozenset({"items", "additionalItems", "additionalProperties"})
# Look-around, back references and word boundaries; a backslash or a class before them makes them plain.
_IRREGULAR = re.compile(r"\(\?(?:[=!]|<[=!]|P=)|\\[1-9bBk]")
_PLAIN = re.compile(r"\\\\|\[\^?\]?(?:\\.|[^\]\\])*\]")
# A schema may make a checker branch without end; no schema of a client comes near this.
_MOST_STEPS = 20_000
_MOST_REFERENCES = 16
_LONG_PATTERN = 10_000
_MOST_NAMED = 50
_WHY = "a grammar cannot enforce this keyword"


class Dropped(Struct, frozen=True):
    """A keyword that is left out of a grammar: its path in the schema, and its value.

    `checks`: the finished answer is checked for it.
    """

    place: str
    value: Any
    checks: bool


class SchemaCheck(Struct, frozen=True):
    """The keywords that a finished answer is checked for. `name` is the request's field with the schema.

    `calls`: the schema is that of the calls in an answer, and not of its text.
    """

    name: str
    schema: Any
    dropped: tuple[Dropped, ...]
    calls: bool = False

    def changes(self, texts: Sequence[str]) -> tuple[Change, ...]:
        """The keywords that were not enforced, and whether `texts` satisfy them.

        They are the whole answer, or each of its calls as an object with `name` and `arguments`.
        """
        checked = any(one.checks for one in self.dropped)
        verdict = self._verdict(texts) if checked else ""
        return tuple(
            change(f"{self.name}{one.place}", one.value, verdict if one.checks else "not checked", _WHY)
            for one in self.dropped[:_MOST_NAMED]
        )

    def _verdict(self, texts: Sequence[str]) -> str:
        if not texts:
            return "not checked: nothing was called"
        try:
            values = [msgspec.json.decode(text) for text in texts]
        except (msgspec.DecodeError, RecursionError):
            return "not checked: the answer is not complete"
        # Imported on demand: few requests have such a schema.
        from referencing.exceptions import Unresolvable

        try:
            fits = all(_fits(value, self.schema) for value in values)
        except (Unresolvable, RecursionError, _TooLongError, TypeError, ValueError):
            return "not checked: the schema is too complex"
        return (
            "checked afterwards: the answer keeps it" if fits else "checked afterwards: the answer breaks it"
        )


def relaxed(grammar: Grammar, name: str) -> tuple[Grammar, SchemaCheck | None]:
    """`grammar` without the keywords that it cannot enforce, and the check for them; None if it has none.

    `name` is the request's field that has the schema.
    """
    if grammar.kind == "json_object":
        return grammar, None
    schema = msgspec.json.decode(grammar.text)
    dropped: list[Dropped] = []
    try:
        # A tool's parameters are in the schema of its call, which no client has seen.
        kept = _kept(schema, schema, "", dropped)
        if name.startswith("tools["):
            dropped = [replace(one, place=one.place.removeprefix(".properties.arguments")) for one in dropped]
        check = SchemaCheck(name, _checkable(schema), tuple(dropped), calls=grammar.kind == "tool_calls")
    except RecursionError:
        return grammar, None  # the compiler reports the error
    if kept != schema:
        grammar = replace(grammar, text=msgspec.json.encode(kept).decode())
    return grammar, check if dropped else None


def _kept(schema: Any, root: Any, place: str, dropped: list[Dropped]) -> Any:
    """`schema` without keywords that a grammar cannot enforce; appends these to `dropped`."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        where = f"{place}.{name}"
        if name in _DROPPED:
            dropped.append(Dropped(where, value, checks=not _has_pattern(value)))
        elif (name == "format" and isinstance(value, str) and value not in _FORMATS) or (
            name == "pattern" and isinstance(value, str) and _is_irregular(value)
        ):
            # Regular expressions are not checked: one of a client's may take Python's `re` hours.
            dropped.append(Dropped(where, value, checks=False))
        elif name in _MAPS and isinstance(value, dict):
            kept[name] = {key: _kept(one, root, f"{where}.{key}", dropped) for key, one in value.items()}
        elif name in _LISTS and isinstance(value, list):
            inner = [_kept(one, root, f"{where}[{at}]", dropped) for at, one in enumerate(value)]
            if name == "oneOf" and "anyOf" not in schema:
                # The compiler does not follow references, and refuses branches that are not clearly disjoint.
                if not _disjoint(value, root):
                    dropped.append(Dropped(where, value, checks=True))
                name = "anyOf"
            kept[name] = inner
        elif name in _ONES:
            kept[name] = _kept(value, root, where, dropped)
        else:
            kept[name] = value
    return kept


def _is_irregular(pattern: str) -> bool:
    return len(pattern) > _LONG_PATTERN or bool(_IRREGULAR.search(_PLAIN.sub("", pattern)))


def _has_pattern(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_pattern, value))
    return isinstance(value, dict) and (
        "pattern" in value or "patternProperties" in value or any(map(_has_pattern, value.values()))
    )


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
    """The required properties that have one value only, with it."""
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
            schema = schema.get(part) if isinstance(schema, dict) else None
    return schema


def _checkable(schema: Any) -> Any:
    """`schema` without regular expressions."""
    if isinstance(schema, list):
        return [_checkable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _checkable(one) for key, one in value.items()}
        if name in _MAPS and isinstance(value, dict)
        else value
        if name in ("const", "enum", "default", "examples")
        else _checkable(value)
        for name, value in schema.items()
        if name not in ("pattern", "patternProperties")
    }


class _TooLongError(Exception):
    """The check has too many steps."""


def _fits(value: Any, schema: Any) -> bool:
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    steps = 0

    def bounded(check: Any) -> Any:
        def step(*arguments: Any) -> Iterator[Any]:
            nonlocal steps
            steps += 1
            if steps > _MOST_STEPS:
                raise _TooLongError
            return check(*arguments)  # type: ignore[no-any-return]

        return step

    checks = {name: bounded(check) for name, check in Draft202012Validator.VALIDATORS.items()}
    kind = validators.extend(Draft202012Validator, checks)  # type: ignore[no-untyped-call]
    # With an empty registry no `$ref` is fetched.
    return bool(kind(schema, registry=Registry()).is_valid(value))
