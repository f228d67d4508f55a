"""Parses values as models write them: JSON with common mistakes, and types by a JSON schema.

Accepted in addition to JSON: raw line breaks and tabs in strings, trailing commas, Python's literals and
single quotes, keys without quotes, doubled braces, and Gemma's quote tokens.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

_SPACE = re.compile(r"\s*")
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.-]*")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z]+(?!\w)")
_WORDS: dict[str, Any] = {"true": True, "True": True, "false": False, "False": False,
                          "null": None, "None": None}  # fmt: skip
_QUOTE_TOKENS = ('<|"|>', "<escape>")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_PLAIN = {quote: re.compile(rf"[^\\{quote}]*") for quote in "\"'"}
_DEPTH = 64
# Longer integers are refused by Python's readers of JSON.
_DIGITS = 4300
_PYTHON_STRING = re.compile(r"[rbuRBU]{0,2}[\"']")
_PYTHON_TOKEN = re.compile(
    r"""[rbuRBU]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}"""
    r"""|\"(?!\"\")(?:[^\"\\]|\\.)*\"|'(?!'')(?:[^'\\]|\\.)*')|\w+|[^\w"']""",
    re.S,
)
_OPENERS, _CLOSERS = ("(", "[", "{"), (")", "]", "}")


class BrokenValueError(ValueError):
    """The text is not a value."""


class UnfinishedValueError(ValueError):
    """The text ends inside a value."""


def read_value(text: str, at: int = 0) -> tuple[Any, int]:
    """The value at `at`, and the offset after it. Raises `BrokenValueError`, `UnfinishedValueError`."""
    return _value(text, skip_space(text, at), 0)


def read_object(text: str, at: int = 0) -> tuple[dict[str, Any], int]:
    """The object at `at`, also inside a JSON string, and the offset after it."""
    value, end = read_value(text, at)
    if isinstance(value, str):
        value, _ = read_value(value)
    if not isinstance(value, dict):
        raise BrokenValueError("not an object")
    return value, end


def skip_space(text: str, at: int) -> int:
    """The offset of the first character from `at` on that is not white space."""
    return _end_of(_SPACE, text, at)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of the match of `pattern`, which matches the empty string, at `at`."""
    found = pattern.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if at >= len(text):
        raise UnfinishedValueError
    if depth > _DEPTH:
        raise BrokenValueError("nested too deeply")
    first = text[at]
    if text.startswith("{{", at):
        value, at = _object(text, at + 2, depth + 1)
        if at >= len(text):
            raise UnfinishedValueError
        return value, at + text.startswith("}", at)
    if first == "{":
        return _object(text, at + 1, depth + 1)
    if first == "[":
        return _list(text, at + 1, "]", depth + 1)
    if first == "(":
        return _list(text, at + 1, ")", depth + 1)
    if (read := _string(text, at)) is not None:
        return read
    if number := _NUMBER.match(text, at):
        return _number(number.group()), number.end()
    word = _WORD.match(text, at)
    if word and word.group() in _WORDS:
        return _WORDS[word.group()], word.end()
    rest = text[at : at + 8]
    if at + len(rest) == len(text) and (rest in "-+." or any(w.startswith(rest) for w in _WORDS)):
        raise UnfinishedValueError
    raise BrokenValueError(f"no value at {at}")


def _number(written: str) -> int | float | str:
    """A number; its text if it is larger than JSON's readers allow."""
    if written.lstrip("+-").isdigit():
        return int(written) if len(written) <= _DIGITS else written
    value = float(written)
    return value if math.isfinite(value) else written


def read_literal(text: str, at: int) -> tuple[Any, int]:
    """The value at `at` as Python reads it, else as `read_value` does, and the offset after it."""
    at = skip_space(text, at)
    end, depth = at, 0
    while end < len(text) and (depth or text[end] not in ",)]}<"):
        token = _PYTHON_TOKEN.match(text, end)
        if token is None:  # an open string, or an apostrophe in text without quotes
            if _PYTHON_STRING.match(text, at):
                raise UnfinishedValueError
            return read_value(text, at)
        depth += (token[0] in _OPENERS) - (token[0] in _CLOSERS)
        end = token.end()
    written = text[at:end].rstrip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes that Python leaves as they are
            value = ast.literal_eval(f"({written}\n)")
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return read_value(text, at)
    # Two escapes of one character are joined.
    well_formed = encoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.loads(well_formed), at + len(written)


def _string(text: str, at: int) -> tuple[str, int] | None:
    for token in _QUOTE_TOKENS:
        if text.startswith(token, at):
            end = text.find(token, at + len(token))
            if end < 0:
                raise UnfinishedValueError
            return text[at + len(token) : end], end + len(token)
        if token.startswith(text[at:]):
            raise UnfinishedValueError
    quote = text[at]
    if quote not in "\"'":
        return None
    parts: list[str] = []
    at += 1
    while True:
        if at >= len(text):
            raise UnfinishedValueError
        one = text[at]
        if one == quote:
            return "".join(parts), at + 1
        if one != "\\":
            stop = _end_of(_PLAIN[quote], text, at)
            parts.append(text[at:stop])
            at = stop
            continue
        part, at = _unescaped(text, at)
        parts.append(part)


def _unescaped(text: str, at: int) -> tuple[str, int]:
    """The character of the escape sequence at `at` in a string, and the offset after it."""
    if at + 1 >= len(text):
        raise UnfinishedValueError
    code = text[at + 1]
    at += 2
    if code != "u":
        return _ESCAPES.get(code, code if code in "\"'/\\" else "\\" + code), at
    point, at = _code_point(text, at)
    if 0xD800 <= point < 0xDC00:
        if text[at:] in ("", "\\"):
            raise UnfinishedValueError
        if text.startswith("\\u", at):
            low, after = _code_point(text, at + 2)
            if 0xDC00 <= low < 0xE000:
                point, at = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00), after
    return "\ufffd" if 0xD800 <= point < 0xE000 else chr(point), at


def _code_point(text: str, at: int) -> tuple[int, int]:
    digits = text[at : at + 4]
    if len(digits) < 4:
        raise UnfinishedValueError
    try:
        return int(digits, 16), at + 4
    except ValueError as error:
        raise BrokenValueError("a \\u escape has four hexadecimal digits") from error


def _list(text: str, at: int, closing: str, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    while True:
        at = skip_space(text, at)
        if at >= len(text):
            raise UnfinishedValueError
        if text[at] == closing:
            return values, at + 1
        value, at = _value(text, at, depth)
        values.append(value)
        at = _separator(text, at, closing)


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}
    while True:
        at = skip_space(text, at)
        if at >= len(text):
            raise UnfinishedValueError
        if text[at] == "}":
            return values, at + 1
        if (read := _string(text, at)) is not None:
            key, at = read
        elif bare := _BARE_KEY.match(text, at):
            key, at = bare.group(), bare.end()
        else:
            raise BrokenValueError(f"no key at {at}")
        at = skip_space(text, at)
        if at >= len(text):
            raise UnfinishedValueError
        if text[at] != ":":
            raise BrokenValueError(f"no colon at {at}")
        value, at = _value(text, skip_space(text, at + 1), depth)
        values[key] = value
        at = _separator(text, at, "}")


def _separator(text: str, at: int, closing: str) -> int:
    """Skip a comma; one before the closing bracket is accepted."""
    at = skip_space(text, at)
    if at >= len(text):
        raise UnfinishedValueError
    if text[at] == ",":
        return at + 1
    if text[at] != closing:
        raise BrokenValueError(f"no comma at {at}")
    return at


# ---- types of arguments by a JSON schema


_SCHEMA_DEPTH = 8
# Keywords whose value is a dict of names that a person chose, and those whose value is not a schema.
SCHEMA_MAPS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
SCHEMA_DATA = frozenset({"const", "default", "dependentRequired", "enum", "example", "examples", "required"})


def parameters_schema(text: str) -> Mapping[str, Any]:
    """A tool's schema; empty if `text` is not a JSON object."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return schema if isinstance(schema, dict) else {}


def typed(text: str, key: str, schema: Mapping[str, Any]) -> Any:
    """`text` as a value of the type of the argument `key`.

    Text that does not match an allowed type stays text, so that the caller sees what the model wrote, and so
    do +49, 007 and 5. where text is allowed.
    """
    types = _declared_types(key, schema)
    stripped = text.strip()
    as_text = not types or "string" in types
    if as_text and _NUMBER.fullmatch(stripped) and not _JSON_NUMBER.fullmatch(stripped):
        return text
    if not types:
        value, whole = _read(stripped)
        return value if whole and not isinstance(value, str) else text
    if "null" in types and stripped in ("null", "None", "nil", ""):
        if stripped or "string" not in types:
            return None
        return text
    return next(iter(_candidates(stripped, types)), text)


def allows_text(key: str, schema: Mapping[str, Any]) -> bool:
    """Whether the schema allows a string as the argument `key`, or does not specify its type."""
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
    """Names of the types that `schema` allows; empty if it names none."""
    if not isinstance(schema, dict) or depth > _SCHEMA_DEPTH:
        return frozenset()
    found: set[str] = set()
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    found.update(name for name in names if isinstance(name, str))
    values = [*_items(schema, "enum"), *([schema["const"]] if "const" in schema else [])]
    found.update(_type_of(value) for value in values)
    for word in ("anyOf", "oneOf", "allOf"):
        for choice in _items(schema, word):
            found |= _types(choice, root, depth + 1)
    if schema.get("nullable") is True:
        found.add("null")
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        found |= _types(target, root, depth + 1)
    return frozenset(found)


def _items(schema: Mapping[str, Any], word: str) -> list[Any]:
    """The list `word` of `schema`; empty if it is missing or not a list."""
    found = schema.get(word)
    return found if isinstance(found, list) else []


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    names = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in names if isinstance(value, kind)), "object")
