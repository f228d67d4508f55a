"""No pattern takes time with the square of a text's length.

A search may try a run again from each of its characters: `\\w+-\\w+` does in a run without a hyphen, and a
page of 40,000 letters took 15 seconds, in which its reader could not even be ended. `\\b\\w+-\\w+` begins
once a run.

A search or a match may also divide a run in two in every way: `[\\w-]*key[\\w-]*:` continues from each “key”
of `keykeykey…` to its end. `(?=[\\w-]*key)[\\w-]*:` does not: a look-ahead is not tried again.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

_SEARCHES = ("sub", "subn", "search", "findall", "finditer", "split")
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_LONG = 1000  # repetitions


def _first(items: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    """For each alternative: what stands before its first repetition, and the repetition and all after it."""
    for at, (kind, value) in enumerate(items):
        rest = items[at + 1 :]
        if kind is op.SUBPATTERN:
            for before, tail in _first(list(value[3])):
                yield items[:at] + before, tail + rest
            return
        if kind is op.BRANCH:
            for alternative in value[1]:
                for before, tail in _first(list(alternative)):
                    yield items[:at] + before, tail + rest
            return
        if kind in _REPEATS:
            yield items[:at], items[at:]
            return
        if kind not in (op.AT, op.ASSERT, op.ASSERT_NOT):
            return


def begins_again(pattern: str | bytes, flags: int = 0) -> bool:
    """Whether a search tries a run of any length from each of its characters, in at least one alternative."""
    parsed = parser.parse(pattern, flags)
    found = list(_first(list(parsed)))
    # What an alternative takes whole is not tried again.
    whole = [repr(repeated) for before, [(_, (_, _, repeated)), *rest] in found if not before and not rest]
    for before, [(_, (_least, most, repeated)), *rest] in found:
        is_anchored = bool(before)
        if before and before[-1] == (op.AT, op.AT_BEGINNING) and parsed.state.flags & re.M:
            once = compiler.compile(parser.SubPattern(parsed.state, list(repeated)))
            # From each beginning of a line over all of the lines below.
            is_anchored = not once.fullmatch(b"\n" if isinstance(pattern, bytes) else "\n")
        is_long = most is op.MAXREPEAT or most > _LONG
        required = any(
            kind is op.AT or parser.SubPattern(parsed.state, [(kind, value)]).getwidth()[0]
            for kind, value in rest
        )
        if is_long and required and not is_anchored and repr(repeated) not in whole:
            return True
    return False


_ALPHABET = [chr(code) for code in range(128)] + ["é", "…", "中", "\u2028"]
_CONSUMING = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)


def divides(pattern: str | bytes, flags: int = 0) -> bool:
    """Whether a run can be divided between two repetitions in every way, and the pattern fail after each.

    Every repetition is read as two in a row, so that `(a+)+b` is found, too.
    """
    parsed = parser.parse(pattern, flags)
    of_bytes = isinstance(pattern, bytes)
    chosen: dict[str, frozenset[str]] = {}

    def characters(items: list[Any]) -> frozenset[str]:
        """The characters that one item of width 1 accepts; of another none."""
        if len(items) != 1 or items[0][0] not in _CONSUMING:
            return frozenset()
        if repr(items) not in chosen:
            single = compiler.compile(parser.SubPattern(parsed.state, items))
            texts = ((each, each.encode("latin-1", "replace") if of_bytes else each) for each in _ALPHABET)
            chosen[repr(items)] = frozenset(each for each, text in texts if single.fullmatch(text))
        return chosen[repr(items)]

    def paths(items: list[Any], inside: frozenset[int]) -> list[list[tuple[Any, frozenset[int]]]]:
        """The sequences of simple items that `items` may be, each with the optional groups that it is in."""
        found: list[list[tuple[Any, frozenset[int]]]] = [[]]
        for item in items:
            kind, value = item
            if kind is op.SUBPATTERN:
                more = paths(list(value[3]), inside)
            elif kind is op.BRANCH:
                more = [path for each in value[1] for path in paths(list(each), inside)]
            elif kind in _REPEATS and not characters(list(value[2])):
                one, two = inside | ({next(number)} if not value[0] else set()), inside | {next(number)}
                once = paths(list(value[2]), one)
                again = paths(list(value[2]), two | one) if value[1] > 1 else [[]]
                more = [[*each, *more] for each in once for more in again]
            else:
                more = [[(item, inside)]]
                if kind in (op.ASSERT, op.ASSERT_NOT):
                    ahead.extend(paths(list(value[1]), frozenset()))
            found = [[*path, *each] for path in found for each in more][:_MOST_PATHS]
        return found

    def accepts(item: Any, run: frozenset[str]) -> bool:
        """Whether the item can be matched by characters of `run` only, or by nothing."""
        kind, value = item
        if kind in _REPEATS:
            return not value[0] or bool(characters(list(value[2])) & run)
        return kind not in _CONSUMING or bool(characters([item]) & run)

    number = count()
    ahead: list[list[tuple[Any, frozenset[int]]]] = []  # of look-around
    for path in [*paths(list(parsed), frozenset()), *ahead]:
        for first, (one, outside) in enumerate(path):
            for second in range(first + 1, len(path)) if _is_long(one) else ():
                two, groups = path[second]
                both = characters(list(one[1][2])) & characters(list(two[1][2])) if _is_long(two) else set()
                between = [item for item, inside in path[first + 1 : second] if inside <= outside | groups]
                # Where an optional group fails, the match goes on after it.
                after = [item for item, inside in path[second + 1 :] if inside <= outside]
                if both and all(accepts(item, both) for item in between) and any(map(_is_required, after)):
                    return True
    return False


def _is_long(item: Any) -> bool:
    return item[0] in (op.MAX_REPEAT, op.MIN_REPEAT) and item[1][1] > _LONG


_MOST_PATHS = 200


def _is_required(item: Any) -> bool:
    kind, value = item
    return kind not in _REPEATS or value[0] > 0


def modules(package: str) -> list[str]:
    """The modules of a package, or one module."""
    paths = getattr(importlib.import_module(package), "__path__", ())
    return [each.name for each in pkgutil.walk_packages(paths, f"{package}.")] if paths else [package]


def patterns(package: str) -> Iterator[tuple[str, str | bytes, int]]:
    """Name, pattern and flags of each compiled pattern of a package's modules."""
    for module in modules(package):
        for name, found in vars(importlib.import_module(module)).items():
            if isinstance(found, re.Pattern):
                yield f"{module}.{name}", found.pattern, found.flags & ~re.U


def searched(package: str) -> Iterator[tuple[str, str | bytes, int]]:
    """Place, pattern and flags of each search in the modules of a package."""
    for module in modules(package):
        spec = find_spec(module)
        assert spec
        assert spec.origin
        tree = ast.parse(Path(spec.origin).read_text("utf-8"))
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            owner, place = call.func.value, f"{spec.origin}:{call.lineno}"
            if call.func.attr not in _SEARCHES or not isinstance(owner, ast.Name):
                continue
            found = getattr(importlib.import_module(module), owner.id, None)
            if isinstance(found, re.Pattern):
                yield place, found.pattern, found.flags & ~re.U
            elif found is re and isinstance(call.args[0], ast.Constant):
                yield place, call.args[0].value, re.M if "re.M" in ast.unparse(call) else 0


@pytest.mark.sweep
@pytest.mark.parametrize("package", ["core", "app"])
def test_a_search_tries_a_run_once_and_not_from_each_of_its_characters(package: str) -> None:
    places = list(searched(package))
    assert len(places) > 20
    assert [(place, pattern) for place, pattern, flags in places if begins_again(pattern, flags)] == []


@pytest.mark.parametrize("pattern", [r"\w+-\w+", r"x|(\s*)<a>", r"(?m)^\s*>", r"[a-z]{2,}$", rb"\d+\."])
def test_a_pattern_that_begins_again_is_found(pattern: str | bytes) -> None:
    assert begins_again(pattern)


@pytest.mark.parametrize(
    "pattern",
    [r"\b\w+-", r"\w+", r"(?<!\s)\s*<a>", r"(?m)^[^\S\n]*>", r"\d{1,9}\.", r"^\s*a", r"a+b?", r"\s*\w|\s+"],
)
def test_a_pattern_that_begins_once_is_not(pattern: str | bytes) -> None:
    assert not begins_again(pattern)


@pytest.mark.sweep
@pytest.mark.parametrize("package", ["core", "app"])
def test_no_run_is_divided_in_every_way(package: str) -> None:
    places = [*searched(package), *patterns(package)]
    assert len(places) > 40
    assert [(place, pattern) for place, pattern, flags in places if divides(pattern, flags)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"x[\w-]*(?:key|word)[\w-]*:",
        r"(a+)+b",
        r"(?:a*a*b)?",
        r"\s*\n?\s*x",
        r"(?:\w+,?)*$",
        rb"\d*1\d*\.",
        r"\d+\.?\d*(?!\w)",
        r"(?=a*a*b)",
    ],
)
def test_a_pattern_that_divides_a_run_is_found(pattern: str | bytes) -> None:
    assert divides(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"x(?=[\w-]*key)[\w-]*:",
        r"(?:\w+,)*x",
        r"\s*a\s*x",
        r"\w*x\w*",
        r"(?:\w+,)+\w+",
        rb"\d*\.\d*\.",
        r".*\n\s*x",
        r"a+(?:,a*b)*",
    ],
)
def test_a_pattern_that_does_not_divide_is_not(pattern: str | bytes) -> None:
    assert not divides(pattern)


# What a request's text or its answer's meets.
MEET_TEXT = ["core.serve", "core.answer_format", "core.prompt"]


@pytest.mark.sweep
@pytest.mark.parametrize("module", MEET_TEXT)
def test_a_search_does_not_run_to_the_end_from_each_place(module: str) -> None:
    """`\\[[^\\]]*\\]` does in a text of opening brackets."""
    found = [
        (place, pattern)
        for place, pattern, flags in searched(module)
        if not str(pattern).startswith(("(?<", r"\b")) and divides(f"(?s:.*)(?:{pattern})", flags)
    ]
    assert found == []
