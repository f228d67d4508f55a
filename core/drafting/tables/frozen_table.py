"""FrozenTable: leader → followers counted beforehand, never changed. Cacheback's second table.

Built as in the Cacheback paper, §4: the most frequent leaders, and for each its most frequent followers.
Ids belong to one tokenizer family; whoever loads a table checks that. Knows no file format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from core.drafting.tables.lru_table import Gram


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
