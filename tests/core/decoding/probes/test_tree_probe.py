"""why_no_trees finds out at run time what `tests.core.architectures` knows."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import RotatingKVCache, make_prompt_cache

import core.decoding.probes.tree_probe as tree_probe
from core.decoding.probes.tree_probe import why_no_trees
from core.decoding.tree_rows import TreeRows
from core.models.rope import Rotation
from tests.core.architectures import ARCHITECTURES, build, tiny
from tests.core.toy import toy_model

REASONS = {
    "ministral3": "differ from its answers to the tree's branches",
    "qwen3_5": "recurrent state",
    "nemotron_h": "recurrent state",
    "granitemoehybrid": "recurrent state",
    "llama4": "ChunkedKVCache",
}


def why(model: nn.Module) -> str:
    return why_no_trees(model, make_prompt_cache(model))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_trees_are_refused_where_they_are_not_exact(name: str) -> None:
    reason = why(tiny(name))
    assert (reason == "") == ARCHITECTURES[name].trees
    assert REASONS.get(name, "") in reason


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("tokens", [8192, 16384])
def test_a_scale_that_changes_far_away_is_found(tokens: int, dtype: mx.Dtype) -> None:
    """Ministral's own figures: nothing to be seen in a short context."""
    config = dict(ARCHITECTURES["ministral3"].config)
    config["rope_parameters"] = {
        **config["rope_parameters"],
        "original_max_position_embeddings": tokens,
        "llama_4_scaling_beta": 0.1,
    }
    model = build(config, 2.0)
    model.set_dtype(dtype)
    assert f"near {tokens:,} tokens" in why(model)


def test_dynamic_rope_cannot_take_a_position_a_row() -> None:
    assert "a trial tree failed" in why(toy_model(rope_scaling={"type": "dynamic", "factor": 2.0}))


def test_learned_positions_are_found() -> None:
    config = {
        "model_type": "gpt2",
        "n_ctx": 512,
        "n_embd": 32,
        "n_head": 4,
        "n_layer": 2,
        "n_positions": 512,
        "layer_norm_epsilon": 1e-5,
        "vocab_size": 260,
    }
    assert "branches" in why(build(config, 3.0))


def test_rotations_that_were_missed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a rotary module not recognised, trees would be off, not silently wrong."""
    monkeypatch.setattr(tree_probe, "rotations", lambda model: [])
    assert "branches" in why(tiny("llama"))


def test_rotations_that_are_never_called_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    aside: dict[str, Any] = {"rope": nn.RoPE(8)}
    monkeypatch.setattr(tree_probe, "rotations", lambda model: [Rotation(aside, "rope", aside["rope"])])
    assert "called none of them" in why(tiny("llama"))


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=["float32", "bfloat16"])
def test_wrong_positions_are_outside_the_tolerance(dtype: mx.Dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("qwen3")
    model.set_dtype(dtype)
    assert why(model) == ""
    monkeypatch.setattr(TreeRows, "positions", lambda rows, offset: mx.arange(rows.size) + offset)
    assert "branches" in why(model)


def test_a_window_that_keeps_its_first_tokens_has_no_trees() -> None:
    model = tiny("llama")
    cache = [RotatingKVCache(max_size=16, keep=4) for _ in make_prompt_cache(model)]
    assert "no mask that a tree could replace" in why_no_trees(model, cache)


def test_a_quantised_session_is_probed_quantised() -> None:
    """Attention sinks know no quantised cache, so such a session's probe must fail, and say so."""
    sinks = build({**ARCHITECTURES["gpt_oss"].config, "head_dim": 32}, 2.0)
    cache = make_prompt_cache(sinks)
    assert why_no_trees(sinks, cache) == ""
    cache[1] = cache[1].to_quantized(group_size=32, bits=8)
    assert "sinks" in why_no_trees(sinks, cache)
    model = toy_model(head_dim=32)
    quantised = [entry.to_quantized(group_size=32, bits=8) for entry in make_prompt_cache(model)]
    assert why_no_trees(model, quantised) == ""


def test_the_session_is_left_alone() -> None:
    model = tiny("gemma3_text")
    cache = make_prompt_cache(model)
    model(mx.array([[1, 2, 3]]), cache=cache)
    mx.random.seed(1)
    before = [dict(vars(entry)) for entry in cache]
    noise = [state.tolist() for state in mx.random.state]
    assert why_no_trees(model, cache) == ""
    assert all(now[key] is then[key] for then, now in zip(before, map(vars, cache)) for key in then)
    assert [list(vars(entry)) for entry in cache] == [list(then) for then in before]
    assert [state.tolist() for state in mx.random.state] == noise
