"""The protocol of scorers, which rate how much each passage of a prompt matters to the question.

A scorer is a generator function: it yields `ScoringStep`s, often enough for progress and cancellation, and
returns `Scored`. If it raises, the whole prompt is read and the answer gives the reason.
Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from core.decoding.answer import Pace
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.prefill.layout import Layout, Passages
from core.prefill.words import Words
from core.settings.prefill import Prefill

if TYPE_CHECKING:
    from core.encoder.store import Embedder

# The most rows at the prompt's end that count as the question's.
ASKING_ROWS = 64
_CARRIED = 0.8


class Scored(Struct, frozen=True):
    """`scores`: float32, one a passage, any scale. `stands_out`: whether a passage answers the question.

    `clearness`: how clearly words point at a passage (`core.prefill.words.clearness`).
    `used`: the scorer that ran in place of the chosen one, if any; `without`: the reason, where that deviates
    from the settings.
    """

    scores: np.ndarray[Any, Any]
    stands_out: bool
    clearness: float = 0.0
    without: str = ""
    used: str = ""


class ScoringStep(Struct, frozen=True):
    """`tokens` are scored. `left_tokens` still take time: those without a vector, or those that a draft
    model has yet to read after `read_tokens` others.
    """

    tokens: int
    left_tokens: float = 0.0
    read_tokens: int = 0


Scoring = Generator[ScoringStep, None, Scored]


class ScoringDraft(Struct, frozen=True):
    """A draft model and the cached sequence it may read into. `pace`: None if it is not measured."""

    loaded: LoadedModel
    sequence: CachedSequence
    pace: Pace | None = None


class ScorerInputs(Struct, frozen=True):
    """`ids` is the prompt, `layout` its layout, `passages` the part to score, `words` its terms.

    `loaded` is the target; `draft` is None without a draft model, `embedder` without a sentence encoder.
    `about_all`: the request seems to be about all of a text (`core.prefill.plan`). `clock` counts seconds.
    """

    loaded: LoadedModel
    ids: list[int]
    layout: Layout
    passages: Passages
    words: Words
    settings: Prefill
    draft: ScoringDraft | None = None
    embedder: Embedder | None = None
    about_all: bool = False
    clock: Callable[[], float] | None = None

    def asking(self) -> list[int]:
        """Indices into `ids`, ascending: the question's new tokens among the last `ASKING_ROWS` but one."""
        first = max(int(self.passages.firsts[0]), len(self.ids) - ASKING_ROWS)
        return [at for at in range(first, len(self.ids) - 1) if self.layout.question[at]]


Score = Callable[[ScorerInputs], Scoring]


def carried(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`scores`, one a passage in the order of the text, none below four fifths of the one before it.

    Scores point at where an answer begins: attention rests on its first tokens, and the question's words are
    where its subject is introduced; a section continues for ten passages. After ten passages a tenth
    remains. Not in the SpecPrefill paper, which averages 13 neighbouring tokens (notes/prefill.md).
    """
    result = scores.copy()
    for at in range(1, len(result)):
        result[at] = max(result[at], _CARRIED * result[at - 1])
    return result


def means_of(scores: np.ndarray[Any, Any], passages: Passages) -> np.ndarray[Any, Any]:
    """float32, one a passage: the mean of `scores`, which has one value a token of the prompt."""
    firsts = passages.firsts
    return np.asarray(np.add.reduceat(scores[: passages.end], firsts) / passages.lengths, np.float32)
