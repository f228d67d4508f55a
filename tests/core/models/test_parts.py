"""Hidden states of a model's layers are taken without a change to its logits, for every architecture."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from core.errors import InternalError
from core.models.parts import SplitModel, Steps, rotations, row_positions, split, use_plain_attributes
from tests.core.architectures import ARCHITECTURES, VOCABULARY, tiny
from tests.core.toy import toy_model

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


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_plain_attributes_leave_the_logits_and_the_replaced_modules_as_they_are(name: str) -> None:
    ids = mx.random.randint(0, VOCABULARY, (1, PROMPT_TOKENS))
    plain, quick = tiny(name), tiny(name)
    use_plain_attributes(quick)
    names = [each for each, _ in quick.named_modules()]
    assert names == [each for each, _ in plain.named_modules()]
    expected, caches = [], (make_prompt_cache(plain), make_prompt_cache(quick))
    for block in (ids[:, :30], ids[:, 30:36], ids[:, 36:37]):
        expected = [model(block, cache=cache) for model, cache in zip((plain, quick), caches)]
        assert mx.array_equal(*expected).item()
    held = {(id(owner), key) for _, owner in quick.named_modules() for key in vars(owner) if key in owner}
    parts = [(owner, key) for _, owner in quick.named_modules() for key in owner]
    within = [(o, k) for o, k in parts if isinstance(o[k], nn.Module) and o is not quick]
    assert len(held) > len(within) / 2
    assert not any((id(each.owner), each.key) in held for each in rotations(quick))
    found = split(quick)
    assert isinstance(found, str) or (id(found.owner), "model") not in held


@pytest.mark.parametrize("shape", [(2, 4, 3, 8), (1, 4, 2, 8), (1, 4, 4, 8), (2, 4, 4, 8)])
def test_a_pass_of_another_shape_than_its_rows_is_refused(shape: tuple[int, ...]) -> None:
    found = rotations(toy_model())
    before = [rotation.owner[rotation.key] for rotation in found]
    steps = Steps(np.arange(3, dtype=np.int32))
    with pytest.raises(InternalError, match="A pass of 3 rows is open"), row_positions(found, steps):
        found[0].owner[found[0].key](mx.zeros(shape), offset=5)
    assert steps.rotated == 0
    assert [rotation.owner[rotation.key] for rotation in found] == before
    with row_positions(found, steps):
        turned = found[0].owner[found[0].key](mx.ones((1, 4, 3, 8)), offset=5)
    assert mx.allclose(turned, before[0](mx.ones((1, 4, 3, 8)), offset=5), atol=1e-6).item()
    assert steps.rotated == 1
