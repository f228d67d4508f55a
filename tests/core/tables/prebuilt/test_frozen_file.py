"""Frozen tables on disk: what was written comes back, and nothing else ever becomes a table."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from core.drafting.tables.frozen_table import FrozenTable
from core.errors import TableError
from core.tables.container import encode
from core.tables.prebuilt.frozen_file import FROZEN, save_frozen
from core.tables.prebuilt.learned_file import LearnedHeader

FAMILY, NAME, VOCABULARY = "f" * 64, "Toy", 260


@pytest.fixture
def table() -> FrozenTable:
    rng = random.Random(0)
    text = [rng.randrange(40) for _ in range(2000)]
    return FrozenTable.build(
        [text], leader_tokens=1, follower_tokens=3, leader_capacity=30, follower_capacity=8
    )


@pytest.fixture
def path(tmp_path: Path, table: FrozenTable) -> Path:
    target = tmp_path / "tables" / "toy.frozen"
    save_frozen(table, target, family=FAMILY, family_name=NAME, learned_from="a test")
    return target


def load(path: Path) -> FrozenTable:
    return FROZEN.load(path, family=FAMILY, family_name=NAME, vocabulary=VOCABULARY)


def test_what_was_written_comes_back(path: Path, table: FrozenTable) -> None:
    assert dict(load(path).entries()) == dict(table.entries())
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_large_ids_come_back(tmp_path: Path) -> None:
    large = FrozenTable({(1,): ((150_000, 2),)})
    save_frozen(large, tmp_path / "t", family=FAMILY, family_name=NAME, learned_from="a test")
    found = FROZEN.load(tmp_path / "t", family=FAMILY, family_name=NAME, vocabulary=151_000)
    assert dict(found.entries()) == dict(large.entries())


def test_another_family_is_refused_with_both_names(path: Path) -> None:
    with pytest.raises(TableError, match="Toy tokenizer, and the model has the Qwen3 one"):
        FROZEN.load(path, family="0" * 64, family_name="Qwen3", vocabulary=VOCABULARY)


def test_ids_outside_the_vocabulary_are_refused(path: Path) -> None:
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
        (parts(), replace(HEADER, version=3), "version 3, and this Draftlight reads 2"),
        (parts(), replace(HEADER, family="f"), "makes no sense"),
        ({**parts(), "more": np.zeros(1, np.uint8)}, HEADER, "arrays it should"),
        ({"counts": parts()["counts"]}, HEADER, "arrays it should"),
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
def test_lies_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], header: LearnedHeader, words: str
) -> None:
    target = tmp_path / "liar.frozen"
    target.write_bytes(encode(header, arrays))
    with pytest.raises(TableError, match=words):
        load(target)


def test_no_damaged_file_loads_or_crashes(path: Path) -> None:
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


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be read"):
        load(tmp_path / "none.frozen")
