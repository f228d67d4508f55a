"""GramTable: every context is found, longest first, and no other; two tables looked up as one."""

from __future__ import annotations

from array import array

import pytest

from core.drafting.gram_table import GramTable, Level, extend_hash, total_code


def key(*context: int) -> int:
    state = 0
    for token in reversed(context):
        state = extend_hash(state, token)
    return state >> 32


def level(*entries: tuple[tuple[int, ...], float, tuple[tuple[int, int], ...]]) -> Level:
    """Entries are (context, total, ((token, share of 255), …))."""
    entries = tuple(sorted(entries, key=lambda entry: key(*entry[0])))
    starts = [0]
    for _, _, followers in entries:
        starts.append(starts[-1] + len(followers))
    return Level(
        array("I", [key(*context) for context, _, _ in entries]),
        bytes(total_code(total) for _, total, _ in entries),
        array("I", starts),
        array("I", [token for _, _, followers in entries for token, _ in followers]),
        bytes(share for _, _, followers in entries for _, share in followers),
    )


@pytest.fixture
def table() -> GramTable:
    return GramTable(
        [
            level(((), 100.0, ((7, 51),))),
            level(((1,), 8.0, ((2, 204), (3, 51))), ((2,), 4.0, ((1, 255),))),
            level(((1, 2), 2.0, ((9, 255),)), ((2, 1), 3.0, ((4, 128), (5, 64), (6, 32)))),
        ]
    )


def test_longest_contexts_come_first(table: GramTable) -> None:
    found = table.lookup([5, 2, 1])
    assert [seen.order for seen in found] == [2, 1, 0]
    assert [[token for token, _ in seen.followers] for seen in found] == [[4, 5, 6], [2, 3], [7]]
    assert found[1].followers == ((2, pytest.approx(0.8)), (3, pytest.approx(0.2)))
    assert found[1].total == 8.0


def test_a_context_that_is_not_held_leaves_the_shorter_ones(table: GramTable) -> None:
    assert [seen.order for seen in table.lookup([3, 1])] == [1, 0]
    assert [seen.order for seen in table.lookup([1, 3])] == [0]


def test_short_contexts(table: GramTable) -> None:
    assert [seen.order for seen in table.lookup([])] == [0]
    assert [seen.order for seen in table.lookup([1])] == [1, 0]
    assert GramTable(()).lookup([1, 2, 3]) == []
    assert len(table) == 5


@pytest.mark.parametrize("total", [1, 2, 3, 4, 7, 100, 5000])
def test_totals_are_kept_to_a_few_percent(total: int) -> None:
    held = GramTable([level(((), float(total), ((1, 255),)))]).lookup([])[0].total
    assert held == pytest.approx(total, rel=0.023)
    assert total_code(1e9) == 255
