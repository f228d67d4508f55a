"""fusion: what the question's words find and what the model's early layers attend to, by reciprocal rank.

The two fail in different places: words miss a paraphrase, a few layers miss a rare name in a long table.
Their scores have no common scale, so ranks are added: 1 ÷ (60 + rank), as in Cormack, Clarke and
Buettcher, “Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods” (2009).
Costs what early layers cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core.prefill.scorers.early_layers import score_by_early_layers
from core.prefill.scorers.lexical import score_by_words
from core.prefill.scorers.score_propagation import carried_tokens
from core.prefill.scorers.scorer import ScorerInputs, Scoring

_RANK_OFFSET = 60


def score_by_fusion(inputs: ScorerInputs) -> Scoring:
    """A `Score`."""
    passage_tokens = inputs.settings.passage_tokens
    words = yield from score_by_words(inputs)
    layers = yield from score_by_early_layers(inputs)
    return fused(words, carried_tokens(layers, passage_tokens), passage_tokens)


def fused(
    first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], passage_tokens: int
) -> np.ndarray[Any, Any]:
    """Both are float32, one a token and the same within a passage; so is what is returned."""
    ranks = [np.argsort(np.argsort(-scores[::passage_tokens], kind="stable")) for scores in (first, second)]
    scores = sum(1.0 / (_RANK_OFFSET + rank) for rank in ranks)
    return np.repeat(np.asarray(scores, dtype=np.float32), passage_tokens)[: len(first)]
