"""PrefixCache: the cached sequences of several contexts, for prefix reuse.

Chats with a common prefix share it: if truncating another chat's sequence to the prefix would lose more
tokens than the prefix has, the prefix is copied, else the sequence is truncated. All sequences together stay
within a budget; the least recently used ones are dropped first, the current one never. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mlx.core as mx

from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import Cache


class PrefixCache:
    """`new_cache()` returns an empty cache."""

    def __init__(self, new_cache: Callable[[], Cache]) -> None:
        self._new_cache = new_cache
        self._sequences = [CachedSequence(new_cache)]  # the current one is the last

    @property
    def current(self) -> CachedSequence:
        """The most recently taken sequence."""
        return self._sequences[-1]

    @property
    def nbytes(self) -> int:
        """Size of all sequences."""
        return sum(sequence.nbytes for sequence in self._sequences)

    @property
    def sequences(self) -> tuple[CachedSequence, ...]:
        """All sequences, the most recently used one last."""
        return tuple(self._sequences)

    def __len__(self) -> int:
        return len(self._sequences)

    def take(self, prompt: Sequence[int], *, whole: bool = False) -> CachedSequence:
        """Makes the best sequence for `prompt` the current one and returns it; call its `reuse` next.

        `whole` as in `CachedSequence.reuse`. Among equal prefixes, one without gaps is preferred.
        """
        shares = [sequence.shared(prompt, whole=whole) for sequence in self._sequences]
        shared, best = max(zip(shares, self._sequences), key=lambda found: (found[0], -found[1].skipped))
        if len(best.tokens) - shared <= shared or not best.tokens:
            self._sequences.remove(best)
        else:
            best = best.fork(shared) if shared else CachedSequence(self._new_cache)
        self._sequences.append(best)
        return best

    def add(self, sequence: CachedSequence) -> None:
        """Makes `sequence` the current one."""
        self._sequences.append(sequence)

    def replace(self, old: CachedSequence, new: CachedSequence) -> None:
        """Replaces `old` with `new` if it still exists."""
        self._sequences = [new if sequence is old else sequence for sequence in self._sequences]

    def fit(self, budget_bytes: int) -> None:
        """Drops the least recently used sequences until all fit the budget.

        If the current sequence alone exceeds it, its older snapshots are dropped.
        """
        while len(self._sequences) > 1 and (self.nbytes > budget_bytes or not self._sequences[0].tokens):
            self._sequences.pop(0)
            mx.clear_cache()
        if self.nbytes > budget_bytes:
            self.current.fit_snapshots(budget_bytes)

    def clear(self) -> None:
        """Removes all sequences."""
        self._sequences = [CachedSequence(self._new_cache)]
        mx.clear_cache()
