"""fusion: what the question's words find and what the model's early layers attend to, by reciprocal rank.

Ranks, as the two have no common scale: 2 ÷ (20 + rank) by words and 1 ÷ (20 + rank) by layers. The form is
that of Cormack, Clarke and Buettcher, “Reciprocal Rank Fusion outperforms Condorcet and individual Rank
Learning Methods” (2009); the weights were chosen on half of the documents of `bench retrieval`. With the one
small model measured it finds no more than words alone (notes/retrieval.md), so `auto` does not take it; a
larger model's layers may see more. Costs what early layers cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core.prefill.scorers.early_layers import score_by_early_layers
from core.prefill.scorers.lexical import score_by_words
from core.prefill.scorers.score_propagation import carried_tokens
from core.prefill.scorers.scorer import ScorerInputs, Scoring

Array = np.ndarray[Any, Any]

_RANK_OFFSET = 20
_WORDS_WEIGH = 2.0


def score_by_fusion(inputs: ScorerInputs) -> Scoring:
    """A `Score`."""
    passage_tokens = inputs.settings.passage_tokens
    words = yield from score_by_words(inputs)
    layers = yield from score_by_early_layers(inputs)
    return fused(words, carried_tokens(layers, passage_tokens), passage_tokens)


def fused(words: Array, layers: Array, passage_tokens: int) -> Array:
    """Both are float32, one a token and the same within a passage; so is what is returned."""
    by_words, by_layers = (_ranks(scores[::passage_tokens]) for scores in (words, layers))
    scores = _WORDS_WEIGH / (_RANK_OFFSET + by_words) + 1.0 / (_RANK_OFFSET + by_layers)
    return np.repeat(scores.astype(np.float32), passage_tokens)[: len(words)]


def _ranks(scores: Array) -> Array:
    return np.argsort(np.argsort(-scores, kind="stable"))
