"""No pattern that is searched in texts begins with a run that it tries again from each of its characters.

`\\w+-\\w+` takes time with the square of the length of a run without a hyphen: a page of 40,000 letters took
15 seconds, in which its reader could not even be ended. `\\b\\w+-\\w+` begins once a run.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from importlib.util import find_spec
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


def searched(package: str) -> Iterator[tuple[str, str | bytes, int]]:
    """Place, pattern and flags of each search in the modules of a package."""
    for info in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        spec = find_spec(info.name)
        assert spec
        assert spec.origin
        tree = ast.parse(Path(spec.origin).read_text("utf-8"))
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            owner, place = call.func.value, f"{spec.origin}:{call.lineno}"
            if call.func.attr not in _SEARCHES or not isinstance(owner, ast.Name):
                continue
            found = getattr(importlib.import_module(info.name), owner.id, None)
            if isinstance(found, re.Pattern):
                yield place, found.pattern, found.flags & ~re.U
            elif found is re and isinstance(call.args[0], ast.Constant):
                yield place, call.args[0].value, re.M if "re.M" in ast.unparse(call) else 0


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
