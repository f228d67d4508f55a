"""A gram table of texts: as much as asked for, a piece at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.tables.prebuilt.corpus import Corpus
from core.tables.prebuilt.gram_count import GramCounter, Pruning
from core.tables.prebuilt.text_grams import TextGrams


def encode(text: str) -> list[int]:
    return list(text.encode())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("core.tables.prebuilt.corpus._PIECE_BYTES", 16)
    (tmp_path / "a").write_text("one two three four\n" * 3)
    (tmp_path / "b").write_text("five six\n")
    return tmp_path


def test_all_of_it(folder: Path) -> None:
    grams = TextGrams(Corpus([folder]), encode, most_tokens=1000)
    steps = list(grams.read())
    assert [step.tokens for step in steps] == sorted({step.tokens for step in steps})
    assert (steps[-1].tokens, steps[-1].share) == (66, 1.0)
    assert grams.counted == steps[-1]
    whole = GramCounter()
    for part in ("one two three four\n",) * 3 + ("five six\n",):
        whole.add((), encode(part))
    found, expected = grams.table(Pruning()).look(encode(" fou")), whole.table(Pruning()).look(encode(" fou"))
    assert found[0].followers == expected[0].followers == ((ord("r"), 1.0),)


def test_no_more_than_asked_for(folder: Path) -> None:
    grams = TextGrams(Corpus([folder]), encode, most_tokens=21)
    assert list(grams.read())[-1].tokens == 21
    assert grams.counted.share < 1.0
    assert not grams.table(Pruning()).look(encode("v"))[0].order, "nothing of the second file was read"
