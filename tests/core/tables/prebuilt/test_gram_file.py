"""Gram tables on disk: what was written comes back, and nothing else ever becomes a table."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from core.drafting.tables.gram_table import GramTable
from core.errors import TableError
from core.tables.container import encode
from core.tables.prebuilt.gram_count import GramCounter, Pruning
from core.tables.prebuilt.gram_file import GRAMS, save_grams
from core.tables.prebuilt.learned_file import LearnedHeader

FAMILY, NAME, VOCABULARY = "f" * 64, "Toy", 260


@pytest.fixture
def table() -> GramTable:
    rng = random.Random(0)
    counter = GramCounter(3)
    counter.add([], [rng.randrange(40) for _ in range(2000)])
    return counter.table(Pruning(most_bytes=9000, highest_order=3))


@pytest.fixture
def path(tmp_path: Path, table: GramTable) -> Path:
    target = tmp_path / "tables" / "toy.grams"
    save_grams(table, target, family=FAMILY, family_name=NAME, learned_from="a test")
    return target


def load(path: Path) -> GramTable:
    return GRAMS.load(path, family=FAMILY, family_name=NAME, vocabulary=VOCABULARY)


def test_what_was_written_comes_back(path: Path, table: GramTable) -> None:
    assert load(path).levels == table.levels
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_an_empty_table(tmp_path: Path) -> None:
    target = tmp_path / "empty.grams"
    counter = GramCounter(1)
    counter.add([], [1])
    save_grams(counter.table(Pruning()), target, family=FAMILY, family_name=NAME, learned_from="a test")
    assert [seen.order for seen in load(target).look([1])] == [0]


def test_large_ids_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "large.grams"
    counter = GramCounter(1)
    counter.add([], [1, 150_000, 1, 150_000])
    save_grams(counter.table(Pruning()), target, family=FAMILY, family_name=NAME, learned_from="a test")
    table = GRAMS.load(target, family=FAMILY, family_name=NAME, vocabulary=151_000)
    assert table.look([1])[0].followers == ((150_000, 1.0),)


def test_another_family_is_refused_with_both_names(path: Path) -> None:
    with pytest.raises(TableError, match="Toy tokenizer, and the model has the Qwen3 one"):
        GRAMS.load(path, family="0" * 64, family_name="Qwen3", vocabulary=VOCABULARY)


def test_ids_outside_the_vocabulary_are_refused(path: Path) -> None:
    with pytest.raises(TableError, match="outside the model's vocabulary of 20"):
        GRAMS.load(path, family=FAMILY, family_name=NAME, vocabulary=20)


def parts(**changes: np.ndarray) -> dict[str, np.ndarray]:
    whole = {
        "sizes": np.array([1, 2], np.int32),
        "keys": np.array([0, 5, 9], np.uint32),
        "totals": np.array([40, 20, 10], np.uint8),
        "counts": np.array([1, 2, 1], np.uint8),
        "ids": np.array([3, 4, 5, 6], np.uint16),
        "shares": np.array([9, 200, 50, 255], np.uint8),
    }
    return {**whole, **changes}


HEADER = GRAMS.header(FAMILY, NAME, "a test")


def test_the_honest_parts_load(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(encode(HEADER, parts()))
    assert len(load(tmp_path / "t")) == 3


@pytest.mark.parametrize(
    ("arrays", "header", "words"),
    [
        (parts(), replace(HEADER, format="draftlight-frozen"), "not a Draftlight file of this kind"),
        (parts(), replace(HEADER, version=3), "version 3, and this Draftlight reads 2"),
        (parts(), replace(HEADER, family="f"), "makes no sense"),
        ({**parts(), "more": np.zeros(1, np.uint8)}, HEADER, "arrays it should"),
        ({"counts": parts()["counts"]}, HEADER, "arrays it should"),
        (parts(sizes=np.array([1, 3], np.int32)), HEADER, "do not add up"),
        (parts(sizes=np.array([4, -1], np.int32)), HEADER, "do not add up"),
        (parts(sizes=np.array([2, 1], np.int32)), HEADER, "do not add up"),
        (parts(sizes=np.zeros(0, np.int32)), HEADER, "wrong shapes"),
        (parts(sizes=np.array([1, 2, *[0] * 20], np.int32)), HEADER, "wrong shapes"),
        (parts(ids=np.array([[3, 4, 5, 6]], np.uint16)), HEADER, "wrong shapes"),
        (parts(totals=np.array([40, 20], np.uint8)), HEADER, "do not fit together"),
        (parts(shares=np.array([9, 200, 50], np.uint8)), HEADER, "do not fit together"),
        (parts(counts=np.array([1, 3, 1], np.uint8)), HEADER, "do not add up"),
        (parts(counts=np.array([4, 0, 0], np.uint8)), HEADER, "do not add up"),
        (parts(ids=np.array([3, 4, 5, 999], np.uint16)), HEADER, "outside"),
        (parts(ids=np.array([3, 4, 5, 6], np.int64)), HEADER, "wrong types"),
        (parts(keys=np.array([0, 9, 5], np.uint32)), HEADER, "not in order"),
        (parts(keys=np.array([0, 5, 5], np.uint32)), HEADER, "not in order"),
        (parts(shares=np.array([9, 50, 200, 255], np.uint8)), HEADER, "no probabilities"),
        (parts(shares=np.array([9, 200, 150, 255], np.uint8)), HEADER, "no probabilities"),
        (parts(shares=np.array([9, 200, 0, 255], np.uint8)), HEADER, "no probabilities"),
    ],
)
def test_lies_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], header: LearnedHeader, words: str
) -> None:
    target = tmp_path / "liar.grams"
    target.write_bytes(encode(header, arrays))
    with pytest.raises(TableError, match=words):
        load(target)


def test_no_damaged_file_loads_or_crashes(path: Path) -> None:
    """Truncations and flipped bits: every one is noticed."""
    content = path.read_bytes()
    rng = random.Random(1)
    for number in range(600):
        spoilt = bytearray(content)
        if number % 2:
            spoilt = spoilt[: rng.randrange(len(content))]
        else:
            at = rng.randrange(len(spoilt)) if number % 4 else rng.randrange(900)
            spoilt[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(spoilt))
        with pytest.raises(TableError):
            load(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be read"):
        load(tmp_path / "none.grams")


def test_a_place_that_cannot_be_written(tmp_path: Path, table: GramTable) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot be written"):
        save_grams(table, tmp_path / "file" / "t", family=FAMILY, family_name=NAME, learned_from="a test")
