"""The layout of the transcript's entries. No widgets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.chat.entry_column import Anchor, EntryLayout


def test_places() -> None:
    layout = EntryLayout([100, 50, 10], [5, 5, 8], 20)
    assert layout.tops == [20, 125, 180]
    assert layout.end == 198
    assert layout.bottom(1) == 175
    assert list(layout.between(0, 20)) == []
    assert list(layout.between(0, 21)) == [0]
    assert list(layout.between(119, 126)) == [0, 1]
    assert list(layout.between(120, 125)) == []
    assert list(layout.between(0, 1000)) == [0, 1, 2]
    assert list(EntryLayout().between(0, 10)) == []


def test_the_first_measured_entry_in_the_view_stays_put() -> None:
    layout = EntryLayout([100, 50, 10], [5, 5, 8], 20)
    assert layout.anchor(60, 190, [False, True, True]) == Anchor(1, 60 - 125)
    assert layout.anchor(60, 100, [False, True, True]) == Anchor(0, 0.4, scaled=True)
    assert layout.anchor(500, 600, [True] * 3) is None
    higher = EntryLayout([170, 50, 10], [5, 5, 8], 20)
    assert higher.view_top(Anchor(1, -65)) == 130
    assert higher.view_top(Anchor(0, 0.4, scaled=True)) == 88


@given(st.lists(st.integers(0, 300), min_size=1, max_size=20), st.integers(0, 4000), st.integers(1, 400))
def test_between_is_what_touches(heights: list[int], low: int, height: int) -> None:
    layout = EntryLayout(heights, [7] * len(heights), 20)
    touching = [
        i
        for i in range(len(heights))
        if layout.tops[i] < low + height and layout.bottom(i) > low and heights[i]
    ]
    assert [i for i in layout.between(low, low + height) if heights[i]] == touching
