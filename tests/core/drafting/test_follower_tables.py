"""LruTable against a list-based model: order, recency, eviction, capacity."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from core.drafting.cacheback import Gram, LruTable, pairs
from tests.core.drafting.support import few_ids

grams = st.tuples(st.integers(0, 3))
steps = st.lists(st.tuples(st.sampled_from(["insert", "query"]), grams, grams), max_size=80)


class Model:
    """Lists, most recent first."""

    def __init__(self, leaders: int, followers: int) -> None:
        self.capacities = leaders, followers
        self.held: list[tuple[Gram, list[Gram]]] = []

    def take(self, leader: Gram) -> list[Gram] | None:
        for index, (known, followers) in enumerate(self.held):
            if known == leader:
                self.held.insert(0, self.held.pop(index))
                return followers
        return None

    def insert(self, leader: Gram, follower: Gram) -> None:
        followers = self.take(leader)
        if followers is None:
            followers = []
            self.held.insert(0, (leader, followers))
            del self.held[self.capacities[0] :]
        if follower in followers:
            followers.remove(follower)
        followers.insert(0, follower)
        del followers[self.capacities[1] :]


@given(st.integers(1, 4), st.integers(1, 4), steps)
def test_equals_the_model_after_every_operation(
    leaders: int, followers: int, steps: Sequence[tuple[str, Gram, Gram]]
) -> None:
    table, model = LruTable(leaders, followers), Model(leaders, followers)
    for operation, leader, follower in steps:
        if operation == "insert":
            table.insert(leader, follower)
            model.insert(leader, follower)
        else:
            assert list(table.followers(leader)) == list(model.take(leader) or ())
        assert len(table) == len(model.held) <= leaders
    # Queries from the least recent leader on leave the order as it is.
    for leader, held in reversed(list(model.held)):
        assert list(table.followers(leader)) == held


lengths = st.integers(1, 3)


@given(few_ids, lengths, lengths)
def test_pairs_are_all_complete_windows_in_order(tokens: list[int], leader: int, follower: int) -> None:
    width = leader + follower
    windows = [tokens[i : i + width] for i in range(len(tokens)) if i + width <= len(tokens)]
    assert list(pairs(tokens, leader, follower)) == [(tuple(w[:leader]), tuple(w[leader:])) for w in windows]
