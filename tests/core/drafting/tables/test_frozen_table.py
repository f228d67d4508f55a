"""FrozenTable: what is counted, what is kept, and that pairs come from a sliding window."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from core.drafting.tables.frozen_table import FrozenTable, pairs
from tests.core.drafting.support import few_ids

lengths = st.integers(1, 3)


@given(few_ids, lengths, lengths)
def test_pairs_are_all_complete_windows_in_order(tokens: list[int], leader: int, follower: int) -> None:
    width = leader + follower
    windows = [tokens[i : i + width] for i in range(len(tokens)) if i + width <= len(tokens)]
    assert list(pairs(tokens, leader, follower)) == [(tuple(w[:leader]), tuple(w[leader:])) for w in windows]


@given(st.lists(few_ids, max_size=3), lengths, lengths, st.integers(1, 4), st.integers(1, 4))
def test_the_most_frequent_leaders_and_followers_stay(
    sequences: list[list[int]], leader: int, follower: int, leaders: int, followers: int
) -> None:
    table = FrozenTable.build(
        sequences,
        leader_tokens=leader,
        follower_tokens=follower,
        leader_capacity=leaders,
        follower_capacity=followers,
    )
    counted = Counter(pair for tokens in sequences for pair in pairs(tokens, leader, follower))
    totals: Counter[tuple[int, ...]] = Counter()
    for (first, _), count in counted.items():
        totals[first] += count
    assert len(table) == min(leaders, len(totals))
    kept = table.entries()
    most = sorted(totals.values(), reverse=True)[:leaders]
    assert sorted((totals[first] for first in kept), reverse=True) == most
    for first, seconds in kept.items():
        assert list(table.followers(first)) == list(seconds)
        frequencies = [counted[first, second] for second in seconds]
        best = sorted((n for (known, _), n in counted.items() if known == first), reverse=True)
        assert frequencies == best[:followers]


def test_an_unknown_leader_has_no_followers() -> None:
    assert list(FrozenTable({}).followers((1,))) == []
