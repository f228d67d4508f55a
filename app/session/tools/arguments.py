"""Arguments of a call: checked, and compared with the person's messages. Pure.

Arguments are a JSON object as text. For `outside_of`, only numbers, plain words, dates
and times are harmless; any other word of a string counts as an address or path. Strings under a name such as
`url` or `command`, and those of a tool with such a name, must be in the person's messages as a whole.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from app.session import strings
from core.errors import RequestError

_MOST_CHARACTERS = 1_000_000
# Nested objects and lists. The depth that a JSON parser accepts depends on the version of Python.
_MOST_DEPTH = 100
# Most addresses, paths and commands that a reason lists.
_MOST_NAMED = 5


def checked_arguments(text: str) -> str:
    """The JSON object `text` on one line, as it is sent to a tool.

    Raises `RequestError` if it is not exactly one JSON object: also for a name that occurs twice, because
    programs differ in which value they use, for numbers and characters that JSON or UTF-8 cannot have, and if
    it is nested deeper than programs agree to read.
    """
    return json.dumps(_read(text), ensure_ascii=False, allow_nan=False)


def same_arguments(first: str, second: str) -> bool:
    """Whether both are the same JSON value, regardless of the order of names."""
    try:
        return _ordered(_read(first)) == _ordered(_read(second))
    except RequestError:
        return first == second


def outside_of(tool: str, arguments: str, own_texts: Sequence[str]) -> tuple[str, ...]:
    """The addresses, paths and commands in a call of `tool` that are in none of `own_texts`; at most five."""
    try:
        value = _read(arguments)
    except RequestError:
        return (arguments,)
    found: dict[str, None] = {}
    for text, whole in _texts(value, _is_exact(tool)):
        pieces = [text] if whole else _odd_words(text)
        found |= dict.fromkeys(piece for piece in pieces if not _stands(piece, own_texts))
    return tuple(found)[:_MOST_NAMED]


def _read(text: str) -> dict[str, Any]:
    if len(text) > _MOST_CHARACTERS:
        raise RequestError(strings.arguments_long(len(text), _MOST_CHARACTERS), strings.ARGUMENTS_HINT)
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_refused)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        raise RequestError(strings.not_json(error.msg, error.lineno), strings.ARGUMENTS_HINT) from error
    except UnicodeEncodeError as error:
        raise RequestError(strings.NOT_TEXT, strings.ARGUMENTS_HINT) from error
    except (ValueError, RecursionError) as error:
        raise RequestError(strings.not_json(str(error), 0), strings.ARGUMENTS_HINT) from error
    if not isinstance(value, dict):
        raise RequestError(strings.NOT_AN_OBJECT, strings.ARGUMENTS_HINT)
    if is_too_deep(value):
        raise RequestError(strings.arguments_deep(_MOST_DEPTH), strings.ARGUMENTS_HINT)
    return value


def is_too_deep(value: Any) -> bool:
    """Whether a JSON value nests objects and lists more deeply than arguments may."""
    layer = [value]
    for _ in range(_MOST_DEPTH + 1):
        layer = [one for one in layer if isinstance(one, dict | list)]
        if not layer:
            return False
        layer = [one for held in layer for one in (held.values() if isinstance(held, dict) else held)]
    return True


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(strings.named_twice(name))
        found[name] = value
    return found


def _refused(constant: str) -> Any:
    raise ValueError(strings.not_a_number(constant))


def _ordered(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# ---- the scope of a permission for several calls

# Words in the names of arguments and tools. A value with such a name is checked as a whole.
# fmt: off
_EXACT = frozenset({
    "address", "addresses", "arg", "args", "argument", "arguments", "argv", "bash", "bcc", "cc", "cmd",
    "code", "command", "commands", "cwd", "dest", "destination", "dir", "directory", "domain", "email",
    "emails", "endpoint", "eval", "evaluate", "exec", "executable", "execute", "expression", "file",
    "filename", "files", "folder", "host", "hostname", "href", "ip", "link", "links", "path", "paths",
    "powershell", "program", "recipient", "recipients", "root", "run", "script", "scripts", "server", "sh",
    "shell", "source", "spawn", "sql", "target", "terminal", "to", "uri", "uris", "url", "urls", "zsh",
})
# fmt: on
# Compiled at their first use, so not for chats without tools.
_NAME_WORDS = r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])"
# Separators of words.
_BETWEEN = "[\\s\"'`“”„‘’«»()\\[\\]{}<>|,;]+"
_HARMLESS = (
    r"[^\W_](?:[\w'’-]*\w)?"  # a word
    r"|[+−-]?\d+(?:[.,]\d+)?%?"  # a number
    r"|\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?|\d{1,2}:\d\d(?::\d\d)?"  # a date, a time
    r"|[-–—%]|"
)
# Characters that programs treat as a dot or slash in addresses.
_DOTS = str.maketrans({"。": ".", "｡": ".", "∕": "/", "⁄": "/", "⧸": "/"})
_BEFORE = r"(?<![\w./\\~@:%&=#$+-])"
_BEHIND = r"(?![\w/\\~@%&=#$+-]|[.:?!]\S)"


def _is_exact(name: str) -> bool:
    return any(word.lower() in _EXACT for word in re.findall(_NAME_WORDS, name))


def _texts(value: Any, whole: bool) -> Iterator[tuple[str, bool]]:
    """The texts in a JSON value, and whether each is checked as a whole. Numbers are checked only then."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield name, False
            yield from _texts(one, whole or _is_exact(name))
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, whole)
    elif isinstance(value, str):
        if value.strip():
            yield value, whole
    elif whole and value is not None and not isinstance(value, bool):
        yield json.dumps(value), True


def _odd_words(text: str) -> list[str]:
    """The words of `text` that could be an address, a path or a part of a command."""
    plain = unicodedata.normalize("NFKC", text).translate(_DOTS)
    words = (word.rstrip(".:!?…") for word in re.split(_BETWEEN, plain))
    return [word for word in words if not re.fullmatch(_HARMLESS, word)]


def _stands(piece: str, own_texts: Sequence[str]) -> bool:
    """Whether `piece` is in one of the texts, and not only a part of a longer address or path."""
    pattern = re.compile(_BEFORE + re.escape(piece.strip()) + _BEHIND)
    return any(pattern.search(text) for text in own_texts)
