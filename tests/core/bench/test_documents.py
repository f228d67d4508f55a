"""Documents are the same for a seed, differ between seeds, and generated ones do not end."""

from __future__ import annotations

from itertools import islice

import pytest

from core.bench.cases import KINDS, document
from core.errors import RequestError


def text(kind: str, seed: int, parts: int = 40) -> str:
    return "".join(islice(document(kind, seed), parts))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_seeds_decide(kind: str) -> None:
    assert text(kind, 1) == text(kind, 1)
    assert text(kind, 1) != text(kind, 2)
    assert len(text(kind, 1)) > 2000


@pytest.mark.parametrize("kind", ["records", "minutes"])
def test_generated_kinds_go_on(kind: str) -> None:
    assert sum(1 for _ in islice(document(kind, 1), 3000)) == 3000


@pytest.mark.parametrize("kind", ["code", "manual", "story"])
def test_written_kinds_end_and_do_not_repeat(kind: str) -> None:
    parts = list(document(kind, 1))
    assert len(set(parts)) == len(parts)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(RequestError, match="poem"):
        document("poem", 1)
