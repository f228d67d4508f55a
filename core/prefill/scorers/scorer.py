"""Scorer: the protocol of whoever says how much each token of a prompt matters to the question.

A scorer is a generator function: it yields how many tokens it has scored, often enough that progress is
seen and a cancel is heard, and returns float32 scores, one for each of `inputs.new_ids`. It may raise
anything; then the whole prompt is read, and the answer says why. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from msgspec import Struct

from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.settings.prefill import Prefill

# So many rows, at the prompt's end, may look for what is asked.
ASKING_ROWS = 64

Scoring = Generator[int, None, np.ndarray[Any, Any]]


class ScoringDraft(Struct, frozen=True):
    """A draft model and the cached sequence it may read into."""

    loaded: LoadedModel
    sequence: CachedSequence


class ScorerInputs(Struct, frozen=True):
    """`ids` is the prompt, of which the cache holds `start`; `question` (bool) says which ids ask.

    `loaded` is the target; `draft` is None where no draft model was asked for or loaded.
    """

    loaded: LoadedModel
    ids: list[int]
    start: int
    question: np.ndarray[Any, Any]
    settings: Prefill
    draft: ScoringDraft | None = None

    @property
    def new_ids(self) -> list[int]:
        """What is to be scored."""
        return self.ids[self.start :]

    def asking(self) -> list[int]:
        """The question's rows among the last `ASKING_ROWS` ids that are new, but for the prompt's last.

        Indices into `ids`, ascending.
        """
        first = max(self.start, len(self.ids) - ASKING_ROWS)
        return [at for at in range(first, len(self.ids) - 1) if self.question[at]]


Score = Callable[[ScorerInputs], Scoring]
