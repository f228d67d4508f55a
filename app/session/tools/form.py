"""The arguments of a call as a form: fields to read and edit, and errors in them as sentences. Pure.

A string is shown as it is, anything else as JSON. A string with invisible characters, or with characters
that change the direction of the text around them, is shown as JSON as well, which escapes them: nothing that
is sent is hidden from the person who allows it.

`problem_of` checks the types, choices, limits, lengths and required values of a JSON schema. It leaves
regular expressions, which can take forever, and formats to the server.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from app.session.tools.arguments import is_too_deep
from core.events.wire import well_formed

_DEEPEST = 32  # nested references and parts of a schema
_MOST_DIGITS = 400
_QUOTED_CHARACTERS = 60
_MOST_CHOICES = 8


class FormError(ValueError):
    """A text is not a valid value; the message is a sentence for the user."""


class Field(Struct, frozen=True):
    """One argument. `text` is shown and edited: the string itself (`plain`), else JSON.

    `mistaken`: it is a string although the schema has another type, so text that is JSON is parsed.
    `says`: its description in the schema. `given`: the call has it; otherwise an empty text leaves it out.
    """

    name: str
    text: str
    plain: bool
    required: bool = False
    says: str = ""
    given: bool = True
    mistaken: bool = False


def shown_value(value: Any) -> tuple[str, bool]:
    """The text that displays a JSON value, and whether it is the string itself."""
    if isinstance(value, str) and not any(map(_is_unseen, value)):
        return value, True
    return visible(json.dumps(value, ensure_ascii=False, indent=2)), False


def visible(text: str) -> str:
    """The text with invisible characters escaped as in JSON."""
    if not any(map(_is_unseen, text)):
        return text
    return "".join(json.dumps(each)[1:-1] if _is_unseen(each) else each for each in text)


def fields_of(arguments: str, schema: str) -> tuple[Field, ...] | None:
    """Fields of `arguments`, and of required arguments that are missing. None if it is not a JSON object."""
    try:
        given = read_json(arguments)
    except FormError:
        return None
    if not isinstance(given, dict):
        return None
    properties, required = _declared(schema)
    missing = [name for name in required if name not in given]
    fields = [_field(name, value, properties, required) for name, value in given.items()]
    return (*fields, *(empty_field(name, schema) for name in missing))


def empty_field(name: str, schema: str) -> Field:
    """The empty field of an argument that the call does not have."""
    properties, required = _declared(schema)
    declared = properties.get(name)
    plain = isinstance(declared, dict) and declared.get("type", "string") == "string"
    return replace(_field(name, "", properties, required), plain=plain, given=False, mistaken=False)


def optional_names(fields: Iterable[Field], schema: str) -> tuple[str, ...]:
    """The declared arguments that have no field."""
    known = {field.name for field in fields}
    return tuple(name for name in _declared(schema)[0] if name not in known)


def values_of(fields: Iterable[tuple[Field, str]]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of fields with these texts, and the errors of invalid fields as sentences, both by name."""
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for field, text in fields:
        if not field.given and not text:
            continue
        try:
            values[field.name] = _string_or_json(text) if field.mistaken else _value(field, text)
        except FormError as error:
            problems[field.name] = str(error)
    return values, problems


def _value(field: Field, text: str) -> Any:
    return text if field.plain else read_json(text)


def _string_or_json(text: str) -> Any:
    try:
        return read_json(text)
    except FormError:
        return text


def joined(values: Mapping[str, Any]) -> str:
    """The values as the JSON object that is sent."""
    text = json.dumps(values, ensure_ascii=False)
    return text if well_formed(text) == text else json.dumps(values)


def read_json(text: str) -> Any:
    """The value of a JSON text. Raises `FormError`, whose sentence says where the error is."""
    if not text.strip():
        raise FormError("A value is missing.")
    try:
        value = json.loads(
            text, parse_constant=_refuse, parse_int=_integer, object_pairs_hook=_without_doubles
        )
    except json.JSONDecodeError as error:
        raise FormError(_syntax(error, text)) from None
    except RecursionError:
        raise FormError("The value is nested too deeply.") from None
    if is_too_deep(value):
        raise FormError("The value is nested too deeply.")
    return value


def problem_of(values: Mapping[str, Any], schema: str) -> tuple[str, str]:
    """The first argument that the schema refuses, and why, in a sentence; both empty if there is none.

    The name is empty if the sentence is about the arguments as a whole.
    """
    try:
        root = json.loads(schema)
    except (ValueError, RecursionError):
        return "", ""
    found = _Checker(root).problem(dict(values), root, ())
    if found is None:
        return "", ""
    place, words = found
    return (str(place[0]) if place else ""), f"{_named(place)} {words}."


# ---- inside


def _declared(schema: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The properties and the names of the required ones."""
    try:
        root = json.loads(schema)
    except (ValueError, RecursionError):
        return {}, ()
    properties = root.get("properties") if isinstance(root, dict) else None
    required = root.get("required") if isinstance(root, dict) else None
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return (properties if isinstance(properties, dict) else {}), tuple(dict.fromkeys(names))


def _field(name: str, value: Any, properties: Mapping[str, Any], required: Sequence[str]) -> Field:
    text, plain = shown_value(value)
    declared = properties.get(name)
    declared = declared if isinstance(declared, dict) else {}
    says, kinds = declared.get("description"), declared.get("type", "string")
    mistaken = plain and isinstance(kinds, str) and kinds != "string"
    words = says if isinstance(says, str) else ""
    return Field(name, text, plain, name in required, words, mistaken=mistaken)


def _is_unseen(character: str) -> bool:
    """Whether a character is invisible or changes text direction. Spaces, tabs and line ends are not."""
    if character in " \t\n":
        return False
    return unicodedata.category(character) in _UNSEEN or character in _INKLESS


_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
# Letters and marks without ink: fillers of Hangul, an empty Braille cell, joiners and variation selectors.
_SELECTORS = (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
_INKLESS = frozenset(map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *_SELECTORS)))


def _refuse(name: str) -> Any:
    raise FormError(f"{name} is not a value of JSON.")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # programs differ in which value they use
        double = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise FormError(f"The name “{double}” occurs twice.")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise FormError("The number has too many digits.")
    return int(digits)


def _syntax(error: json.JSONDecodeError, text: str) -> str:
    where = f"Line {error.lineno}: " if "\n" in text.strip() else ""
    found = (words for start, words in _SYNTAX if error.msg.startswith(start))
    words = next(found, "this is not JSON")
    sentence = f"{where}{words}."
    return sentence if where else sentence[:1].upper() + sentence[1:]


_SYNTAX = (
    ("Expecting ',' delimiter", "a comma or a closing bracket is missing"),
    ("Expecting ':' delimiter", "a colon is missing after a name"),
    ("Expecting property name", "a name in double quotes is missing"),
    ("Illegal trailing comma", "there is a comma before a closing bracket"),
    ("Unterminated string", "a double quote is missing at the end of a text"),
    ("Invalid control character", "a line break or tab within a text must be written as \\n or \\t"),
    ("Invalid \\escape", "a backslash within a text must be written twice"),
    ("Invalid \\uXXXX", "\\u needs four hexadecimal digits"),
    ("Extra data", "there is more text after the end of the value"),
    ("Expecting value", "a value is missing; texts need double quotes"),
)

_Place = tuple[str | int, ...]
_Problem = tuple[_Place, str]

_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a text", lambda value: isinstance(value, str)),
    "integer": (
        "a whole number",
        lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    ),
    "number": ("a number", lambda value: _is_number(value)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "null": ("null", lambda value: value is None),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(place: _Place) -> str:
    """A path such as “days” or “filter › days”; list items are numbers from 1."""
    if not place:
        return "The call"
    return "“" + " › ".join(f"{part + 1}" if isinstance(part, int) else part for part in place) + "”"


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"“{text[:_QUOTED_CHARACTERS]}{'…' if len(text) > _QUOTED_CHARACTERS else ''}”"


class _Checker:
    """Finds the first value that a schema refuses. Unsupported parts of a schema refuse nothing."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def problem(self, value: Any, schema: Any, place: _Place, depth: int = 0) -> _Problem | None:
        if schema is False:
            return place, "is not allowed"
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return None
        if isinstance(reference := schema.get("$ref"), str):
            found = self.problem(value, self._resolved(reference), place, depth + 1)
            if found:
                return found
        for check in (self._type, self._choice, self._limits):
            if words := check(value, schema):
                return place, words
        return self._combined(value, schema, place, depth) or self._inside(value, schema, place, depth)

    def _resolved(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        found = self._root
        for part in reference[1:].strip("/").split("/") if reference != "#" else ():
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def _type(self, value: Any, schema: dict[str, Any]) -> str:
        wanted = schema.get("type")
        names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
        known = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
        if not known or any(test(value) for _, test in known):
            return ""
        return f"must be {' or '.join(words for words, _ in known)}"

    def _choice(self, value: Any, schema: dict[str, Any]) -> str:
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(choices, list) or not choices or any(_equal(value, each) for each in choices):
            return ""
        shown = ", ".join(map(_quoted, choices[:_MOST_CHOICES])) + ", …" * (len(choices) > _MOST_CHOICES)
        return f"must be {shown}" if len(choices) == 1 else f"must be one of {shown}"

    def _limits(self, value: Any, schema: dict[str, Any]) -> str:
        if isinstance(value, str):
            return _sized(len(value), schema, "Length", "character", "characters")
        if isinstance(value, list):
            return _sized(len(value), schema, "Items", "entry", "entries")
        if not _is_number(value) or (isinstance(value, float) and not math.isfinite(value)):
            return ""
        for keyword, words, breaks in _LIMITS:
            limit = schema.get(keyword)
            if _is_number(limit) and breaks(value, limit):
                return f"must be {words} {limit}"
        return ""

    def _combined(self, value: Any, schema: dict[str, Any], place: _Place, depth: int) -> _Problem | None:
        for each in _schemas(schema.get("allOf")):
            if found := self.problem(value, each, place, depth + 1):
                return found
        for keyword in ("anyOf", "oneOf"):
            choices = _schemas(schema.get(keyword))
            problems = [self.problem(value, each, place, depth + 1) for each in choices]
            if problems and None not in problems:
                # An error deep inside of a value is more helpful than one about its type.
                return max((each for each in problems if each), key=lambda each: len(each[0]))
        return None

    def _inside(self, value: Any, schema: dict[str, Any], place: _Place, depth: int) -> _Problem | None:
        if isinstance(value, dict):
            return self._properties(value, schema, place, depth)
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            for number, item in enumerate(value):
                if found := self.problem(item, schema["items"], (*place, number), depth + 1):
                    return found
        return None

    def _properties(
        self, value: dict[str, Any], schema: dict[str, Any], place: _Place, depth: int
    ) -> _Problem | None:
        declared, required = schema.get("properties"), schema.get("required")
        declared = declared if isinstance(declared, dict) else {}
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in value:
                return (*place, name), "is missing"
        others = schema.get("additionalProperties")
        by_pattern = "patternProperties" in schema
        for name, each in value.items():
            inner = declared.get(name)
            if name not in declared and not by_pattern:
                inner = others
                if others is False:
                    return (*place, name), "is not an argument of this tool"
            if found := self.problem(each, inner, (*place, name), depth + 1):
                return found
        return None


def _equal(value: Any, other: Any) -> bool:
    """Whether two JSON values are equal; in Python, True equals 1."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _schemas(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _sized(size: int, schema: dict[str, Any], keyword: str, one: str, several: str) -> str:
    least, most = schema.get(f"min{keyword}"), schema.get(f"max{keyword}")
    if isinstance(least, int) and size < least:
        return f"must have at least {least:,} {one if least == 1 else several}"
    if isinstance(most, int) and size > most:
        return f"must have at most {most:,} {one if most == 1 else several}"
    return ""


_LIMITS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "at least", lambda value, limit: value < limit),
    ("maximum", "at most", lambda value, limit: value > limit),
    ("exclusiveMinimum", "more than", lambda value, limit: value <= limit),
    ("exclusiveMaximum", "less than", lambda value, limit: value >= limit),
)


def spans_after(spans: Sequence[tuple[int, int]], before: str, after: str) -> list[tuple[int, int, int]]:
    """Spans (characters [start, end)) of `before` after an edit to `after`, each with its old number first.

    Typed text is in no span; a span that it divides becomes two.
    """
    shorter = min(len(before), len(after))
    first = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    last = next((at for at in range(shorter - first) if before[-1 - at] != after[-1 - at]), shorter - first)
    gone, by = len(before) - last, len(after) - len(before)  # characters [first, gone) were replaced
    found: list[tuple[int, int, int]] = []
    for number, (start, end) in enumerate(spans):
        parts = ((start, min(end, first)), (max(start, gone) + by, end + by))
        found += [(number, low, high) for low, high in parts if low < high]
    return found
