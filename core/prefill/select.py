"""Selects the passages of a scored prompt that are read. Pure.

Always kept: the first passage, passages with a token that is always read (`Layout.always_read`), and
passages that reach into the last tokens of a sliding window's length. Of the others the best, until they have
keep · M tokens (the SpecPrefill paper has ⌈keep · M ÷ passage⌉ passages of one length). For a continuation,
`LATEST` of these tokens are the last ones, whatever their score.

Passages that are always kept don't count towards the share: they would use up a third of 20% of 8,000 tokens,
and perplexity of text that continues was 1.15 times that of a dense reading instead of 1.07
(notes/prefill.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from core.events import Passage
from core.prefill.layout import Layout, Passages

Array = np.ndarray[Any, Any]

# A longer end predicts a continuation better than passages from everywhere; a quarter remains for the
# passages that it refers to (notes/prefill.md).
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


def select(
    scores: Array,
    always_read: Array,
    passages: Passages,
    *,
    keep_pct: float,
    window_tokens: int = 0,
    latest: float = 0.0,
) -> Selection:
    """`scores` has one value a passage, on any scale; `always_read` (bool) one a token of the prompt.

    `passages` end where the prompt ends. `latest`, 0 to 1: the part of the share that the last tokens get.
    """
    firsts, lengths = passages.firsts, passages.lengths
    must = must_keep(always_read, passages, window_tokens)
    share = keep_pct / 100 * float(lengths.sum())
    kept = must.copy()
    free = np.flatnonzero(~must)
    kept[_filling(free[::-1], lengths, latest * share)] = True
    left = share - float(lengths[kept & ~must].sum())
    best = np.argsort(-scores[~kept], kind="stable")
    kept[_filling(np.flatnonzero(~kept)[best], lengths, left)] = True
    return Selection(firsts, firsts + lengths, kept, _shown(scores, must))


def must_keep(always_read: Array, passages: Passages, window_tokens: int = 0) -> Array:
    """bool, one a passage: whether it is read whatever its score."""
    firsts, end = passages.firsts, passages.end
    must = np.add.reduceat(always_read[:end].astype(np.int32), firsts) > 0
    must[0] = True
    if window_tokens:
        must |= firsts + passages.lengths > end - window_tokens
    return np.asarray(must)


def _filling(order: Array, lengths: Array, tokens: float) -> Array:
    """The first of the passages `order` that together have at least `tokens` tokens."""
    before = np.cumsum(lengths[order]) - lengths[order]
    return np.asarray(order[before < tokens - 1e-6])


def _shown(scores: Array, must: Array) -> Array:
    """float32, 0 to 1; 1 is the best passage among those that are not always kept."""
    earned = scores[~must] if not must.all() else scores
    low, high = float(earned.min(initial=0.0)), float(earned.max(initial=0.0))
    shown = np.clip((scores - low) / (high - low), 0.0, 1.0) if high > low else np.zeros_like(scores)
    return np.asarray(shown, np.float32)


def passage_map(selection: Selection, layout: Layout) -> tuple[Passage, ...]:
    """The passages of `selection`, each in the document that most of its tokens belong to."""
    return tuple(
        _passage(int(start), int(end), bool(kept), float(score), layout)
        for start, end, kept, score in zip(selection.starts, selection.ends, selection.kept, selection.scores)
    )


def _passage(start: int, end: int, kept: bool, score: float, layout: Layout) -> Passage:
    sources = layout.source[start:end]
    documents = sources[sources >= 0]
    if not len(documents):
        return Passage(start, end, kept, round(score, 4))
    source = int(np.bincount(documents).argmax())
    inside = start + np.flatnonzero(sources == source)
    first, last = int(layout.first_char[inside].min()), int(layout.last_char[inside].max())
    return Passage(start, end, kept, round(score, 4), source, first, last)
