"""Prebuilt table files of both kinds: round trips, and rejection of damaged or malformed content."""

from __future__ import annotations

import random
import tempfile
from array import array
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.drafting.cacheback import FrozenTable
from core.drafting.gram_table import GramTable, Level
from core.drafting.ngram_mod import ID_END
from core.errors import TableError
from core.tables.files import encode
from core.tables.prebuilt import FROZEN, GRAMS, HIGHEST_ORDER, LearnedKind, save_frozen, save_grams
from tests.core.drafting.support import frozen_table
from tests.tuning.gram_count import GramCounter, Pruning

FAMILY, NAME, VOCABULARY = "f" * 64, "Toy", 260
WHO = {"family": FAMILY, "family_name": NAME, "learned_from": "a test"}


class Kind(NamedTuple):
    """A kind of table with an honest file's arrays."""

    kind: LearnedKind[Any]
    arrays: dict[str, np.ndarray]

    def load(self, path: Path, family: str = FAMILY, name: str = NAME, vocabulary: int = VOCABULARY) -> Any:
        return self.kind.load(path, family=family, family_name=name, vocabulary=vocabulary)

    def save(self, tokens: list[int], path: Path) -> Any:
        """The table of `tokens`, which was written to `path`."""
        if self.kind is FROZEN:
            table = frozen_table(tokens, 1, 3, most=8)
            save_frozen(table, path, **WHO)
            return table
        counter = GramCounter(3)
        counter.add([], tokens)
        grams = counter.table(Pruning(most_bytes=9000, highest_order=3))
        save_grams(grams, path, **WHO)
        return grams


FROZEN_FILE = Kind(
    FROZEN,
    {
        "leaders": np.array([[1], [2]], np.int32),
        "followers": np.array([[3, 4], [5, 6], [7, 8]], np.int32),
        "counts": np.array([2, 1], np.int32),
    },
)
GRAMS_FILE = Kind(
    GRAMS,
    {
        "sizes": np.array([1, 2], np.int32),
        "keys": np.array([0, 5, 9], np.uint32),
        "totals": np.array([40, 20, 10], np.uint8),
        "counts": np.array([1, 2, 1], np.uint8),
        "ids": np.array([3, 4, 5, 6], np.uint16),
        "shares": np.array([9, 200, 50, 255], np.uint8),
    },
)
each = pytest.mark.parametrize("kind", [FROZEN_FILE, GRAMS_FILE], ids=["frozen", "grams"])


def content(table: Any) -> Any:
    return dict(table.entries()) if isinstance(table, FrozenTable) else table.levels


@pytest.fixture
def tokens() -> list[int]:
    rng = random.Random(0)
    return [rng.randrange(40) for _ in range(2000)]


@each
def test_what_was_written_comes_back_for_its_family_only(
    kind: Kind, tokens: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "tables" / "toy"
    table = kind.save(tokens, path)
    assert content(kind.load(path)) == content(table)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with pytest.raises(TableError, match="Toy tokenizer; the model uses the Qwen3 tokenizer"):
        kind.load(path, family="0" * 64, name="Qwen3")
    with pytest.raises(TableError, match="outside the model's vocabulary of 20"):
        kind.load(path, vocabulary=20)
    with pytest.raises(TableError, match="cannot be read"):
        kind.load(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot be written"):
        kind.save(tokens, tmp_path / "file" / "t")


ids = st.one_of(st.integers(0, 5), st.integers(0, ID_END - 1))


@st.composite
def frozen_tables(draw: st.DrawFn) -> FrozenTable:
    """Also empty ones, and leaders without followers."""
    leaders, followers = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    gram = st.tuples(*[ids] * followers)
    return FrozenTable(
        draw(st.dictionaries(st.tuples(*[ids] * leaders), st.lists(gram, max_size=4).map(tuple)))
    )


@st.composite
def gram_tables(draw: st.DrawFn) -> GramTable:
    """Also without orders or contexts, and contexts with as many followers as have a share."""
    levels = []
    for order in range(draw(st.integers(0, HIGHEST_ORDER + 1))):
        keys = sorted(draw(st.sets(st.integers(0, 2**32 - 1), max_size=3 if order else 1)))
        rows = [draw(st.sampled_from([[255], [1] * 255, [200, 55], [9]])) for _ in keys]
        starts = array("I", accumulate(map(len, rows), initial=0))
        held = array("I", draw(st.lists(ids, min_size=starts[-1], max_size=starts[-1])))
        totals = draw(st.binary(min_size=len(keys), max_size=len(keys)))
        levels.append(Level(array("I", keys), totals, starts, held, bytes(chain.from_iterable(rows))))
    return GramTable(levels)


@pytest.mark.sweep
@given(st.one_of(frozen_tables(), gram_tables()))
@settings(deadline=None, max_examples=60)
def test_every_table_that_is_saved_is_loaded_and_equal(table: FrozenTable | GramTable) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t")
        if isinstance(table, FrozenTable):
            save_frozen(table, path, **WHO)
        else:
            save_grams(table, path, **WHO)
        kind = FROZEN if isinstance(table, FrozenTable) else GRAMS
        assert content(kind.load(path, vocabulary=ID_END)) == content(table)


NOT_LOADABLE = [FrozenTable({(1,): ((-1,),)}), FrozenTable({(ID_END,): ((1,),)})]


@pytest.mark.parametrize("table", NOT_LOADABLE)
def test_what_could_not_be_loaded_is_not_written(table: FrozenTable, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="not written: it holds ids outside"):
        save_frozen(table, tmp_path / "t", **WHO)
    assert not (tmp_path / "t").exists()


HEADERS = [
    ({"format": "something"}, "not a Draftlight file of this kind"),
    ({"version": 3}, "version 3; this Draftlight reads version 2"),
    ({"family": "f"}, "invalid header"),
]
LIES: list[tuple[Kind, str, np.ndarray, str]] = [
    (FROZEN_FILE, "counts", np.array([2, 2], np.int32), "do not add up"),
    (FROZEN_FILE, "counts", np.array([4, -1], np.int32), "do not add up"),
    (FROZEN_FILE, "counts", np.array([3], np.int32), "do not fit together"),
    (FROZEN_FILE, "leaders", np.array([1, 2], np.int32), "do not fit together"),
    (FROZEN_FILE, "leaders", np.array([[1], [1]], np.int32), "occurs twice"),
    (FROZEN_FILE, "leaders", np.array([[1], [-2]], np.int32), "outside"),
    (FROZEN_FILE, "followers", np.array([[3, 4], [5, 6], [7, 999]], np.int32), "outside"),
    (FROZEN_FILE, "followers", np.zeros((3, 2), np.float32), "16- or 32-bit integers"),
    (GRAMS_FILE, "sizes", np.array([1, 3], np.int32), "do not add up"),
    (GRAMS_FILE, "sizes", np.array([4, -1], np.int32), "do not add up"),
    (GRAMS_FILE, "sizes", np.array([2, 1], np.int32), "do not add up"),
    (GRAMS_FILE, "sizes", np.zeros(0, np.int32), "do not add up"),
    (FROZEN_FILE, "followers", np.zeros((0, 0), np.int32), "do not add up"),
    (GRAMS_FILE, "sizes", np.array([1, 2, *[0] * 20], np.int32), "wrong shapes"),
    (GRAMS_FILE, "ids", np.array([[3, 4, 5, 6]], np.uint16), "wrong shapes"),
    (GRAMS_FILE, "totals", np.array([40, 20], np.uint8), "do not fit together"),
    (GRAMS_FILE, "shares", np.array([9, 200, 50], np.uint8), "do not fit together"),
    (GRAMS_FILE, "counts", np.array([1, 3, 1], np.uint8), "do not add up"),
    (GRAMS_FILE, "counts", np.array([4, 0, 0], np.uint8), "do not add up"),
    (GRAMS_FILE, "ids", np.array([3, 4, 5, 999], np.uint16), "outside"),
    (GRAMS_FILE, "ids", np.array([3, 4, 5, 6], np.int64), "wrong types"),
    (GRAMS_FILE, "keys", np.array([0, 9, 5], np.uint32), "not in order"),
    (GRAMS_FILE, "keys", np.array([0, 5, 5], np.uint32), "not in order"),
    (GRAMS_FILE, "shares", np.array([9, 50, 200, 255], np.uint8), "not probabilities"),
    (GRAMS_FILE, "shares", np.array([9, 200, 150, 255], np.uint8), "not probabilities"),
    (GRAMS_FILE, "shares", np.array([9, 200, 0, 255], np.uint8), "not probabilities"),
]


@each
def test_lies_of_the_header_are_refused(kind: Kind, tmp_path: Path) -> None:
    path, header = tmp_path / "t", kind.kind.header(FAMILY, NAME, "a test")
    path.write_bytes(encode(header, kind.arrays))
    assert len(content(kind.load(path))) == 2
    for changes, words in HEADERS:
        path.write_bytes(encode(replace(header, **changes), kind.arrays))
        with pytest.raises(TableError, match=words):
            kind.load(path)
    for arrays in ({**kind.arrays, "more": np.zeros(1, np.uint8)}, {"counts": kind.arrays["counts"]}):
        path.write_bytes(encode(header, arrays))
        with pytest.raises(TableError, match="expected arrays"):
            kind.load(path)


@pytest.mark.parametrize(("kind", "name", "array", "words"), LIES)
def test_lies_of_the_arrays_are_refused(
    kind: Kind, name: str, array: np.ndarray, words: str, tmp_path: Path
) -> None:
    header = kind.kind.header(FAMILY, NAME, "a test")
    (tmp_path / "t").write_bytes(encode(header, {**kind.arrays, name: array}))
    with pytest.raises(TableError, match=words):
        kind.load(tmp_path / "t")
