"""Columns equal a plain list of positions, whatever is done to them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.kv.columns import Columns

steps = st.lists(st.tuples(st.sampled_from(["extend", "jump", "cut"]), st.integers(0, 12)), max_size=30)


@given(steps)
def test_columns_are_a_list_of_positions(done: list[tuple[str, int]]) -> None:
    columns, places, following = Columns(), list[int](), 0
    for what, number in done:
        if what == "extend":
            columns.extend(number)
            places += range(following, following + number)
            following += number
        elif what == "jump":
            following += number
            columns.jump(following)
        else:
            following = max(0, following - number)
            columns.cut(following)
            places = [place for place in places if place < following]
        assert columns.count == len(places)
        assert columns.next == following
        assert columns.places(0, len(places)).tolist() == places
        assert [columns.position(column) for column in range(len(places))] == places
        whole = next((i for i, place in enumerate(places) if place != i), len(places))
        if whole == len(places) == following:
            assert columns.whole is None
        else:
            assert columns.whole == whole
