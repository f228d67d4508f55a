"""Columns equal a plain list of positions, whatever is done to them."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from core.kv.positions import Columns

steps = st.lists(st.tuples(st.sampled_from(["extend", "jump", "cut"]), st.integers(0, 12)), max_size=30)


@given(steps)
def test_columns_are_a_list_of_positions(done: list[tuple[str, int]]) -> None:
    columns, places, following = Columns(), list[int](), 0
    whole: int | None = None  # the first that was skipped, until it is cut off
    for what, number in done:
        if what == "extend":
            columns.extend(number)
            places += range(following, following + number)
            following += number
        elif what == "jump":
            if number and whole is None:
                whole = following
            following += number
            columns.jump(following)
        else:
            following = max(0, following - number)
            columns.cut(following)
            whole = None if whole is not None and following <= whole else whole
            places = [place for place in places if place < following]
        assert columns.count == len(places)
        assert columns.next == following
        assert columns.places(0, len(places)).tolist() == places
        assert [columns.position(column) for column in range(len(places))] == places
        assert columns.whole == whole
        assert columns.gaps().tolist() == [place for place in range(following) if place not in places]
        assert columns.fork(following).places(0, len(places)).tolist() == places


@example([(0, 0)], -1)
@example([(0, 0), (2, 1)], 3)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4), st.integers(-1, 12))
def test_runs_that_contradict_each_other_are_refused(runs: list[tuple[int, int]], count: int) -> None:
    """As a damaged file has them: what is taken has these runs, and positions that ascend."""
    given_runs = np.array(runs, np.int32).reshape(-1, 2).T
    try:
        columns = Columns.of_runs(given_runs, count)
    except ValueError:
        return
    assert np.array_equal(columns.runs(), given_runs)
    assert columns.count == count
    places = columns.places(0, count).tolist()
    assert len(places) == count
    assert places == sorted(set(places))
