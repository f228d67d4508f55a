"""The tiny architectures are what they say: their caches, their output, their size."""

from __future__ import annotations

import random
import time

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache

from tests.core.architectures import ARCHITECTURES, VOCABULARY, WINDOW_TOKENS, tiny


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_output_is_varied_and_repeats_itself(name: str) -> None:
    started = time.perf_counter()
    model = tiny(name)
    cache = make_prompt_cache(model)
    assert tuple(type(entry).__name__ for entry in cache) == ARCHITECTURES[name].caches
    rng = random.Random(0)
    prompt = [rng.randrange(4, VOCABULARY) for _ in range(60)]
    assert len(prompt) > 2 * WINDOW_TOKENS
    output = [int(token) for token, _ in generate_step(mx.array(prompt), model, max_tokens=150)]
    assert len(set(output)) >= 8
    triples = list(zip(output, output[1:], output[2:]))
    assert len(set(triples)) < len(triples), "nothing that a drafter could learn"
    assert time.perf_counter() - started < 20, "too slow to be a test's model"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_same_seed_gives_the_same_float32_weights(name: str) -> None:
    one, same, other = (dict(tree_flatten(tiny(name, seed).parameters())) for seed in (1, 1, 2))
    assert {value.dtype for value in one.values()} == {mx.float32}
    assert all(mx.array_equal(one[key], same[key]) for key in one)
    assert any(not mx.array_equal(one[key], other[key]) for key in one)
