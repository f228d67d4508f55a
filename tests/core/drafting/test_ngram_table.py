"""NgramTable against a dict with the same hash, overwriting included; reset and restore."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.ngram_table import MULTIPLIER, NgramTable, NgramTables
from core.errors import SettingError

SLOTS = 2**12
_INVERSE = pow(MULTIPLIER, -1, 2**64)


def hash_of(window: tuple[int, ...]) -> int:
    """The formula, without rolling."""
    value = 0
    for power, token in enumerate(reversed(window)):
        value += token * MULTIPLIER**power
    return value % 2**64


def slot_of(window: tuple[int, ...]) -> int:
    """Where the window is kept in a table of `SLOTS`."""
    mixed = hash_of(window) * MULTIPLIER % 2**64
    return (mixed ^ mixed >> 32) * MULTIPLIER % 2**64 // (2**64 // SLOTS)


def landing_in(slot: int, low: int) -> int:
    """A window hash that falls into `slot`; different `low` make different hashes."""
    folded = ((slot << 52) | low) * _INVERSE % 2**64
    return (folded ^ folded >> 32) * _INVERSE % 2**64


@given(st.lists(st.integers(0, 2**32), min_size=5, max_size=40), st.integers(1, 5))
def test_rolling_equals_hashing_from_scratch(tokens: list[int], n: int) -> None:
    table = NgramTable(n, SLOTS)
    value = table.window_hash(tokens[:n])
    for end in range(n, len(tokens)):
        value = table.roll(value, tokens[end - n], tokens[end])
        window = tuple(tokens[end - n + 1 : end + 1])
        assert value == table.window_hash(window) == hash_of(window)


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 2**50), st.integers(0, 3)), max_size=60
    )
)
def test_collisions_overwrite_and_are_counted(steps: list[tuple[bool, int, int, int]]) -> None:
    table = NgramTable(16, SLOTS)
    model: dict[int, int] = {}
    inserts = overwrites = lookups = hits = 0
    for is_insert, slot, low, token in steps:
        value = landing_in(slot * 1000, low)
        assert table.slot(value) == slot * 1000
        if is_insert:
            table.insert(value, token)
            inserts += 1
            overwrites += model.get(slot * 1000, token) != token
            model[slot * 1000] = token
        else:
            assert table.get(value) == model.get(slot * 1000)
            lookups += 1
            hits += slot * 1000 in model
        stats = table.stats()
        assert (stats.used, stats.slots) == (len(model), SLOTS)
        assert (stats.inserts, stats.overwrites) == (inserts, overwrites)
        assert (stats.lookups, stats.hits) == (lookups, hits)
    slots, tokens = table.entries()
    assert dict(zip(slots.tolist(), tokens.tolist())) == model
    assert slots.tolist() == sorted(model)


@given(st.lists(st.integers(-(2**70), 2**70), max_size=20))
def test_ids_that_are_no_ids_are_not_kept(tokens: list[int]) -> None:
    table = NgramTable(2, SLOTS)
    for token in tokens:
        table.insert(table.window_hash((token, token)), token)
    assert set(table.entries()[1].tolist()) <= {token for token in tokens if 0 <= token < 2**32 - 1}


@pytest.mark.parametrize("varied", ["first", "last", "both"])
def test_neighbouring_windows_spread_over_the_table(varied: str) -> None:
    """As many windows as slots fill about 1 − 1/e of them, whichever token tells them apart."""
    table = NgramTable(2, SLOTS)
    for i in range(SLOTS):
        window = {"first": (i, 9), "last": (9, i), "both": divmod(i, 64)}[varied]
        table.insert(table.window_hash(window), 1)
    assert 0.6 * SLOTS < table.used < 0.67 * SLOTS


def test_reset_erases_everything() -> None:
    table = NgramTable(16, SLOTS)
    table.insert(5, 6)
    assert table.get(5) == 6
    table.reset()
    assert table.get(5) is None
    assert table.used == 0
    assert table.entries()[0].size == 0
    assert table.stats().inserts == 0


@given(st.dictionaries(st.integers(0, SLOTS - 1), st.integers(0, 2**32 - 2), max_size=30))
def test_restore_gives_back_what_entries_gave(content: dict[int, int]) -> None:
    table = NgramTable(16, SLOTS)
    for slot, token in content.items():
        table.insert(landing_in(slot, 3), token)
    other = NgramTable(16, SLOTS)
    other.insert(landing_in(7, 0), 1)
    other.restore(*table.entries())
    assert other.used == len(content)
    assert [array.tolist() for array in other.entries()] == [array.tolist() for array in table.entries()]
    assert all(other.get(landing_in(slot, 9)) == token for slot, token in content.items())


@pytest.mark.parametrize(
    ("slots", "tokens"),
    [([SLOTS], [1]), ([1, 1], [2, 3]), ([1, 2], [3]), ([1], [2**32 - 1]), ([[1]], [[2]])],
)
def test_restore_refuses_nonsense_and_keeps_what_it_had(slots: list[int], tokens: list[int]) -> None:
    table = NgramTable(16, SLOTS)
    table.insert(5, 6)
    with pytest.raises(ValueError, match=r"table|twice"):
        table.restore(np.array(slots, np.uint32), np.array(tokens, np.uint32))
    assert table.get(5) == 6


@pytest.mark.parametrize("slots", [0, -4096, 2**11, 2**23, 5000, 2**12 + 1])
def test_impossible_sizes_are_refused_with_what_is_allowed(slots: int) -> None:
    with pytest.raises(SettingError, match="power of two from 4,096 to 4,194,304"):
        NgramTable(16, slots)


@pytest.mark.parametrize("bits", range(12, 23))
def test_every_allowed_size_works(bits: int) -> None:
    table = NgramTable(16, 2**bits)
    table.insert(2**64 - 1, 3)
    table.insert(0, 4)
    assert (table.get(2**64 - 1), table.get(0)) == (3, 4)


def test_families_and_shapes_do_not_share() -> None:
    tables = NgramTables()
    first = tables.table("a", 16, SLOTS)
    assert tables.table("a", 16, SLOTS) is first
    others = [tables.table("b", 16, SLOTS), tables.table("a", 8, SLOTS), tables.table("a", 16, 2 * SLOTS)]
    assert all(other is not first for other in others)
    assert tables.of_family("a") == (first, others[1], others[2])
    assert tables.of_family("c") == ()
