"""Scorer: the protocol of what says how much each passage of a prompt matters to the question.

A scorer is a generator function: it yields how many of the tokens it has scored, often enough for progress
and for a cancel between two yields, and returns `Scored`. It may raise anything; then the whole prompt is
read, and the answer says why. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.prefill.layout import Layout, Passages
from core.settings.prefill import Prefill

if TYPE_CHECKING:
    from core.encoder.store import Embedder
    from core.prefill.scorers.lexical import Words

# So many rows, at the prompt's end, may look for what is asked.
ASKING_ROWS = 64


class Scored(Struct, frozen=True):
    """`scores`: float32, one a passage, any scale. `stands_out`: whether some passage answers the question.

    `used`: the scorer that scored in place of the chosen one, if another did; `without`: why, in words, where
    that is not what the settings ask for.
    """

    scores: np.ndarray[Any, Any]
    stands_out: bool
    without: str = ""
    used: str = ""


Scoring = Generator[int, None, Scored]


class ScoringDraft(Struct, frozen=True):
    """A draft model and the cached sequence it may read into."""

    loaded: LoadedModel
    sequence: CachedSequence


class ScorerInputs(Struct, frozen=True):
    """`ids` is the prompt, `layout` its layout, `passages` what is scored of it; `words()` its terms.

    `loaded` is the target; `draft` is None where no draft model was asked for or loaded, `embedder` where
    there is no sentence encoder.
    """

    loaded: LoadedModel
    ids: list[int]
    layout: Layout
    passages: Passages
    words: Callable[[], Words]
    settings: Prefill
    draft: ScoringDraft | None = None
    embedder: Embedder | None = None

    def asking(self) -> list[int]:
        """The question's rows among the last `ASKING_ROWS` ids that are new, but for the prompt's last.

        Indices into `ids`, ascending.
        """
        first = max(int(self.passages.firsts[0]), len(self.ids) - ASKING_ROWS)
        return [at for at in range(first, len(self.ids) - 1) if self.layout.question[at]]


Score = Callable[[ScorerInputs], Scoring]


def finished(scoring: Scoring) -> Scored:
    """What a scorer returns, without its progress."""
    while True:
        try:
            next(scoring)
        except StopIteration as end:
            scored: Scored = end.value
            return scored
