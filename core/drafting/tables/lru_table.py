"""LruTable: leader → followers, both bounded, the least recently used leave. Cacheback's table.

Leaders and followers are tuples of ids of any length. Recency (the Cacheback paper, §3.1): a leader's is
renewed by a query and by an insert, a follower's by an insert only, and followers compete only
with followers of the same leader. Every operation is O(1): ordered dicts, hash map and linked
list in one. Knows no tree and no request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

Gram = tuple[int, ...]


class LruTable:
    """At most `leader_capacity` leaders with at most `follower_capacity` followers each."""

    def __init__(self, leader_capacity: int, follower_capacity: int) -> None:
        self.leader_capacity = leader_capacity
        self.follower_capacity = follower_capacity
        # Oldest first, at both levels.
        self._leaders: OrderedDict[Gram, OrderedDict[Gram, None]] = OrderedDict()

    def __len__(self) -> int:
        """Leaders held."""
        return len(self._leaders)

    def insert(self, leader: Gram, follower: Gram) -> None:
        """`follower` came after `leader`; both become the most recent."""
        leaders = self._leaders
        followers = leaders.get(leader)
        if followers is None:
            if len(leaders) >= self.leader_capacity:
                leaders.popitem(last=False)
            leaders[leader] = OrderedDict({follower: None})
            return
        leaders.move_to_end(leader)
        if follower in followers:
            followers.move_to_end(follower)
            return
        if len(followers) >= self.follower_capacity:
            followers.popitem(last=False)
        followers[follower] = None

    def followers(self, leader: Gram) -> Iterator[Gram]:
        """The followers of `leader`, most recent first; the leader becomes the most recent.

        Lazy, so taking a few costs a few. Insert nothing while iterating.
        """
        followers = self._leaders.get(leader)
        if followers is None:
            return iter(())
        self._leaders.move_to_end(leader)
        return reversed(followers)

    def snapshot(self) -> tuple[tuple[Gram, tuple[Gram, ...]], ...]:
        """Everything held, most recent first at both levels; changes no recency."""
        return tuple((leader, tuple(reversed(held))) for leader, held in reversed(self._leaders.items()))
