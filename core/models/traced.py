"""Traced: strings that remember which of their characters came from a message or a tool.

A chat template is a program that trims, splits, joins and escapes contents. Its output is a mixture of its
own text and of contents, and only its own text may become control tokens. So contents enter the template as
traced strings; every string operation carries the origins along, and an operation that cannot tell characters
apart counts its whole result as content.

Imported by the template process, so it imports little.
"""

from __future__ import annotations

import json
import re
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import index
from typing import Any, NamedTuple, SupportsIndex


class Run(NamedTuple):
    """Characters `start` to `end` (end-exclusive) come from position `offset` on in the string `source`."""

    start: int
    end: int
    source: int
    offset: int


class Traced(str):
    """A string with the origins of its characters: sorted runs that do not overlap."""

    _runs: tuple[Run, ...]

    def __new__(cls, text: str = "", runs: Iterable[Run] = ()) -> Traced:
        made = super().__new__(cls, text)
        made._runs = tuple(runs)
        return made

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> str:
        return concat((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> str:
        return concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> str:
        return concat([self] * index(times))

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        return percent(self, values)

    def __rmod__(self, pattern: str) -> str:
        return percent(pattern, self)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        if not isinstance(key, slice):
            at = index(key)
            text = super().__getitem__(at)
            at += len(self) if at < 0 else 0
            return self._cut(at, at + 1, text)
        start, stop, step = key.indices(len(self))
        if step == 1:
            return self._cut(start, max(start, stop))
        return concat([self._cut(at, at + 1) for at in range(start, stop, step)])

    def __iter__(self) -> Iterator[str]:
        for at, character in enumerate(str.__iter__(self)):
            yield self._cut(at, at + 1, character)

    def strip(self, chars: str | None = None, /) -> str:
        start = len(self) - len(super().lstrip(chars))
        return self._cut(start, max(start, len(super().rstrip(chars))))

    def lstrip(self, chars: str | None = None, /) -> str:
        return self._cut(len(self) - len(super().lstrip(chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> str:
        return self._cut(0, len(super().rstrip(chars)))

    def removeprefix(self, prefix: str, /) -> str:
        return self._cut(len(self) - len(super().removeprefix(prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> str:
        return self._cut(0, len(super().removesuffix(suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._located(super().split(sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._located(super().rsplit(sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        found: list[str] = []
        at = 0
        for line, ended in zip(super().splitlines(), super().splitlines(True)):
            found.append(self._cut(at, at + len(ended if keepends else line)))
            at += len(ended)
        return found

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        return self._parted(super().partition(sep))

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        return self._parted(super().rpartition(sep))

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        if not old:
            return self._whole(super().replace(old, new, count))
        parts: list[str] = []
        at = 0
        for part in self.split(old, count):
            if parts:
                # Typing `old` must not produce a control token.
                parts.append(content_like(new, self[at : at + len(old)]))
                at += len(old)
            parts.append(part)
            at += len(part)
        return concat(parts)

    def join(self, parts: Iterable[str], /) -> str:
        joined: list[str] = []
        for part in parts:
            if not isinstance(part, str):
                raise TypeError(f"expected a string, {type(part).__name__} found")
            joined += (self, part) if joined else (part,)
        return concat(joined)

    def _cut(self, start: int, end: int, text: str | None = None) -> str:
        """Characters `start` to `end`; `text` is the substring, if known."""
        text = str.__getitem__(self, slice(start, end)) if text is None else text
        runs = self._runs
        found: list[Run] = []
        for at in range(max(0, bisect_right(runs, start, key=_start) - 1), len(runs)):
            run = runs[at]
            if run.start >= end:
                break
            first, last = max(run.start, start), min(run.end, end)
            if first < last:
                found.append(Run(first - start, last - start, run.source, run.offset + first - run.start))
        return Traced(text, found) if found else text

    def _located(self, parts: list[str], sep: str | None) -> list[str]:
        found: list[str] = []
        at = 0
        for part in parts:
            if sep is None:
                at = str.find(self, part, at)
            found.append(self._cut(at, at + len(part), part))
            at += len(part) + len(sep or "")
        return found

    def _parted(self, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        middle = len(parts[0]) + len(parts[1])
        return self[: len(parts[0])], self[len(parts[0]) : middle], self[middle:]

    def _whole(self, text: str) -> str:
        return content_like(text, self)


def _overridden(name: str, *, recases: bool) -> Callable[..., str]:
    """The method `name` of strings. A change of case keeps the origin of each character; of other methods the
    whole result counts as content.
    """
    plain = getattr(str, name)

    def method(self: Traced, *arguments: Any) -> str:
        text: str = plain(self, *arguments)
        return Traced(text, self._runs) if recases and len(text) == len(self) else self._whole(text)

    return method


for _name in ("upper", "lower", "casefold", "capitalize", "title", "swapcase"):
    setattr(Traced, _name, _overridden(_name, recases=True))
for _name in ("center", "ljust", "rjust", "zfill", "expandtabs", "translate"):
    setattr(Traced, _name, _overridden(_name, recases=False))


def _start(run: Run) -> int:
    return run.start


def content_like(text: str, origin: str) -> str:
    """`text`, entirely from the origin of the first traced characters of `origin`."""
    runs = origin._runs if isinstance(origin, Traced) else ()
    if not runs or not text:
        return text
    return Traced(str.__getitem__(text, slice(None)), [Run(0, len(text), runs[0].source, runs[0].offset)])


def runs_of(text: str) -> tuple[Run, ...]:
    """The origins of the characters of `text`."""
    return text._runs if isinstance(text, Traced) else ()


def concat(parts: Iterable[str]) -> str:
    """`"".join`, with the origins of the characters."""
    parts = list(parts)
    runs: list[Run] = []
    at = 0
    for part in parts:
        if isinstance(part, Traced):
            runs += [Run(at + run.start, at + run.end, run.source, run.offset) for run in part._runs]
        at += len(part)
    text = "".join(parts)
    return Traced(text, runs) if runs else text


def traced_in(value: object) -> str:
    """The first traced string in `value`, its keys and items included; empty if there is none."""
    if isinstance(value, Traced):
        return value if value._runs else ""
    if isinstance(value, Mapping):
        inner: Iterable[object] = (each for item in value.items() for each in item)
    elif isinstance(value, list | tuple):
        inner = value
    else:
        return ""
    return next((found for each in inner if (found := traced_in(each))), "")


def text_of(value: object) -> str:
    """`str(value)`; the text of a list or mapping that holds content is content."""
    text = str(value)
    return text if isinstance(value, str) else content_like(text, traced_in(value))


def trace(value: Any, source: int, plain: frozenset[str] = frozenset()) -> Any:
    """`value` with all strings in it traced to `source`, except those under the keys `plain`.

    A thought among the parts of a content is traced to the source of a message's other fields, which is odd.
    """
    if isinstance(value, str):
        return Traced(value, [Run(0, len(value), source, 0)] if value else ())
    if isinstance(value, dict):
        return {
            (key if plain else trace(key, source)): each
            if key in plain
            else trace(
                each,
                source | 1 if key == "thinking" else source,
                frozenset() if key == "arguments" else plain,
            )
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [trace(each, source, plain) for each in value]
    return value


_DIRECTIVE = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-#0 +]*[\d*]*(?:\.[\d*]+)?)(?P<kind>[a-zA-Z%])")


def percent(pattern: str, values: Any) -> str:
    """`pattern % values`. Inserted content keeps its origins."""
    origin = traced_in(pattern) or traced_in(values)
    written = str.__mod__(str.__getitem__(pattern, slice(None)), values)
    if not origin:
        return written
    given = iter(values if isinstance(values, tuple) else (values,))
    parts: list[str] = []
    at = 0
    for found in _DIRECTIVE.finditer(pattern):
        parts.append(pattern[at : found.start()])
        at = found.end()
        if found["kind"] == "%":
            parts.append("%")
            continue
        if "*" in found["flags"]:
            return content_like(written, origin)
        value = values[found["key"]] if found["key"] is not None else next(given)
        if found["kind"] == "s" and not found["flags"]:
            parts.append(text_of(value))
        else:
            formatted = f"%{found['flags']}{found['kind']}" % (value,)
            parts.append(content_like(formatted, traced_in(value)))
    return concat([*parts, pattern[at:]])


# A prefix that contents cannot predict.
_NONCE = secrets.token_hex(8)
_PLACE = re.compile(rf"{_NONCE}(\d+);")
_ESCAPED = {False: re.compile(r'["\\\x00-\x1f]'), True: re.compile(r'["\\]|[^ -~]')}


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`json.dumps`, with the origins of the characters."""
    strings: list[Traced] = []

    def placed(value: Any) -> Any:
        if isinstance(value, Traced):
            strings.append(value)
            return f"{_NONCE}{len(strings) - 1};"
        if isinstance(value, dict):
            items = sorted(value.items()) if sort_keys else value.items()
            return {placed(key): placed(each) for key, each in items}
        return [placed(each) for each in value] if isinstance(value, list | tuple) else value

    written = json.dumps(
        placed(value) if traced_in(value) else value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys and not strings,
    )
    if not strings:
        return written
    parts = _PLACE.split(written)
    return concat(
        _escaped(strings[int(part)], ensure_ascii) if at % 2 else part for at, part in enumerate(parts)
    )


def _escaped(text: Traced, ensure_ascii: bool) -> str:
    parts: list[str] = []
    at = 0
    for found in _ESCAPED[ensure_ascii].finditer(text):
        parts.append(text[at : found.start()])
        at = found.end()
        parts.append(content_like(json.dumps(str.__str__(found[0]))[1:-1], text[found.start() : at]))
    return concat([*parts, text[at:]])
