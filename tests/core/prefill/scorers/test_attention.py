"""What is seen at attention's door, against queries and keys made by hand from the weights."""

from __future__ import annotations

import random
import sys
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import KVCache, RotatingKVCache, make_prompt_cache

from core.prefill.scorers.draft_model import Attended, AttentionSeen, watched
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.prefill.gaps import prompt_of

TOKENS = 50
# Plain, with a norm a head, gated with a norm a head, without a rotation; where each attends.
BY_HAND = {
    "llama": lambda layer: layer.self_attn,
    "qwen3": lambda layer: layer.self_attn,
    "qwen3_5": lambda layer: layer.self_attn,
    "nemotron_h": lambda layer: layer.mixer,
    "granitemoehybrid": lambda layer: layer.self_attn,
}


def watch(model: Any, ids: list[int]) -> list[AttentionSeen]:
    found: list[AttentionSeen] = []
    with watched(model, found.append):
        mx.eval(model(mx.array(ids)[None], cache=make_prompt_cache(model)))
    return found


def attention_modules(model: Any, name: str) -> list[Any]:
    inner = model.language_model if name == "qwen3_5" else model
    return [
        BY_HAND[name](layer)
        for layer in inner.layers
        if "q_proj" in (getattr(layer, "self_attn", None) or getattr(layer, "mixer", {}))
    ]


def by_hand(attention: Any, x: mx.array) -> mx.array:
    """Queries [H, L, D], from the projection on."""
    length = x.shape[1]
    heads = getattr(attention, "num_attention_heads", None) or getattr(attention, "n_heads", None)
    heads = heads or attention.num_heads
    queries = attention.q_proj(x).reshape(1, length, heads, -1)
    gated = type(attention).__name__ == "Qwen3NextAttention"
    if gated:
        queries = queries[..., : queries.shape[-1] // 2]
    if "q_norm" in attention:
        queries = attention.q_norm(queries)
    queries = queries.transpose(0, 2, 1, 3)
    rope = getattr(attention, "rope", None)
    return (queries if rope is None else rope(queries))[0]


@pytest.mark.parametrize("name", BY_HAND)
def test_queries_are_those_of_the_weights(name: str) -> None:
    model: Any = tiny(name)
    ids = prompt_of(random.Random(0), TOKENS)
    inputs: list[mx.array] = []
    modules = attention_modules(model, name)
    kind = type(modules[0])
    own = kind.__call__

    def noted(self: Any, x: mx.array, *rest: Any, **options: Any) -> Any:
        inputs.append(x)
        return own(self, x, *rest, **options)

    kind.__call__ = noted
    try:
        seen = watch(model, ids)
    finally:
        kind.__call__ = own
    assert len(seen) == len(inputs) == len(modules) > 0
    for each, attention, x in zip(seen, modules, inputs, strict=True):
        assert mx.allclose(each.queries[0], by_hand(attention, x), atol=1e-5)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_attention_of_every_architecture_passes_the_door(name: str) -> None:
    model = tiny(name)
    seen = watch(model, prompt_of(random.Random(0), TOKENS))
    assert len(seen) == sum(cache != "ArraysCache" for cache in ARCHITECTURES[name].caches)
    assert all(each.queries.shape[-2] == TOKENS for each in seen)


def test_the_door_is_as_it_was_also_after_an_error() -> None:
    model = tiny("qwen3_5")
    rooms = {sys.modules[type(part).__module__] for _, part in model.named_modules()}
    before = {room: vars(room).get("scaled_dot_product_attention") for room in rooms}

    def fails(seen: AttentionSeen) -> None:
        raise RuntimeError("seen enough")

    with pytest.raises(RuntimeError, match="seen enough"), watched(model, fails):
        model(mx.array([[1, 2, 3]]), cache=make_prompt_cache(model))
    assert {room: vars(room).get("scaled_dot_product_attention") for room in rooms} == before


@pytest.mark.parametrize("name", ["llama", "deepseek_v3", "gpt_oss", "gemma3_text"])
def test_scores_are_softmax_pooled_and_largest(name: str) -> None:
    """The seed's formula in numpy, keys repeated and all at once."""
    model = tiny(name)
    seen = watch(model, prompt_of(random.Random(1), TOKENS))
    rows = [TOKENS - 9, TOKENS - 1]
    attended = Attended(rows, TOKENS)
    wanted = np.zeros((len(rows), TOKENS))
    for each in seen:
        attended.add(each)
        if isinstance(each.entry, RotatingKVCache):
            continue
        queries, keys = np.array(each.queries[0]), np.array(each.keys[0])
        keys = np.repeat(keys, queries.shape[0] // keys.shape[0], axis=0)
        logits = (queries @ keys.transpose(0, 2, 1) * each.scale)[:, rows]
        if isinstance(each.mask, mx.array) and each.mask.dtype != mx.bool_:
            logits = logits + np.array(each.mask)[0][:, rows]
        for at, row in enumerate(rows):
            logits[:, at, row + 1 :] = -np.inf
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        pooled = np.apply_along_axis(lambda w: np.convolve(w, np.ones(13) / 13, "same"), -1, weights)
        wanted = np.maximum(wanted, pooled.max(axis=0))
    assert attended.result is not None
    assert np.allclose(np.array(attended.result), wanted.max(axis=0), atol=1e-5)


def test_layers_that_do_not_span_the_prompt_are_left_out() -> None:
    queries, keys = mx.ones((1, 2, 1, 4)), mx.ones((1, 1, 16, 4))
    attended = Attended([0], TOKENS)

    class Short:
        pass

    short: Any = Short()
    short.queries, short.keys, short.scale, short.mask = queries, keys, 1.0, None
    short.entry = KVCache()
    attended.add(short)
    assert attended.result is None
    short.keys, short.entry = mx.ones((1, 1, TOKENS, 4)), RotatingKVCache(max_size=16)
    attended.add(short)
    assert attended.result is None
    short.entry = KVCache()
    attended.add(short)
    assert attended.result is not None
