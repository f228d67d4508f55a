"""Carried: what is said about a thing goes on past the passage where it begins.

A scorer points at the beginning: attention rests on the first tokens of an answer, and words of a
question stand where its subject is introduced. What follows is scored low, although it is what was
asked for: an id of 36 tokens never fits one passage, a section fits ten. So each passage hands most of
its score on to the next one, and that one of what it got; ten passages on a tenth is left. Not in
the SpecPrefill paper, which averages 13 neighbouring tokens; what it gives is in notes/prefill.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core.prefill.layout import Passages

_CARRIED = 0.8


def carried(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`scores`, one a passage in the order of the text, none below `_CARRIED` of the one before it."""
    result = scores.copy()
    for at in range(1, len(result)):
        result[at] = max(result[at], _CARRIED * result[at - 1])
    return result


def means_of(scores: np.ndarray[Any, Any], passages: Passages) -> np.ndarray[Any, Any]:
    """float32, one a passage: the mean of its tokens' `scores`, which are one a token of the prompt."""
    firsts = passages.firsts
    return np.asarray(np.add.reduceat(scores[: passages.end], firsts) / passages.lengths, np.float32)
