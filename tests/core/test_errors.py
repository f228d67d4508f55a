"""The declaration of errors: each class has its own code or that of its base, and the kind of its family."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import combinations

import pytest

from core.errors import DraftlightError, InternalError, ModelError, RequestError, SettingError, WorkerError

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
