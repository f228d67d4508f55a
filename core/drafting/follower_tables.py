"""Leader → follower tables of the Cacheback drafter: a dynamic LRU table and a frozen one.

Leaders and followers are tuples of ids of any length.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

Gram = tuple[int, ...]


class LruTable:
    """At most `leader_capacity` leaders with at most `follower_capacity` followers each, least recently used
    first out.

    Recency (Cacheback, §3.1): a query or an insert renews a leader, only an insert renews a follower, and
    followers compete only with followers of the same leader. Every operation is O(1).
    """

    def __init__(self, leader_capacity: int, follower_capacity: int) -> None:
        self.leader_capacity = leader_capacity
        self.follower_capacity = follower_capacity
        # Oldest first at both levels.
        self._leaders: OrderedDict[Gram, OrderedDict[Gram, None]] = OrderedDict()

    def __len__(self) -> int:
        """Leaders held."""
        return len(self._leaders)

    def insert(self, leader: Gram, follower: Gram) -> None:
        """Records that `follower` followed `leader`; both become the most recent."""
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

        Lazy: taking a few followers costs only those. Do not insert while iterating.
        """
        followers = self._leaders.get(leader)
        if followers is None:
            return iter(())
        self._leaders.move_to_end(leader)
        return reversed(followers)

    def snapshot(self) -> tuple[tuple[Gram, tuple[Gram, ...]], ...]:
        """The whole content, most recent first at both levels. Does not change recency."""
        return tuple((leader, tuple(reversed(held))) for leader, held in reversed(self._leaders.items()))


class FrozenTable:
    """Leaders and followers counted beforehand; never changes (Cacheback, §4).

    `entries` maps leaders to followers, most frequent first; it is not copied. Ids belong to one tokenizer
    family, which the loader of a file checks.
    """

    def __init__(self, entries: Mapping[Gram, tuple[Gram, ...]]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        """Leaders held."""
        return len(self._entries)

    def followers(self, leader: Gram) -> Iterator[Gram]:
        """The followers of `leader`, most frequent first."""
        return iter(self._entries.get(leader, ()))

    def entries(self) -> Mapping[Gram, tuple[Gram, ...]]:
        """The whole content."""
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
        """Counts leaders and followers in `sequences`; pairs never span two sequences.

        Keeps the most frequent leaders and, for each, its most frequent followers. Of equally frequent ones
        the first seen is kept. A leader without a follower is not stored.
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
    """Sliding window over `tokens`: each leader with the complete follower after it, in order."""
    for start in range(len(tokens) - leader_tokens - follower_tokens + 1):
        middle = start + leader_tokens
        yield tuple(tokens[start:middle]), tuple(tokens[middle : middle + follower_tokens])
