"""lexical: scores passages by the question's words and parts of words in them (`core.prefill.words`).

Scores are carried on (`carried`), as text about a thing follows its name. Small terms for evenly spread and
for late passages order passages with equal scores.
"""

from __future__ import annotations

import numpy as np

from core.prefill.layout import Passages
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep, carried
from core.prefill.words import Array, Words, asked_by, matching, stands_out

# Small compared with any match.
_ANCHOR = 0.02
_RECENT = 0.01


def score_by_words(inputs: ScorerInputs) -> Scoring:
    """A `Score`."""
    yield ScoringStep(0)
    return scored_by_words(inputs)


def scored_by_words(inputs: ScorerInputs) -> Scored:
    """The result of `score_by_words`, computed at once."""
    words, layout = inputs.words, inputs.layout
    clear, stands = stands_out(words, layout.question, inputs.passages, inputs.loaded.word_rank)
    scores = lexical_scores(words, layout.question, inputs.passages)
    return Scored(scores, stands and not inputs.about_all, clear)


def lexical_scores(words: Words, question: Array, passages: Passages) -> Array:
    """float32, one a passage. `question` (bool) marks the question's tokens."""
    scores = carried(matching(words, asked_by(words, question), passages))
    count = len(scores)
    even = _ANCHOR * _spread(count) + _RECENT * np.arange(count) / max(1, count)
    return np.asarray(scores + even * (float(scores.max(initial=0.0)) or 1.0), np.float32)


def _spread(count: int) -> Array:
    """0 to 1 so that the highest n are spread evenly for any n: the order of halving intervals."""
    bits = max(1, (count - 1).bit_length())
    reverse = np.array([int(format(i, f"0{bits}b")[::-1], 2) for i in range(count)])
    return np.asarray(1.0 - np.argsort(np.argsort(reverse)) / count)
