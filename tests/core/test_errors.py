"""The declaration of errors: each class has its own code or that of its base, and the kind of its family.

Errors of other programs are told in words.
"""

from __future__ import annotations

import ast
import errno
import os
from collections.abc import Iterator
from importlib import import_module
from itertools import combinations
from pathlib import Path

import pytest

from core.errors import (
    DraftlightError,
    InternalError,
    ModelError,
    RequestError,
    SettingError,
    WorkerError,
    reason_of,
)

# Modules that declare errors besides `core.errors`.
_DECLARING = ("core.cli.command_line", "core.cli.generate", "core.cli.launch", "core.models.runtime")


def _all(kind: type[DraftlightError]) -> Iterator[type[DraftlightError]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("core."):
            yield each
            yield from _all(each)


def test_only_subclasses_share_a_code() -> None:
    for module in _DECLARING:
        import_module(module)
    found = list(_all(DraftlightError))
    assert len(found) > 25
    for one, other in combinations(found, 2):
        assert one.code != other.code or issubclass(other, one) or issubclass(one, other)


@pytest.mark.parametrize(
    ("family", "kind"), [(RequestError, "request"), (WorkerError, "worker"), (InternalError, "internal")]
)
def test_a_family_has_one_kind(family: type[DraftlightError], kind: str) -> None:
    assert {each.kind for each in (family, *_all(family))} == {kind}


def test_a_class_inherits_what_it_does_not_declare() -> None:
    class Narrower(ModelError):
        pass

    class Own(SettingError, code="own"):
        pass

    assert (Narrower.code, Narrower.kind) == ("bad-model", "request")
    assert (Own.code, Own.kind) == ("own", "request")
    assert str(Own("Bad.", "Fix it.")) == "Bad. Fix it."


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file"),
        KeyError("weight_map"),
        RecursionError("maximum recursion depth exceeded"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        RuntimeError("[matmul] Last dimension of first input does not match.\nsecond line"),
        RuntimeError(),
        ModelError("The model is broken.", "Choose another."),
    ],
)
def test_a_reason_is_part_of_a_sentence(error: Exception) -> None:
    words = reason_of(error)
    assert words
    assert "\n" not in words
    assert not words.endswith(".")
    for told in (type(error).__name__, "Errno", "/some/file", "second line"):
        assert told not in words


def test_no_message_names_the_class_of_an_exception() -> None:
    """What people read says it with `reason_of`. Comparisons and logs may use the name."""
    root, found = Path(__file__).parents[2], []
    for path in (*root.glob("app/**/*.py"), *root.glob("core/**/*.py")):
        for handler in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(handler, ast.ExceptHandler) or not handler.name:
                continue
            compared = [
                part for each in ast.walk(handler) if isinstance(each, ast.Compare) for part in ast.walk(each)
            ]
            told = f"type({handler.name}).__name__"
            named = [
                each for each in ast.walk(handler) if isinstance(each, ast.Attribute | ast.FormattedValue)
            ]
            found += [
                f"{path.relative_to(root)}:{each.lineno}"
                for each in named
                if each not in compared and ast.unparse(each) in (told, f"f'{{{handler.name}!r}}'")
            ]
    assert found == []
