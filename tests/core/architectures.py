"""Architectures: tiny random models of every cache kind, made by mlx-lm's own classes.

Each has at least one layer of every kind its type knows, sliding windows of 16, so that a
60-token prompt crosses the wrap, and position-dependent scales that change inside the prompt.
`caches` are the entries that `make_prompt_cache` gives, in order; `trees` says whether one
forward can verify a tree exactly. Weights are float32 and larger than usual, so greedy output
is varied, has wide margins and falls into repetitions now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.utils import _get_classes

VOCABULARY = 260
CONTEXT_TOKENS = 512
WINDOW_TOKENS = 16

FULL, WINDOW, STATE, CHUNKED = "KVCache", "RotatingKVCache", "ArraysCache", "ChunkedKVCache"


@dataclass(frozen=True)
class Architecture:
    """One model type. mlx-lm's initial matrices are multiplied by `weight_scale`.

    The scales were swept over eight prompts: at most of them 10-60% of 150 greedy tokens end
    a 3-gram that the answer already had. Larger scales never repeat, smaller ones only do.
    """

    name: str
    config: Mapping[str, Any]
    caches: tuple[str, ...]
    trees: bool
    weight_scale: float


def tiny(name: str, seed: int = 0) -> nn.Module:
    """The model, evaluated. The same (name, seed) gives the same weights."""
    spec = ARCHITECTURES[name]
    return build(spec.config, spec.weight_scale, seed)


# With wider heads, these repeat one token forever at their own scale.
_WIDE_SCALES = {"qwen3_5": 1.85, "nemotron_h": 1.6}


def wide(name: str, context_tokens: int = CONTEXT_TOKENS) -> nn.Module:
    """Like `tiny`, with heads of 32 dimensions, the smallest that can be quantised."""
    spec = ARCHITECTURES[name]
    return build(_widened(spec.config, context_tokens), _WIDE_SCALES.get(name, spec.weight_scale))


def _widened(config: Mapping[str, Any], context_tokens: int) -> dict[str, Any]:
    if "text_config" in config:
        return {**config, "text_config": _widened(config["text_config"], context_tokens)}
    found = {**config, "hidden_size": 128, "head_dim": 32, "max_position_embeddings": context_tokens}
    if "kv_lora_rank" in config:
        found |= {"kv_lora_rank": 32, "qk_rope_head_dim": 32}
    if config["model_type"] == "phi3":
        scaling = config["rope_scaling"]
        longer = {name: scaling[name] * 2 for name in ("short_factor", "long_factor")}
        found["rope_scaling"] = {**scaling, **longer}
    return found


def build(config: Mapping[str, Any], weight_scale: float, seed: int = 0) -> nn.Module:
    """A model of any config that mlx-lm knows, by default with vocabulary 260."""
    # Some ModelArgs rewrite the nested dicts they are given.
    config = deepcopy(dict(config))
    mx.random.seed(seed)
    model_class, args_class = _get_classes(config)
    model: nn.Module = model_class(args_class.from_dict(config))
    weights = {key: _lively(value, weight_scale) for key, value in tree_flatten(model.parameters())}
    vocabulary = config.get("text_config", config).get("vocab_size", VOCABULARY)
    embedding = next(value for value in weights.values() if value.shape[0] == vocabulary)
    # A head of its own would make random output that never repeats itself.
    weights |= {key: embedding for key in weights if key.endswith("lm_head.weight")}
    model.update(tree_unflatten(list(weights.items())))
    mx.eval(model.parameters())
    return model


def _lively(weight: mx.array, scale: float) -> mx.array:
    """Scaled if a matrix; random if mlx-lm leaves it zero (routers, attention sinks)."""
    if not mx.any(weight).item():
        return mx.random.normal(weight.shape) * (0.5 if weight.ndim == 1 else 1.0)
    return weight * scale if weight.ndim >= 2 else weight


def _config(model_type: str, layers: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": CONTEXT_TOKENS,
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": True,
        "eos_token_id": 0,
        **more,
    }


_QWEN3_MOE = _config(
    "qwen3_moe",
    num_experts=4,
    num_experts_per_tok=2,
    decoder_sparse_step=1,
    mlp_only_layers=[0],
    moe_intermediate_size=32,
    norm_topk_prob=True,
)
_GEMMA3 = _config(
    "gemma3_text", 3, query_pre_attn_scalar=8, sliding_window=WINDOW_TOKENS, sliding_window_pattern=3
)
_GPT_OSS = _config(
    "gpt_oss",
    3,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    sliding_window=WINDOW_TOKENS,
    num_local_experts=4,
    num_experts_per_tok=2,
    rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
)
_MISTRAL = _config(
    "mistral",
    3,
    layer_types=["sliding_attention", "sliding_attention", "full_attention"],
    sliding_window=WINDOW_TOKENS,
)
_MINISTRAL3 = {
    **_MISTRAL,
    "model_type": "ministral3",
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 16,
        "llama_4_scaling_beta": 0.3,
    },
}
_PHI3 = _config(
    "phi3",
    hidden_size=64,
    partial_rotary_factor=0.75,
    original_max_position_embeddings=128,
    rope_scaling={
        "type": "longrope",
        "short_factor": [1.0] * 6,
        "long_factor": [1.0, 1.1, 1.4, 2.0, 3.0, 4.0],
    },
)
_QWEN3_5 = _config(
    "qwen3_5",
    3,
    full_attention_interval=2,
    linear_num_value_heads=4,
    linear_num_key_heads=2,
    linear_key_head_dim=8,
    linear_value_head_dim=8,
    linear_conv_kernel_dim=4,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
)
_NEMOTRON_H = _config(
    "nemotron_h",
    5,
    hybrid_override_pattern=["M", "*", "-", "E", "M"],
    attention_bias=False,
    mamba_num_heads=4,
    mamba_head_dim=8,
    mamba_proj_bias=False,
    ssm_state_size=8,
    conv_kernel=4,
    n_groups=2,
    mlp_bias=False,
    layer_norm_epsilon=1e-5,
    use_bias=False,
    use_conv_bias=True,
    moe_intermediate_size=32,
    moe_shared_expert_intermediate_size=32,
    n_group=1,
    topk_group=1,
    n_routed_experts=4,
    n_shared_experts=1,
    num_experts_per_tok=2,
    norm_topk_prob=True,
    routed_scaling_factor=1.0,
)
_GRANITE_HYBRID = _config(
    "granitemoehybrid",
    3,
    layer_types=["mamba", "attention", "mamba"],
    position_embedding_type="nope",
    attention_bias=False,
    embedding_multiplier=1.0,
    attention_multiplier=0.35,
    logits_scaling=1.0,
    residual_multiplier=1.0,
    num_local_experts=4,
    num_experts_per_tok=2,
    shared_intermediate_size=32,
    mamba_n_heads=4,
    mamba_d_head=8,
    mamba_proj_bias=False,
    mamba_d_state=8,
    mamba_d_conv=4,
    mamba_n_groups=1,
    mamba_conv_bias=True,
)
_DEEPSEEK_V3 = _config(
    "deepseek_v3",
    num_key_value_heads=4,
    kv_lora_rank=16,
    q_lora_rank=24,
    qk_rope_head_dim=8,
    qk_nope_head_dim=8,
    v_head_dim=8,
    first_k_dense_replace=1,
    moe_intermediate_size=32,
    n_routed_experts=4,
    n_shared_experts=1,
    n_group=2,
    topk_group=1,
    num_experts_per_tok=2,
    rope_scaling={
        "type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 128,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
)
_LLAMA4 = {
    "model_type": "llama4",
    "text_config": _config(
        "llama4_text",
        4,
        attention_bias=False,
        attention_chunk_size=WINDOW_TOKENS,
        interleave_moe_layer_step=2,
        intermediate_size_mlp=64,
        num_experts_per_tok=1,
        num_local_experts=2,
        rope_scaling=None,
        use_qk_norm=True,
        floor_scale=16,
    ),
}

ARCHITECTURES: Mapping[str, Architecture] = {
    spec.name: spec
    for spec in (
        Architecture("llama", _config("llama"), (FULL,) * 2, True, 2.3),
        Architecture("qwen2", _config("qwen2"), (FULL,) * 2, True, 2.4),
        Architecture("qwen3", _config("qwen3"), (FULL,) * 2, True, 2.6),
        Architecture("qwen3_moe", _QWEN3_MOE, (FULL,) * 2, True, 3.0),
        Architecture("gemma3_text", _GEMMA3, (WINDOW, WINDOW, FULL), True, 1.2),
        Architecture("gpt_oss", _GPT_OSS, (WINDOW, FULL, WINDOW), True, 2.0),
        Architecture("mistral", _MISTRAL, (WINDOW, WINDOW, FULL), True, 2.2),
        # mlx-lm's wrapper has no make_cache, so its sliding layers put windows on full caches.
        Architecture("mistral3", {"model_type": "mistral3", "text_config": _MISTRAL}, (FULL,) * 3, True, 2.2),
        # Scales queries by their index in the block, not by their position.
        Architecture("ministral3", _MINISTRAL3, (WINDOW, WINDOW, FULL), False, 2.0),
        Architecture("phi3", _PHI3, (FULL,) * 2, True, 2.2),
        Architecture("qwen3_5", _QWEN3_5, (STATE, FULL, STATE), False, 1.6),
        Architecture("nemotron_h", _NEMOTRON_H, (STATE, FULL, STATE), False, 1.4),
        Architecture("granitemoehybrid", _GRANITE_HYBRID, (STATE, FULL, STATE), False, 1.55),
        Architecture("deepseek_v3", _DEEPSEEK_V3, (FULL,) * 2, True, 2.5),
        Architecture("llama4", _LLAMA4, (CHUNKED, CHUNKED, CHUNKED, FULL), False, 3.0),
    )
}
