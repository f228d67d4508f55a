"""Tiny configs: a small config for every model type of mlx-lm, and variants of some.

Each field of a type's own dataclass gets a small value by its name; what a name cannot tell stands in
`_OWN`. No shape here is a real checkpoint's: two to six layers, windows of 16 and a vocabulary of 260,
so that short runs cross every wrap. A type that mlx-lm adds is tried from then on, without a word here.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

VOCABULARY = 260
CONTEXT_TOKENS = 1024
WINDOW_TOKENS = 16

# Files that hold parts of models, and none that could be loaded by itself.
_PARTS = frozenset(
    {
        *(
            "activations",
            "base",
            "bitlinear_layers",
            "cache",
            "gated_delta",
            "llama4_text",
            "mla",
            "pipeline",
        ),
        *("rope_utils", "ssm", "switch_layers"),
    }
)
_SAME: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("hidden_size", "d_model", "n_embd", "dim", "model_dim", "hidden_dim", "block_dim"), 32),
    (
        ("intermediate_size", "ff_intermediate_size", "intermediate_size_mlp", "n_inner", "ffn_hidden_size"),
        64,
    ),
    (("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers"), 4),
    (("num_attention_heads", "n_head", "n_heads", "num_heads", "num_query_heads"), 4),
    (("num_key_value_heads", "num_kv_heads", "n_kv_heads", "num_attention_groups"), 2),
    (("num_swa_attention_heads", "swa_num_attention_heads"), 4),
    (("num_swa_key_value_heads", "swa_num_key_value_heads"), 2),
    (("head_dim", "v_head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "swa_head_dim"), 8),
    (("swa_v_head_dim", "hidden_size_per_head", "kv_channels", "index_head_dim"), 8),
    (("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"), 1e-5),
    (("layernorm_epsilon",), 1e-5),
    (("vocab_size", "num_vocab", "vocab_size_per_layer_input"), VOCABULARY),
    (("max_position_embeddings", "n_positions", "n_ctx", "block_size", "model_max_length"), CONTEXT_TOKENS),
    (("sliding_window", "sliding_window_size", "window_size", "attention_window_size"), WINDOW_TOKENS),
    (("loop_window_size",), WINDOW_TOKENS),
    (("rope_theta", "rotary_emb_base", "rope_local_base_freq", "swa_rope_theta", "rope_freq_constant"), 1e4),
    (("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"), 4),
    (("num_experts_per_tok", "moe_topk", "moe_top_k", "num_experts_per_token", "moe_k"), 2),
    (("moe_intermediate_size", "expert_ffn_hidden_size", "shared_expert_intermediate_size"), 32),
    (("shared_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim"), 32),
    (("n_group", "topk_group", "n_shared_experts", "num_shared_experts", "num_shared_expert"), 1),
    (("moe_num_shared_experts", "num_expert_group", "moe_layer_freq", "moe_layer_interval"), 1),
    (("first_k_dense_replace", "num_dense_layers"), 1),
    (("kv_lora_rank", "q_lora_rank"), 16),
    (("index_n_heads", "num_kv_reuse_layers", "sliding_window_pattern", "full_attention_interval"), 2),
    (("attn_layer_period", "expert_layer_period", "no_rope_layer_interval", "layer_group_size"), 2),
    (("mamba_step", "mamba_expand", "group_norm_size", "dense_attention_every_n_layers"), 2),
    (("attn_layer_offset", "expert_layer_offset", "decoder_sparse_step", "scale_emb", "cla_share_factor"), 1),
    (("index_topk",), 24),
    (("rotary_dim", "laurel_rank", "time_step_rank", "mamba_dt_rank"), 8),
    (("mamba_num_heads", "mamba_n_heads", "linear_num_value_heads"), 4),
    (("linear_num_key_heads", "n_groups"), 2),
    (("mamba_head_dim", "mamba_d_head", "linear_key_head_dim", "linear_value_head_dim"), 8),
    (("mamba_d_state", "ssm_state_size", "state_size"), 8),
    (("mamba_d_conv", "conv_kernel", "linear_conv_kernel_dim", "conv1d_width"), 4),
    (("conv_L_cache", "short_conv_kernel_size"), 3),
    (("conv_window",), 2),
    (("mamba_d_ssm",), 32),
    (("mamba_chunk_size",), 16),
    (("mamba_n_groups", "scale_depth", "ffn_dim_divisor"), 1),
    # transformers' own config classes refuse a whole number for these.
    (("routed_scaling_factor", "residual_multiplier", "logits_scaling"), 1.0),
    (("embedding_multiplier", "attention_multiplier"), 1.0),
    (("a_low_rank_dim", "v_low_rank_dim", "gate_low_rank_dim", "decay_low_rank_dim"), 8),
    (("num_kv_shared_layers", "hidden_size_per_layer_input"), 0),
    (("partial_rotary_factor", "rotary_pct", "global_partial_rotary_factor"), 0.5),
    (("tie_word_embeddings", "norm_topk_prob", "use_conv_bias", "mamba_conv_bias", "qk_norm"), True),
    (("use_parallel_residual", "use_qk_norm", "use_expert_bias", "mla_scale_q_lora"), True),
    (("mla_scale_kv_lora", "linear_allow_neg_eigval", "add_swa_attention_sink_bias"), True),
    (("attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias", "post_norm", "use_qkv_bias"), False),
    (("conv_bias", "use_cla", "use_mixed_mlp_moe", "block_auto_adjust_ff_dim"), False),
    (("add_full_attention_sink_bias",), False),
    (("mlp_only_layers",), []),
    (("layer_types",), ["sliding_attention", "full_attention"] * 2),
    (("query_pre_attn_scalar", "block_multiple_of", "dim_model_base", "global_head_dim"), 8),
    (("block_ffn_dim_multiplier",), 1.0),
    (("logits_soft_cap", "final_logit_softcapping", "gegelu_limit"), 30.0),
    (("hidden_act",), "silu"),
    (("scoring_func",), "sigmoid"),
    (("topk_method",), "noaux_tc"),
    (("time_step_limit",), [0.001, 100.0]),
    (("rope_parameters",), {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}),
)
_BY_NAME: Mapping[str, Any] = {name: value for names, value in _SAME for name in names}
_ROPE = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
_ROPE_OF_EACH = {"sliding_attention": _ROPE, "full_attention": _ROPE}
_YARN = {
    "rope_type": "yarn",
    "type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "beta_fast": 32,
    "beta_slow": 1,
    "original_max_position_embeddings": 16,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.3,
}
_ATTENTION_AND_STATE = {"layer_types": ["mamba", "attention"] * 2}
_NAS_BLOCK = {
    "attention": {"n_heads_in_group": 2, "no_op": False, "replace_with_linear": False},
    "ffn": {"ffn_mult": 2.0, "no_op": False, "replace_with_linear": False},
}
_LINEAR_ATTENTION = {
    "kda_layers": [1, 3],
    "full_attn_layers": [2, 4],
    "num_heads": 4,
    "head_dim": 8,
    "short_conv_kernel_size": 4,
}
# Where the type's code wants other values than the field's name tells.
_OWN: Mapping[str, Mapping[str, Any]] = {
    "baichuan_m1": {"sliding_window_layers": [1, 3], "tie_word_embeddings": False},
    "dbrx": {
        "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4},
    },
    "deepseek_v2": {"rope_scaling": _YARN, "topk_method": "gready"},
    "exaone4": {"rope_scaling": None, "sliding_window_pattern": "LG"},
    "exaone_moe": {"is_moe_layer": [False, True, True, True]},
    "gemma3": {"text_config": "gemma3_text", "vocab_size": VOCABULARY},
    "gemma3n": {
        "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
        "altup_num_inputs": 2,
        "altup_coef_clip": 120.0,
        "altup_correct_scale": True,
        "altup_active_idx": 0,
        "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 2,
    },
    "gemma4_text": {"hidden_size_per_layer_input": 8, "num_kv_shared_layers": 2, "rope_parameters": None},
    "gemma4": {"text_config": "gemma4_text"},
    "glm4_moe": {"rope_scaling": None},
    "granitemoehybrid": _ATTENTION_AND_STATE,
    "hunyuan": {"rope_scaling": {"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}},
    "kimi_k3": {"linear_attn_config": _LINEAR_ATTENTION, "hidden_act": "situ", "attn_res_block_size": 2},
    "kimi_linear": {"linear_attn_config": _LINEAR_ATTENTION},
    "lfm2-vl": {"text_config": "lfm2"},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "lille-130m": {"n_embd": 64},
    "llama4": {
        "attention_chunk_size": WINDOW_TOKENS,
        "interleave_moe_layer_step": 2,
        "rope_scaling": None,
        "num_experts_per_tok": 1,
    },
    "longcat_flash": {"attention_method": "MLA", "zero_expert_type": "identity", "zero_expert_num": 2},
    "longcat_flash_ngram": {
        "zero_expert_type": "identity",
        "zero_expert_num": 2,
        "ngram_vocab_size_ratio": 2,
        "emb_neighbor_num": 3,
        "emb_split_num": 2,
    },
    "laguna": {"rope_parameters": _ROPE_OF_EACH},
    "mellum": {"rope_parameters": _ROPE_OF_EACH},
    "mimo_v2_flash": {"hybrid_layer_pattern": [1, 0, 1, 0], "moe_layer_freq": [0, 1, 1, 1]},
    "minicpm3": {
        "rope_scaling": {
            "original_max_position_embeddings": 128,
            "short_factor": [1.0] * 4,
            "long_factor": [1.0, 1.5, 2.0, 4.0],
        }
    },
    # Blocks far shorter than the texts, so that some of them are left out.
    "minimax_m3_vl": {
        "moe_layer_freq": [0, 1, 1, 1],
        "sparse_attention_freq": [0, 1, 0, 1],
        "index_n_heads": 2,
        "index_head_dim": 8,
        "index_block_size": 8,
        "index_topk_blocks": 3,
    },
    "ministral3": {"rope_parameters": _YARN},
    "mistral3": {"text_config": "llama"},
    "mistral4": {"rope_parameters": _YARN},
    "muse_spark": {
        "post_norm_eps": 1e-5,
        "layer_rope_theta": [1e4, 0, 1e4, 0],
        "output_multiplier": 0.5,
        "moe_hidden_size": 32,
        "final_logit_softcapping": 20.0,
        "mlp_layer_types": None,
        "num_shared_experts": 0,
    },
    "nemotron-nas": {"block_configs": [_NAS_BLOCK] * 4},
    "nemotron_h": {
        "layer_types": None,
        "hybrid_override_pattern": ["M", "*", "-", "E"],
        "rope_parameters": None,
    },
    "olmo_hybrid": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "openelm": {
        "ffn_multipliers": [2.0] * 4,
        "num_query_heads": [4] * 4,
        "num_kv_heads": [2] * 4,
    },
    "pixtral": {"text_config": "llama"},
    "plamo": {"n_shared_head": 2},
    "qwen2_vl": {"text_config": "qwen2"},
    "qwen3_vl": {"text_config": "qwen3"},
    "qwen3_vl_moe": {"text_config": "qwen3_moe"},
    "qwen3_5_moe": {"text_config": "qwen3_5"},
    "recurrent_gemma": {"block_types": ["recurrent", "recurrent", "attention"]},
    "spark2_5": {"rope_parameters": _ROPE_OF_EACH, "hidden_act": "gelu"},
}


# Why there is no tiny model of a type here.
NOT_BUILT: Mapping[str, str] = {
    "bitnet": "its matrix product is written for Metal alone",
    "olmo": "mlx-lm needs another package for it (ai2-olmo)",
    "phi3small": "its block-sparse attention ends MLX's CPU build with a segmentation fault",
    "prism_hadamard_qwen35": "it reads packed checkpoints only, with tables that go with them",
}

_FULL: Mapping[str, Any] = {"layer_types": ["full_attention"] * 4}
_SLIDING: Mapping[str, Any] = {"layer_types": [*["sliding_attention"] * 3, "full_attention"]}
_UNTIED: Mapping[str, Any] = {"tie_word_embeddings": False}
_ONE_KV_HEAD: Mapping[str, Any] = {"num_key_value_heads": 1}
_NO_GROUPS: Mapping[str, Any] = {"num_key_value_heads": 4}
_DENSE: Mapping[str, Any] = {"first_k_dense_replace": 4}
_DYNAMIC: Mapping[str, Any] = {
    "rope_scaling": {"type": "dynamic", "rope_type": "dynamic", "factor": 2.0},
    "max_position_embeddings": 64,
}
_LINEAR: Mapping[str, Any] = {"rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 2.0}}
_LLAMA3: Mapping[str, Any] = {
    "rope_scaling": {
        "type": "llama3",
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
}
_YARN_SCALED: Mapping[str, Any] = {"rope_scaling": {**_YARN, "original_max_position_embeddings": 64}}
_LONGROPE: Mapping[str, Any] = {
    "rope_scaling": {
        "type": "longrope",
        "rope_type": "longrope",
        "original_max_position_embeddings": 64,
        "short_factor": [1.0] * 4,
        "long_factor": [1.0, 1.5, 2.0, 4.0],
        "factor": 4.0,
    }
}
_KINDS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "full": (_FULL, "llama ministral3 olmo3 smollm3 gpt_oss afmoe laguna"),
    "sliding": (_SLIDING, "llama ministral3 olmo3 gpt_oss smollm3 gemma3n"),
    "untied": (_UNTIED, "llama qwen2 qwen3 qwen3_moe starcoder2 granite smollm3 olmo2 glm mamba seed_oss"),
    "one-kv-head": (_ONE_KV_HEAD, "llama qwen3 gemma gemma2 gemma3_text mixtral"),
    "no-groups": (_NO_GROUPS, "llama qwen2 phi3 stablelm olmo2 qwen3_next"),
    "dense": (_DENSE, "deepseek_v3 deepseek_v2 glm4_moe dots1"),
    "dynamic": (
        _DYNAMIC,
        "llama qwen2 qwen3 qwen3_moe granite internlm2 internlm3 seed_oss hunyuan_v1_dense",
    ),
    "linear": (_LINEAR, "llama qwen2 qwen3 internlm2 internlm3 granite"),
    "llama3": (_LLAMA3, "llama apertus qwen3 nanbeige smollm3"),
    "yarn": (_YARN_SCALED, "llama qwen2 qwen3 qwen3_moe gpt_oss deepseek_v3 deepseek olmo3 telechat3"),
    "longrope": (_LONGROPE, "llama phi3 qwen3"),
}


def variants() -> list[str]:
    """All that there are to try: `TYPE`, then `TYPE+KIND`; types that cannot be built are not among them."""
    types = [each for each in model_types() if each not in NOT_BUILT]
    return types + [f"{each}+{kind}" for kind, (_, names) in _KINDS.items() for each in names.split()]


def variant_config(variant: str) -> dict[str, Any]:
    """The config of one of `variants()`."""
    model_type, _, kind = variant.partition("+")
    return tiny_config(model_type, _KINDS[kind][0] if kind else None)


def model_types() -> list[str]:
    """Every model type that mlx-lm brings, by the names of its files; nothing is imported."""
    found = importlib.util.find_spec("mlx_lm")
    places = [f"{place}/models" for place in (found.submodule_search_locations if found else None) or ()]
    names = (module.name for module in pkgutil.iter_modules(places))
    return sorted(name for name in names if name not in _PARTS)


def tiny_config(model_type: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A config of that type. `changes` win over everything else, in the text's part if it has one."""
    module = importlib.import_module(f"mlx_lm.models.{model_type}")
    config = _filled(model_type, module.ModelArgs)
    if "text_config" in _fields(module.ModelArgs):
        text_type = _OWN.get(model_type, {}).get("text_config", model_type)
        text_module = importlib.import_module(f"mlx_lm.models.{text_type}")
        found = [getattr(text_module, name, None) for name in (*_TEXT_CLASSES, "ModelArgs")]
        text_class = next(each for each in found if each)
        config["text_config"] = {**_filled(text_type, text_class), **deepcopy(dict(changes or {}))}
        return config
    return {**config, **deepcopy(dict(changes or {}))}


# What mlx-lm calls the dataclass of the text's part, where that is in the same file.
_TEXT_CLASSES = ("TextConfig", "TextArgs", "TextModelArgs")


def _filled(model_type: str, arguments: Any) -> dict[str, Any]:
    fields = _fields(arguments)
    config = {name: deepcopy(value) for name, value in _BY_NAME.items() if name in fields}
    return {**config, "model_type": model_type, **deepcopy(dict(_OWN.get(model_type, {})))}


def _fields(arguments: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(arguments))
