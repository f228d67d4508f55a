"""`ngram-simple`: prompt lookup with an incremental index (Saxena).

Finds the most recent earlier occurrence of the last n tokens, for n from n_max down to n_min, and drafts up
to k tokens that followed it.

Deviation from the source: it scans the history right to left at every step, O(history · n) per token. Here
one dict per n maps each n-gram, as packed ids, to its latest end position, so update and look-up take O(n_max
− n_min) per token. Packing keeps full ids of up to 24 bits, so there are no collisions and the result equals
the scan's.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.drafting.draft import EMPTY, NO_FACTS, Draft, Drafter, Facts
from core.events import Occupancy
from core.settings.drafting import NgramSimple

# 24 bits hold ids up to 16.7 million; the largest vocabularies have about 260 thousand.
_ID_BITS = 24


class NgramSimpleDrafter(Drafter):
    """Index of one request. `capacity_tokens` is the context length, used for `occupancy` only."""

    def __init__(self, settings: NgramSimple, capacity_tokens: int) -> None:
        self._k = settings.k
        self._orders = tuple(range(settings.n_max, settings.n_min - 1, -1))
        self._masks = {n: (1 << _ID_BITS * n) - 1 for n in self._orders}
        self._keep_mask = self._masks[settings.n_max]
        self._capacity = capacity_tokens * len(self._orders)
        self._history: list[int] = []
        self._packed = 0
        self._ends: dict[int, dict[int, int]] = {}
        self._reset()

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self._reset()
        self.observe(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        history, orders, masks, ends = self._history, self._orders, self._masks, self._ends
        packed, keep = self._packed, self._keep_mask
        for token in tokens:
            length = len(history)
            # An n-gram is indexed only when its continuation arrives, so a look-up never finds the suffix
            # itself.
            for n in orders:
                if n <= length:
                    ends[n][packed & masks[n]] = length
            history.append(token)
            packed = ((packed << _ID_BITS) | token) & keep
        self._packed = packed

    def draft(self, budget: int) -> Draft:
        length, packed = len(self._history), self._packed
        for n in self._orders:
            if n > length:
                continue
            end = self._ends[n].get(packed & self._masks[n])
            if end is not None:
                return Draft.chain(self._history[end : end + min(self._k, budget)])
        return EMPTY

    def occupancy(self) -> Occupancy:
        return Occupancy(sum(map(len, self._ends.values())), self._capacity)

    def _reset(self) -> None:
        self._history = []
        self._packed = 0
        self._ends = {n: {} for n in self._orders}
