"""Recycled: newest row a token, bounded; what was passed over and not said since."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.drafting.evidence.recycled import ROW_IDS, Recycled


def test_the_newest_row_counts() -> None:
    recycled = Recycled()
    recycled.see(1, [5, 6, 7], 5)
    recycled.see(1, list(range(20)), 0)
    recycled.see_rejected(2, [9])
    assert recycled.after(1) == tuple(range(ROW_IDS))
    assert recycled.after(2) == (9,)
    assert recycled.after(3) == ()


def test_what_was_passed_over_is_forgotten_once_it_is_said() -> None:
    recycled = Recycled()
    recycled.see(1, [5, 6, 7, 8], 5)
    assert recycled.passed_over(1) == (6, 7, 8)
    assert recycled.passed_over(2) == ()
    recycled.see(5, [7, 9], 7)
    assert recycled.passed_over(1) == (9,)
    assert recycled.passed_over(2) == (6, 8)
    # A rejected place is not part of the answer, so nothing was passed over there.
    recycled.see_rejected(9, [1, 2, 3])
    assert recycled.passed_over(1) == (9,)


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 5))
def test_it_never_holds_more_rows_than_it_may(lasts: list[int], capacity: int) -> None:
    recycled = Recycled(capacity)
    for last in lasts:
        recycled.see(last, [last], last)
    newest = list(dict.fromkeys(reversed(lasts)))[:capacity]
    assert len(recycled) == len(newest)
    assert all(recycled.after(last) == (last,) for last in newest)
