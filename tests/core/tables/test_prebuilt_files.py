"""Prebuilt table files: round trips, and rejection of damaged or malformed content."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from core.drafting.cacheback import FrozenTable
from core.drafting.gram_table import GramTable
from core.errors import TableError
from core.tables.files import encode
from core.tables.prebuilt import FROZEN, GRAMS, LearnedHeader, save_frozen, save_grams
from tests.core.drafting.support import frozen_table
from tests.tuning.gram_count import GramCounter, Pruning

FAMILY, NAME, VOCABULARY = "f" * 64, "Toy", 260


@pytest.fixture
def table() -> FrozenTable:
    rng = random.Random(0)
    return frozen_table([rng.randrange(40) for _ in range(2000)], 1, 3, most=8)


@pytest.fixture
def path(tmp_path: Path, table: FrozenTable) -> Path:
    target = tmp_path / "tables" / "toy.frozen"
    save_frozen(table, target, family=FAMILY, family_name=NAME, learned_from="a test")
    return target


def load(path: Path) -> FrozenTable:
    return FROZEN.load(path, family=FAMILY, family_name=NAME, vocabulary=VOCABULARY)


def test_frozen_what_was_written_comes_back(path: Path, table: FrozenTable) -> None:
    assert dict(load(path).entries()) == dict(table.entries())
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_large_ids_come_back(tmp_path: Path) -> None:
    large = FrozenTable({(1,): ((150_000, 2),)})
    save_frozen(large, tmp_path / "t", family=FAMILY, family_name=NAME, learned_from="a test")
    found = FROZEN.load(tmp_path / "t", family=FAMILY, family_name=NAME, vocabulary=151_000)
    assert dict(found.entries()) == dict(large.entries())


def test_frozen_another_family_is_refused_with_both_names(path: Path) -> None:
    with pytest.raises(TableError, match="Toy tokenizer; the model uses the Qwen3 tokenizer"):
        FROZEN.load(path, family="0" * 64, family_name="Qwen3", vocabulary=VOCABULARY)


def test_frozen_ids_outside_the_vocabulary_are_refused(path: Path) -> None:
    with pytest.raises(TableError, match="outside the model's vocabulary of 20"):
        FROZEN.load(path, family=FAMILY, family_name=NAME, vocabulary=20)


def parts(**changes: np.ndarray) -> dict[str, np.ndarray]:
    whole = {
        "leaders": np.array([[1], [2]], np.int32),
        "followers": np.array([[3, 4], [5, 6], [7, 8]], np.int32),
        "counts": np.array([2, 1], np.int32),
    }
    return {**whole, **changes}


HEADER = FROZEN.header(FAMILY, NAME, "a test")


@pytest.mark.parametrize(
    ("arrays", "header", "words"),
    [
        (parts(), replace(HEADER, format="something"), "not a Draftlight file of this kind"),
        (parts(), replace(HEADER, version=3), "version 3; this Draftlight reads version 2"),
        (parts(), replace(HEADER, family="f"), "invalid header"),
        ({**parts(), "more": np.zeros(1, np.uint8)}, HEADER, "expected arrays"),
        ({"counts": parts()["counts"]}, HEADER, "expected arrays"),
        (parts(counts=np.array([2, 2], np.int32)), HEADER, "do not add up"),
        (parts(counts=np.array([4, -1], np.int32)), HEADER, "do not add up"),
        (parts(counts=np.array([3], np.int32)), HEADER, "do not fit together"),
        (parts(leaders=np.array([1, 2], np.int32)), HEADER, "do not fit together"),
        (parts(leaders=np.array([[1], [1]], np.int32)), HEADER, "occurs twice"),
        (parts(leaders=np.array([[1], [-2]], np.int32)), HEADER, "outside"),
        (parts(followers=np.array([[3, 4], [5, 6], [7, 999]], np.int32)), HEADER, "outside"),
        (parts(followers=np.zeros((3, 2), np.float32)), HEADER, "16- or 32-bit integers"),
    ],
)
def test_frozen_lies_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], header: LearnedHeader, words: str
) -> None:
    target = tmp_path / "liar.frozen"
    target.write_bytes(encode(header, arrays))
    with pytest.raises(TableError, match=words):
        load(target)


def test_frozen_no_damaged_file_loads_or_crashes(path: Path) -> None:
    """Truncations and flipped bits: every one is noticed."""
    content = path.read_bytes()
    rng = random.Random(1)
    for number in range(400):
        spoilt = bytearray(content)
        if number % 2:
            spoilt = spoilt[: rng.randrange(len(content))]
        else:
            at = rng.randrange(len(spoilt))
            spoilt[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(spoilt))
        with pytest.raises(TableError):
            load(path)


def test_frozen_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be read"):
        load(tmp_path / "none.frozen")


@pytest.fixture
def grams() -> GramTable:
    rng = random.Random(0)
    counter = GramCounter(3)
    counter.add([], [rng.randrange(40) for _ in range(2000)])
    return counter.table(Pruning(most_bytes=9000, highest_order=3))


@pytest.fixture
def grams_path(tmp_path: Path, grams: GramTable) -> Path:
    target = tmp_path / "tables" / "toy.grams"
    save_grams(grams, target, family=FAMILY, family_name=NAME, learned_from="a test")
    return target


def load_grams(grams_path: Path) -> GramTable:
    return GRAMS.load(grams_path, family=FAMILY, family_name=NAME, vocabulary=VOCABULARY)


def test_grams_what_was_written_comes_back(grams_path: Path, grams: GramTable) -> None:
    assert load_grams(grams_path).levels == grams.levels
    assert [p.name for p in grams_path.parent.iterdir()] == [grams_path.name]


def test_an_empty_table(tmp_path: Path) -> None:
    target = tmp_path / "empty.grams"
    counter = GramCounter(1)
    counter.add([], [1])
    save_grams(counter.table(Pruning()), target, family=FAMILY, family_name=NAME, learned_from="a test")
    assert [seen.order for seen in load_grams(target).lookup([1])] == [0]


def test_large_ids_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "large.grams"
    counter = GramCounter(1)
    counter.add([], [1, 150_000, 1, 150_000])
    save_grams(counter.table(Pruning()), target, family=FAMILY, family_name=NAME, learned_from="a test")
    grams = GRAMS.load(target, family=FAMILY, family_name=NAME, vocabulary=151_000)
    assert grams.lookup([1])[0].followers == ((150_000, 1.0),)


def test_grams_another_family_is_refused_with_both_names(grams_path: Path) -> None:
    with pytest.raises(TableError, match="Toy tokenizer; the model uses the Qwen3 tokenizer"):
        GRAMS.load(grams_path, family="0" * 64, family_name="Qwen3", vocabulary=VOCABULARY)


def test_grams_ids_outside_the_vocabulary_are_refused(grams_path: Path) -> None:
    with pytest.raises(TableError, match="outside the model's vocabulary of 20"):
        GRAMS.load(grams_path, family=FAMILY, family_name=NAME, vocabulary=20)


def gram_parts(**changes: np.ndarray) -> dict[str, np.ndarray]:
    whole = {
        "sizes": np.array([1, 2], np.int32),
        "keys": np.array([0, 5, 9], np.uint32),
        "totals": np.array([40, 20, 10], np.uint8),
        "counts": np.array([1, 2, 1], np.uint8),
        "ids": np.array([3, 4, 5, 6], np.uint16),
        "shares": np.array([9, 200, 50, 255], np.uint8),
    }
    return {**whole, **changes}


GRAM_HEADER = GRAMS.header(FAMILY, NAME, "a test")


def test_the_honest_parts_load(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(encode(GRAM_HEADER, gram_parts()))
    assert len(load_grams(tmp_path / "t")) == 3


@pytest.mark.parametrize(
    ("arrays", "header", "words"),
    [
        (
            gram_parts(),
            replace(GRAM_HEADER, format="draftlight-frozen"),
            "not a Draftlight file of this kind",
        ),
        (gram_parts(), replace(GRAM_HEADER, version=3), "version 3; this Draftlight reads version 2"),
        (gram_parts(), replace(GRAM_HEADER, family="f"), "invalid header"),
        ({**gram_parts(), "more": np.zeros(1, np.uint8)}, GRAM_HEADER, "expected arrays"),
        ({"counts": gram_parts()["counts"]}, GRAM_HEADER, "expected arrays"),
        (gram_parts(sizes=np.array([1, 3], np.int32)), GRAM_HEADER, "do not add up"),
        (gram_parts(sizes=np.array([4, -1], np.int32)), GRAM_HEADER, "do not add up"),
        (gram_parts(sizes=np.array([2, 1], np.int32)), GRAM_HEADER, "do not add up"),
        (gram_parts(sizes=np.zeros(0, np.int32)), GRAM_HEADER, "wrong shapes"),
        (gram_parts(sizes=np.array([1, 2, *[0] * 20], np.int32)), GRAM_HEADER, "wrong shapes"),
        (gram_parts(ids=np.array([[3, 4, 5, 6]], np.uint16)), GRAM_HEADER, "wrong shapes"),
        (gram_parts(totals=np.array([40, 20], np.uint8)), GRAM_HEADER, "do not fit together"),
        (gram_parts(shares=np.array([9, 200, 50], np.uint8)), GRAM_HEADER, "do not fit together"),
        (gram_parts(counts=np.array([1, 3, 1], np.uint8)), GRAM_HEADER, "do not add up"),
        (gram_parts(counts=np.array([4, 0, 0], np.uint8)), GRAM_HEADER, "do not add up"),
        (gram_parts(ids=np.array([3, 4, 5, 999], np.uint16)), GRAM_HEADER, "outside"),
        (gram_parts(ids=np.array([3, 4, 5, 6], np.int64)), GRAM_HEADER, "wrong types"),
        (gram_parts(keys=np.array([0, 9, 5], np.uint32)), GRAM_HEADER, "not in order"),
        (gram_parts(keys=np.array([0, 5, 5], np.uint32)), GRAM_HEADER, "not in order"),
        (gram_parts(shares=np.array([9, 50, 200, 255], np.uint8)), GRAM_HEADER, "not probabilities"),
        (gram_parts(shares=np.array([9, 200, 150, 255], np.uint8)), GRAM_HEADER, "not probabilities"),
        (gram_parts(shares=np.array([9, 200, 0, 255], np.uint8)), GRAM_HEADER, "not probabilities"),
    ],
)
def test_grams_lies_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], header: LearnedHeader, words: str
) -> None:
    target = tmp_path / "liar.grams"
    target.write_bytes(encode(header, arrays))
    with pytest.raises(TableError, match=words):
        load_grams(target)


def test_grams_no_damaged_file_loads_or_crashes(grams_path: Path) -> None:
    """Truncations and flipped bits: every one is noticed."""
    content = grams_path.read_bytes()
    rng = random.Random(1)
    for number in range(600):
        spoilt = bytearray(content)
        if number % 2:
            spoilt = spoilt[: rng.randrange(len(content))]
        else:
            at = rng.randrange(len(spoilt)) if number % 4 else rng.randrange(900)
            spoilt[at] ^= 1 << rng.randrange(8)
        grams_path.write_bytes(bytes(spoilt))
        with pytest.raises(TableError):
            load_grams(grams_path)


def test_grams_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be read"):
        load_grams(tmp_path / "none.grams")


def test_a_place_that_cannot_be_written(tmp_path: Path, grams: GramTable) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot be written"):
        save_grams(grams, tmp_path / "file" / "t", family=FAMILY, family_name=NAME, learned_from="a test")
