"""PrefixCache: the cached sequences of several contexts, so that what was read once need not be read again.

One is current: the one that was taken last. Chats that begin alike share what they share: if
going on from a common beginning would cost another chat more than that beginning is long, the
beginning is copied; a tail shorter than that is given up rather than so much copied.

Together they stay within a budget; what was not used for longest goes first, the current one
never. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from core.kv.cached_sequence import CachedSequence


class PrefixCache:
    """`new_cache()` makes an empty cache list."""

    def __init__(self, new_cache: Callable[[], list[Any]]) -> None:
        self._new_cache = new_cache
        self._sequences = [CachedSequence(new_cache)]  # the current one is the last

    @property
    def current(self) -> CachedSequence:
        """The sequence that was taken last."""
        return self._sequences[-1]

    @property
    def nbytes(self) -> int:
        """Memory of all sequences."""
        return sum(sequence.nbytes for sequence in self._sequences)

    def __len__(self) -> int:
        return len(self._sequences)

    def take(self, prompt: Sequence[int], *, whole: bool = False) -> CachedSequence:
        """The sequence that goes on to `prompt`: call its `reuse` next. It is the current one now.

        `whole` as in `CachedSequence.reuse`. Of equal beginnings one without gaps is preferred.
        """
        shares = [sequence.shared(prompt, whole=whole) for sequence in self._sequences]
        shared, best = max(zip(shares, self._sequences), key=lambda found: (found[0], -found[1].skipped))
        if len(best.tokens) - shared <= shared or not best.tokens:
            self._sequences.remove(best)
        else:
            best = best.fork(shared) if shared else CachedSequence(self._new_cache)
        self._sequences.append(best)
        return best

    def replace(self, old: CachedSequence, new: CachedSequence) -> None:
        """`new` stands for `old`, if that is still here."""
        self._sequences = [new if sequence is old else sequence for sequence in self._sequences]

    def fit(self, budget_bytes: int) -> None:
        """Drop the least recently used sequences until all are within the budget.

        The current sequence stays; if it alone is above the budget it gives up its older snapshots.
        """
        while len(self._sequences) > 1 and (self.nbytes > budget_bytes or not self._sequences[0].tokens):
            self._sequences.pop(0)
            mx.clear_cache()
        if self.nbytes > budget_bytes:
            self.current.fit_snapshots(budget_bytes)

    def clear(self) -> None:
        """Forget everything."""
        self._sequences = [CachedSequence(self._new_cache)]
        mx.clear_cache()
