"""The tiny architectures are what they say: their caches, their output, their size."""

from __future__ import annotations

import random

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import RotatingKVCache, make_prompt_cache

from tests.core.architectures import ARCHITECTURES, VOCABULARY, WINDOW_TOKENS, tiny
from tests.thinned import thinned


@pytest.mark.parametrize("name", thinned(ARCHITECTURES, keep=["llama"]))
def test_output_is_varied_and_repeats_itself(name: str) -> None:
    model = tiny(name)
    rng = random.Random(0)
    ends, repeats = 0, 0
    for _ in range(3):
        cache = make_prompt_cache(model)
        assert tuple(type(entry).__name__ for entry in cache) == ARCHITECTURES[name].caches
        prompt = [rng.randrange(4, VOCABULARY) for _ in range(60)]
        steps = generate_step(mx.array(prompt), model, max_tokens=120, prompt_cache=cache)
        output = [int(token) for token, _ in steps]
        assert len(set(output)) >= 8
        triples = list(zip(output, output[1:], output[2:]))
        ends, repeats = ends + len(triples), repeats + len(triples) - len(set(triples))
    assert repeats / ends > 0.04, "nothing that a drafter could learn"


def test_a_prompt_of_60_tokens_crosses_the_wrap() -> None:
    windows = 0
    for name in ARCHITECTURES:
        model = tiny(name)
        cache = make_prompt_cache(model)
        model(mx.zeros((1, 60), dtype=mx.int32), cache=cache)
        for entry in cache:
            if isinstance(entry, RotatingKVCache):
                windows += 1
                assert entry.max_size == WINDOW_TOKENS < entry.offset == 60
                assert not entry.is_trimmable()
    assert windows == 8
