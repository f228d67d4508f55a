"""Select: which passages of a scored prompt are read. Pure.

Passages of equal length; a passage's score is the mean of its tokens' (the SpecPrefill paper). Kept whatever
their score: the first passage, the last `TAIL_TOKENS` (a window's whole length if that is more),
and every passage with a protected token. Of the others the best ⌈keep · M ÷ passage⌉; of a text that
goes on and asks nothing `LATEST` of these places go to what was said last, whatever its score.

What must be kept does not count as part of the share (until it was measured to
its end it did): a third of 20% of 8,000 tokens would be spent before a score was looked at, and
text that just goes on was predicted 1.15 times worse instead of 1.07 (notes/prefill.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct

from core.settings.prefill import TAIL_TOKENS

# For text that goes on: a longer end tells more than passages from all over it, and a quarter is left
# for what it comes back to (notes/prefill.md).
LATEST = 0.75


class Selection(Struct, frozen=True):
    """Passage i is tokens `starts[i]` to `ends[i]` (end-exclusive) of the prompt; bool `kept`,
    float32 `scores` 0 to 1."""

    starts: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    kept: np.ndarray[Any, Any]
    scores: np.ndarray[Any, Any]

    @property
    def positions(self) -> np.ndarray[Any, Any]:
        """int32, ascending: the positions to read, without the prompt's last one."""
        chosen = [
            np.arange(a, b, dtype=np.int32) for a, b in zip(self.starts[self.kept], self.ends[self.kept])
        ]
        return np.concatenate(chosen)[:-1]

    @property
    def skipped(self) -> list[np.ndarray[Any, Any]]:
        """int32, ascending each: the positions of the passages that are not read, the best first."""
        left = np.flatnonzero(~self.kept)
        best = left[np.argsort(-self.scores[left], kind="stable")]
        return [np.arange(self.starts[at], self.ends[at], dtype=np.int32) for at in best]


def select(
    scores: np.ndarray[Any, Any],
    protected: np.ndarray[Any, Any],
    *,
    start: int,
    keep_pct: float,
    passage_tokens: int,
    window_tokens: int = 0,
    latest: float = 0.0,
) -> Selection:
    """`scores` (one a token, any scale) and `protected` are of the new tokens, from position `start` on.

    `latest`, 0 to 1: the part of the places that goes to what was said last.
    """
    tokens = len(scores)
    firsts = np.arange(0, tokens, passage_tokens)
    lasts = np.minimum(firsts + passage_tokens, tokens)
    means = (np.add.reduceat(scores, firsts) / (lasts - firsts)).astype(np.float32)
    must = must_keep(protected, passage_tokens, window_tokens)
    wanted = math.ceil(keep_pct / 100 * tokens / passage_tokens)
    kept = must.copy()
    by_age = round(latest * wanted)
    kept[np.flatnonzero(~kept)[::-1][:by_age]] = True
    best = np.argsort(np.where(kept, -np.inf, means), kind="stable")[::-1]
    kept[best[: wanted - by_age]] = True
    return Selection(firsts + start, lasts + start, kept, _shown(means, must))


def must_keep(
    protected: np.ndarray[Any, Any], passage_tokens: int, window_tokens: int = 0
) -> np.ndarray[Any, Any]:
    """Which passages are read whatever their score: bool, one a passage."""
    tokens = len(protected)
    firsts = np.arange(0, tokens, passage_tokens)
    must = np.add.reduceat(protected.astype(np.int32), firsts) > 0
    must[0] = True
    must |= firsts + passage_tokens > tokens - max(TAIL_TOKENS, window_tokens)
    return must


def _shown(means: np.ndarray[Any, Any], must: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """0 to 1; 1 is the best of those that had to earn it."""
    earned = means[~must] if not must.all() else means
    low, high = float(earned.min(initial=0.0)), float(earned.max(initial=0.0))
    return np.clip((means - low) / (high - low), 0.0, 1.0) if high > low else np.zeros_like(means)
