"""fusion: places of two scorers together."""

from __future__ import annotations

import random

import numpy as np
import pytest

from core.engine.engine import Engine
from core.prefill.scorers.fusion import fused, score_by_fusion
from core.prefill.scorers.lexical import score_by_words
from core.prefill.scorers.scorer import ScorerInputs
from core.settings.prefill import Prefill


def tokens(passages: list[float], last: int = 32) -> np.ndarray:  # type: ignore[type-arg]
    return np.repeat(np.array(passages, dtype=np.float32), 32)[: 32 * (len(passages) - 1) + last]


def test_what_both_find_beats_what_one_finds_best() -> None:
    first, second = tokens([9.0, 8.0, *[1.0] * 40]), tokens([0.0, 0.8, *[0.1] * 40])
    assert fused(first, second, 32)[::32].argmax() == 1


def test_scales_do_not_matter() -> None:
    rng = random.Random(1)
    first, second = (tokens([rng.random() for _ in range(40)], last=7) for _ in range(2))
    found = fused(first, second, 32)
    assert len(found) == len(first)
    assert found.dtype == np.float32
    assert np.array_equal(found, fused(1000 * first, second - 5, 32))
    assert not np.array_equal(found, fused(second, first, 32))  # words count twice


def test_of_equals_the_earlier_goes_first() -> None:
    even = tokens([1.0] * 5)
    assert (np.diff(fused(even, even, 32)[::32]) < 0).all()


@pytest.mark.parametrize("start", [0, 100])
def test_it_scores_what_is_new(toy_engine: Engine, start: int) -> None:
    rng = random.Random(2)
    ids = [rng.randrange(4, 200) for _ in range(600)]
    question = np.zeros(600, dtype=np.bool_)
    question[-20:] = True
    inputs = ScorerInputs(toy_engine.loaded, ids, start, question, Prefill())
    results = []
    for scorer in (score_by_fusion, score_by_words):
        scoring = scorer(inputs)
        done = []
        while True:
            try:
                done.append(next(scoring))
            except StopIteration as end:
                results.append(end.value)
                break
        assert done == sorted(done)
    assert len(results[0]) == 600 - start
    assert not np.array_equal(np.argsort(results[0]), np.argsort(results[1]))
