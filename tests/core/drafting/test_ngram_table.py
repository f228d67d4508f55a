"""NgramTable against a dict with the same hash, overwriting included; reset, restore, decay, copies."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.drafting.ngram_mod import ID_END, MULTIPLIER, Entries, NgramTable
from core.drafting.shared_tables import NgramTables
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


def content(table: NgramTable) -> dict[int, int]:
    """Slot → token."""
    entries = table.entries()
    return dict(zip(entries.slots.tolist(), entries.tokens.tolist()))


def landing_in(slot: int, low: int) -> int:
    """A window hash that falls into `slot`; different `low` make different hashes."""
    folded = ((slot << 52) | low) * _INVERSE % 2**64
    return (folded ^ folded >> 32) * _INVERSE % 2**64


@given(st.lists(st.integers(0, 2**32), min_size=5, max_size=40), st.integers(1, 5))
def test_rolling_equals_hashing_from_scratch(tokens: list[int], n: int) -> None:
    table = NgramTable(n, SLOTS)
    value = hash_of(tuple(tokens[:n]))
    for end in range(n, len(tokens)):
        value = table.roll(value, tokens[end - n], tokens[end])
        window = tuple(tokens[end - n + 1 : end + 1])
        assert value == hash_of(window)


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
            table.insert_all([(value, token)])
            inserts += 1
            overwrites += model.get(slot * 1000, token) != token
            model[slot * 1000] = token
        else:
            assert table.get(value) == model.get(slot * 1000)
            lookups += 1
            hits += slot * 1000 in model
        stats = table.figures()
        assert (stats.used, stats.slots) == (len(model), SLOTS)
        assert (stats.inserts, stats.overwrites) == (inserts, overwrites)
        assert (stats.lookups, stats.hits) == (lookups, hits)
    assert content(table) == model
    assert table.entries().slots.tolist() == sorted(model)


@given(st.lists(st.integers(-(2**70), 2**70), max_size=20))
def test_ids_that_are_no_ids_are_not_kept(tokens: list[int]) -> None:
    table = NgramTable(2, SLOTS)
    for token in tokens:
        table.insert_all([(hash_of((token, token)), token)])
    assert set(content(table).values()) <= {token for token in tokens if 0 <= token < ID_END}


@pytest.mark.parametrize("varied", ["first", "last", "both"])
def test_neighbouring_windows_spread_over_the_table(varied: str) -> None:
    """As many windows as slots fill about 1 − 1/e of them, whichever token tells them apart."""
    table = NgramTable(2, SLOTS)
    table.decay_at = 2.0
    for i in range(SLOTS):
        window = {"first": (i, 9), "last": (9, i), "both": divmod(i, 64)}[varied]
        table.insert_all([(hash_of(window), 1)])
    assert 0.6 * SLOTS < table.used < 0.67 * SLOTS


def test_reset_erases_everything() -> None:
    table = NgramTable(16, SLOTS)
    table.insert_all([(5, 6)])
    assert table.get(5) == 6
    table.reset()
    assert table.get(5) is None
    assert table.used == 0
    assert content(table) == {}
    assert table.figures().inserts == 0


@given(st.dictionaries(st.integers(0, SLOTS - 1), st.integers(0, ID_END - 1), max_size=30))
def test_restore_gives_back_what_entries_gave(held: dict[int, int]) -> None:
    table = NgramTable(16, SLOTS)
    for slot, token in held.items():
        table.insert_all([(landing_in(slot, 3), token)])
    table.record(5, 3)
    other = NgramTable(16, SLOTS)
    other.insert_all([(landing_in(7, 0), 1)])
    other.restore(table.entries(), table.figures())
    assert other.figures() == table.figures()
    assert other.used == len(held)
    assert content(other) == content(table) == held
    assert all(other.get(landing_in(slot, 9)) == token for slot, token in held.items())


@pytest.mark.parametrize(
    ("slots", "tokens", "ages"),
    [
        ([SLOTS], [1], [0]),
        ([1, 1], [2, 3], [0, 0]),
        ([2, 1], [2, 3], [0, 0]),
        ([1, 2], [3], [0, 0]),
        ([1, 2], [3, 4], [0]),
        ([1], [ID_END], [0]),
        ([[1]], [[2]], [[0]]),
    ],
)
def test_restore_refuses_nonsense_and_keeps_what_it_had(
    slots: list[int], tokens: list[int], ages: list[int]
) -> None:
    table = NgramTable(16, SLOTS)
    table.insert_all([(5, 6)])
    with pytest.raises(ValueError, match=r"table|twice"):
        table.restore(
            Entries(np.array(slots, np.uint32), np.array(tokens, np.uint32), np.array(ages, np.uint8))
        )
    assert table.get(5) == 6


# ---- age


def write(table: NgramTable, slots: Iterable[int], token: int = 1) -> None:
    table.insert_all((landing_in(slot, 0), token) for slot in slots)


@pytest.mark.parametrize("decay_at", [0.25, 0.5, 0.9])
def test_when_it_is_too_full_the_oldest_quarter_leaves_and_nothing_else(decay_at: float) -> None:
    table = NgramTable(16, SLOTS)
    table.decay_at = decay_at
    epoch = SLOTS // 64
    limit = int(decay_at * SLOTS) // epoch * epoch
    write(table, range(limit))
    assert table.used == limit
    # The next epoch's end notices, and a quarter of what is there by then leaves.
    write(table, range(limit, limit + epoch))
    gone = (limit + epoch) // 4
    assert table.used == limit + epoch - gone
    left = set(content(table))
    # Exactly the oldest, but for the order inside one epoch.
    assert left >= set(range(gone + epoch, limit + epoch))
    assert not left & set(range(gone - epoch))


def test_what_is_said_again_stays() -> None:
    table = NgramTable(16, SLOTS)
    often = range(40)
    for start in range(40, 40 + 20 * SLOTS, 64):
        write(table, often, token=7)
        write(table, (slot % (SLOTS - 40) + 40 for slot in range(start, start + 64)))
    assert {content(table).get(slot) for slot in often} == {7}
    assert table.used <= SLOTS // 2 + SLOTS // 64


def test_a_table_whose_entries_are_all_equally_old_is_not_wiped() -> None:
    """As after a restore of a file that says so."""
    table = NgramTable(16, SLOTS)
    many = np.arange(3000, dtype=np.uint32)
    table.restore(Entries(many, many, np.zeros(3000, np.uint8)))
    write(table, range(3000, 3000 + SLOTS // 64))
    assert table.used == (3000 + SLOTS // 64) - (3000 + SLOTS // 64) // 4


@given(
    st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 900)), min_size=1, max_size=30),
    st.integers(0, 255),
)
@settings(max_examples=40, deadline=None)
def test_used_counts_what_is_there_however_old_it_gets(runs: list[tuple[int, int]], oldest: int) -> None:
    table = NgramTable(16, SLOTS)
    table.restore(Entries(np.array([9], np.uint32), np.array([8], np.uint32), np.array([oldest], np.uint8)))
    for start, length in runs:
        write(table, ((start + i) % SLOTS for i in range(length)))
        entries = table.entries()
        assert table.used == entries.slots.size == entries.ages.size
        assert table.figures().inserts >= table.used - 1


def test_ages_keep_their_order_for_ever() -> None:
    table = NgramTable(16, SLOTS)
    epoch = SLOTS // 64
    write(table, range(100, 100 + epoch))
    write(table, range(2000, 2000 + 8 * epoch))
    write(table, range(400, 400 + epoch))
    for _ in range(300):
        write(table, range(1000, 1000 + epoch))
    ages = dict(zip(table.entries().slots.tolist(), table.entries().ages.tolist()))
    assert ages[100] > ages[400] > ages[1000] >= 0


def test_a_copy_has_a_life_of_its_own() -> None:
    table = NgramTable(16, SLOTS)
    write(table, [3])
    before = table.figures()
    copy = table.copy()
    write(copy, [3, 4], token=2)
    assert copy.get(landing_in(4, 0)) == 2
    copy.record(4, 4)
    assert (content(table), table.figures()) == ({3: 1}, before)
    write(table, [5])
    assert content(copy) == {3: 2, 4: 2}


def test_private_tables_know_what_is_shared_and_teach_nothing() -> None:
    tables = NgramTables()
    write(tables.table("a", 16, SLOTS), [3])
    private = tables.private_copies("a")
    copy = private.table("a", 16, SLOTS)
    assert content(copy) == {3: 1}
    write(copy, [4])
    assert private.table("a", 16, SLOTS) is copy
    write(private.table("b", 16, SLOTS), [4])
    assert content(tables.table("a", 16, SLOTS)) == {3: 1}
    assert tables.for_family("b") == ()


@pytest.mark.parametrize("slots", [0, -4096, 2**11, 2**23, 5000, 2**12 + 1])
def test_impossible_sizes_are_refused_with_what_is_allowed(slots: int) -> None:
    with pytest.raises(SettingError, match="power of two from 4,096 to 4,194,304"):
        NgramTable(16, slots)


def test_families_and_shapes_do_not_share() -> None:
    tables = NgramTables()
    first = tables.table("a", 16, SLOTS)
    assert tables.table("a", 16, SLOTS) is first
    others = [tables.table("b", 16, SLOTS), tables.table("a", 8, SLOTS), tables.table("a", 16, 2 * SLOTS)]
    assert all(other is not first for other in others)
    assert tables.for_family("a") == (first, others[1], others[2])
    assert tables.for_family("c") == ()
    tables.forget("a")
    assert tables.for_family("a") == ()
    assert tables.for_family("b") == (others[0],)
