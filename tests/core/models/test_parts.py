"""Hidden states of a model's layers are taken without a change to its logits, for every architecture."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from core.models.parts import SplitModel, split
from tests.core.architectures import ARCHITECTURES, VOCABULARY, tiny

PROMPT_TOKENS = 40  # beyond the windows
# Their body has another name.
WHOLE = {"nemotron_h"}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_taken_states_leave_the_logits_as_they_are(name: str) -> None:
    model: Any = tiny(name)
    parts = split(model)
    if name in WHOLE:
        assert isinstance(parts, str)
        return
    assert isinstance(parts, SplitModel), parts
    body = parts.owner.model
    modules = [id(module) for _, module in model.named_modules()]
    every = range(len(body.layers))
    plain, final, tapped = (make_prompt_cache(model) for _ in range(3))
    ids = mx.random.randint(0, VOCABULARY, (1, PROMPT_TOKENS))
    # A chunk, a block, and single tokens.
    for block in (ids[:, :30], ids[:, 30:36], ids[:, 36:37], ids[:, 37:38]):
        expected = model(block, cache=plain)
        logits, last = parts.read(block, final)
        assert mx.array_equal(logits, expected).item()
        logits, states = parts.read(block, tapped, every)
        assert mx.array_equal(logits, expected).item()
        outputs = mx.split(states, len(every), axis=-1)
        assert outputs[0].shape == last.shape
        # They are the right ones: the last becomes the body's result, and they differ.
        assert mx.array_equal(body.norm(outputs[-1]), last).item()
        assert not any(mx.array_equal(one, other).item() for one, other in pairwise(outputs))
    _, states = parts.read(ids, make_prompt_cache(model), every)
    outputs = mx.split(states, len(every), axis=-1)
    _, picked = parts.read(ids, make_prompt_cache(model), (every[-1], 0, 0))
    assert mx.array_equal(picked, mx.concatenate([outputs[-1], outputs[0], outputs[0]], axis=-1)).item()
    for one, other in zip(tree_flatten([e.state for e in plain]), tree_flatten([e.state for e in tapped])):
        assert one[1] is other[1] is None or mx.array_equal(one[1], other[1]).item()
    with pytest.raises(ValueError, match=r"\w"):
        parts.read(mx.array([1.5]), tapped, every)
    assert [id(module) for _, module in model.named_modules()] == modules
