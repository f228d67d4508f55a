"""LruTable: leader → followers, both bounded, the least recently used leave. Cacheback's table.

Leaders and followers are tuples of ids of any length. Recency (the Cacheback paper, §3.1): a leader's is
renewed by a query and by an insert, a follower's by an insert only, and followers compete only
with followers of the same leader. Every operation is O(1): ordered dicts, hash map and linked
list in one. Knows no tree and no request.

FrozenTable: leader → followers counted beforehand, never changed. Cacheback's second table.

Built as in the Cacheback paper, §4: the most frequent leaders, and for each its most frequent followers.
Ids belong to one tokenizer family; whoever loads a table checks that. Knows no file format.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

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


class FrozenTable:
    """`entries` maps leaders to followers, most frequent first. Not copied: hand it over."""

    def __init__(self, entries: Mapping[Gram, tuple[Gram, ...]]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        """Leaders held."""
        return len(self._entries)

    def followers(self, leader: Gram) -> Iterator[Gram]:
        """The followers of `leader`, most frequent first."""
        return iter(self._entries.get(leader, ()))

    def entries(self) -> Mapping[Gram, tuple[Gram, ...]]:
        """The whole content, to write it to disk."""
        return self._entries

    @classmethod
    def build(
        cls,
        sequences: Iterable[Sequence[int]],
        *,
        leader_tokens: int,
        follower_tokens: int,
        leader_capacity: int,
        follower_capacity: int,
    ) -> FrozenTable:
        """Count every leader and what follows it in `sequences`; pairs never span two of them.

        Among equally frequent ones the first seen stays. A leader that nothing followed
        takes no place.
        """
        leaders: Counter[Gram] = Counter()
        followers: dict[Gram, Counter[Gram]] = {}
        for sequence in sequences:
            for leader, follower in pairs(sequence, leader_tokens, follower_tokens):
                leaders[leader] += 1
                followers.setdefault(leader, Counter())[follower] += 1
        return cls(
            {
                leader: tuple(gram for gram, _ in followers[leader].most_common(follower_capacity))
                for leader, _ in leaders.most_common(leader_capacity)
            }
        )


def pairs(tokens: Sequence[int], leader_tokens: int, follower_tokens: int) -> Iterator[tuple[Gram, Gram]]:
    """A sliding window over `tokens`: each leader with the complete follower after it, in order."""
    for start in range(len(tokens) - leader_tokens - follower_tokens + 1):
        middle = start + leader_tokens
        yield tuple(tokens[start:middle]), tuple(tokens[middle : middle + follower_tokens])
