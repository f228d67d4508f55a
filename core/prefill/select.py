"""Select: which passages of a scored prompt are read. Pure.

Kept whatever their score: the first passage, those that reach into the last `TAIL_TOKENS` (a window's whole
length if that is more), and every passage with a protected token. Of the others the best, until they have
keep · M tokens (the SpecPrefill paper has ⌈keep · M ÷ passage⌉ passages of one length). Where a request is
for what comes next in a text, `LATEST` of these tokens are the last ones, whatever their score.

What must be kept does not count as part of the share: a third of 20% of 8,000 tokens would be spent before a
score was looked at, and text that just goes on was predicted 1.15 times worse instead of 1.07
(notes/prefill.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from core.prefill.layout import Passages
from core.settings.prefill import TAIL_TOKENS

Array = np.ndarray[Any, Any]

# For text that goes on: a longer end tells more than passages from all over it, and a quarter is left
# for what it comes back to (notes/prefill.md).
LATEST = 0.75


class Selection(Struct, frozen=True):
    """Passage i is tokens `starts[i]` to `ends[i]` (end-exclusive) of the prompt; bool `kept`,
    float32 `scores` 0 to 1."""

    starts: Array
    ends: Array
    kept: Array
    scores: Array

    @property
    def positions(self) -> Array:
        """int32, ascending: the positions to read, without the prompt's last one."""
        chosen = [
            np.arange(a, b, dtype=np.int32) for a, b in zip(self.starts[self.kept], self.ends[self.kept])
        ]
        return np.concatenate(chosen)[:-1]

    @property
    def skipped(self) -> list[Array]:
        """int32, ascending each: the positions of the passages that are not read, the best first."""
        left = np.flatnonzero(~self.kept)
        best = left[np.argsort(-self.scores[left], kind="stable")]
        return [np.arange(self.starts[at], self.ends[at], dtype=np.int32) for at in best]


def select(
    scores: Array,
    protected: Array,
    passages: Passages,
    *,
    keep_pct: float,
    window_tokens: int = 0,
    latest: float = 0.0,
) -> Selection:
    """`scores` are one a passage, on any scale; `protected` (bool) one a token of the prompt.

    `passages` end where the prompt ends. `latest`, 0 to 1: the part of the share that is what was said last.
    """
    firsts, lengths = passages.firsts, passages.lengths
    must = must_keep(protected, passages, window_tokens)
    share = keep_pct / 100 * float(lengths.sum())
    kept = must.copy()
    free = np.flatnonzero(~must)
    kept[_filling(free[::-1], lengths, latest * share)] = True
    left = share - float(lengths[kept & ~must].sum())
    best = np.argsort(-scores[~kept], kind="stable")
    kept[_filling(np.flatnonzero(~kept)[best], lengths, left)] = True
    return Selection(firsts, firsts + lengths, kept, _shown(scores, must))


def must_keep(protected: Array, passages: Passages, window_tokens: int = 0) -> Array:
    """Which passages are read whatever their score: bool, one a passage."""
    firsts, end = passages.firsts, passages.end
    must = np.add.reduceat(protected[:end].astype(np.int32), firsts) > 0
    must[0] = True
    must |= firsts + passages.lengths > end - max(TAIL_TOKENS, window_tokens)
    return np.asarray(must)


def _filling(order: Array, lengths: Array, tokens: float) -> Array:
    """The first of the passages `order` that together have at least `tokens`."""
    before = np.cumsum(lengths[order]) - lengths[order]
    return np.asarray(order[before < tokens - 1e-6])


def _shown(scores: Array, must: Array) -> Array:
    """float32, 0 to 1; 1 is the best of those that had to earn it."""
    earned = scores[~must] if not must.all() else scores
    low, high = float(earned.min(initial=0.0)), float(earned.max(initial=0.0))
    shown = np.clip((scores - low) / (high - low), 0.0, 1.0) if high > low else np.zeros_like(scores)
    return np.asarray(shown, np.float32)
