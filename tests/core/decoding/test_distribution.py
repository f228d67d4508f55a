"""A tree drafter leaves the sampled distribution alone: chi-square against exact probabilities."""

from __future__ import annotations

import math
from collections import Counter

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

from core.decoding.loop import DecodeLoop
from core.drafting.draft import Draft, Drafter
from core.kv.cached_sequence import CachedSequence
from core.settings.request import Sampling
from tests.core.drafters import answer_of
from tests.core.toy import toy_model

VOCABULARY = 6
PROMPT = [1, 4, 2, 5, 3, 0, 2]
# Enough to see one choice in six taken for another, the rows of two siblings changed for each other,
# the same noise at two positions, or another temperature; each was tried.
RUNS = 1_200
TEMPERATURE = 1.3


class Bushy(Drafter):
    """Three children at the root, two below the first two: five nodes of eight would be certain."""

    def draft(self, budget: int) -> Draft:
        return Draft((0, 1, 2, 3, 4, 0, 5), (-1, -1, -1, 0, 0, 1, 1)).prefix(budget)


@pytest.mark.sweep
def test_a_tree_drafter_samples_the_targets_distribution() -> None:
    model = toy_model(seed=2, vocab_size=VOCABULARY)
    expected = _joint(model)
    counts: Counter[tuple[int, int]] = Counter()
    accepted = 0
    sequence = CachedSequence(lambda: list(make_prompt_cache(model)))
    model(mx.array(PROMPT[:-1])[None], cache=sequence.cache)
    sequence.append(PROMPT[:-1])
    for seed in range(RUNS):
        assert sequence.reuse(PROMPT) == len(PROMPT) - 1
        sampling = Sampling(temperature=TEMPERATURE, seed=seed)
        how = {"vocabulary": VOCABULARY, "sequence": sequence}
        loop = DecodeLoop(answer_of(model, PROMPT, Bushy(), sampling, **how))
        steps = []
        for step in loop.steps(8):
            steps.append(step)
            if sum(len(s.tokens) for s in steps) >= 2:
                break
        accepted += steps[0].accepted
        tokens = [token for step in steps for token in step.tokens]
        counts[tokens[0], tokens[1]] += 1
    assert accepted > RUNS // 4, "the tree must have been walked"
    statistic, cells = 0.0, 0
    for pair, probability in expected.items():
        wanted = probability * RUNS
        if wanted >= 5:
            statistic += (counts[pair] - wanted) ** 2 / wanted
            cells += 1
    # Four standard deviations above the mean of a chi-square with that many cells.
    assert cells >= 8
    assert statistic < cells + 4 * math.sqrt(2 * cells)


def _joint(model: object) -> dict[tuple[int, int], float]:
    """Exact probabilities of the next two tokens at the temperature."""

    def after(ids: list[int]) -> np.ndarray:
        logits = model(mx.array(ids)[None])[0, -1]  # type: ignore[operator]
        return np.array(mx.softmax(logits / TEMPERATURE))

    first = after(PROMPT)
    return {
        (a, b): float(first[a] * probability)
        for a in range(VOCABULARY)
        for b, probability in enumerate(after([*PROMPT, a]))
    }
