"""Tiny random models with random heads in folders of their own, as published; and cases for their outputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten

from tests.core.architectures import ARCHITECTURES, VOCABULARY, WINDOW_TOKENS, _config, build
from tests.core.headed_models import (
    CONTEXT_TOKENS,
    SEPARATE,
    Layout,
    Raw,
    separate_folder,
    write_headed_model,
)
from tests.core.toy import write_tokenizer

_TYPES = ["sliding_attention", "full_attention"]
_ROPES = {
    "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1e6, "rope_type": "proportional"},
    "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
}
_GEMMA4: dict[str, Any] = {
    **_config("gemma4_text", 6, layer_types=_TYPES * 3, sliding_window=WINDOW_TOKENS),
    "global_head_dim": 16,
    "num_global_key_value_heads": 1,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": VOCABULARY,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "rope_parameters": _ROPES,
}
# As the small models: later layers share keys, and layers have inputs of their own.
_SHARED = {"num_kv_shared_layers": 2, "hidden_size_per_layer_input": 8, "use_double_wide_mlp": True}
# As the large ones: keys are values.
_EQUAL = {"attention_k_eq_v": True}
# The model's differences from `_GEMMA4`, and the assistant's groups of tokens.
ASSISTANTS: Mapping[str, tuple[Mapping[str, Any], int]] = {
    "gemma4-small": (_SHARED, 20),
    "gemma4": (_EQUAL, 0),
}
TOP_GROUPS = 6
SIZE = 24


def model_config(name: str) -> dict[str, Any]:
    if name not in ASSISTANTS:
        own = ARCHITECTURES[EAGLES[name].model if name in EAGLES else BLOCKS[name][0]].config
        return {**own, "num_hidden_layers": 6, "max_position_embeddings": CONTEXT_TOKENS}
    return {**_GEMMA4, **ASSISTANTS[name][0], "max_position_embeddings": CONTEXT_TOKENS}


def assistant_config(name: str) -> dict[str, Any]:
    own = model_config(name)
    inner = {
        **own,
        "hidden_size": SIZE,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "layer_types": [*_TYPES[:1] * 3, _TYPES[1]],
        "num_kv_shared_layers": 4,
        "hidden_size_per_layer_input": 0,
        "use_double_wide_mlp": False,
        "final_logit_softcapping": None,
    }
    groups = ASSISTANTS[name][1]
    return {
        "model_type": "gemma4_assistant",
        "backbone_hidden_size": own["hidden_size"],
        "tie_word_embeddings": True,
        "use_ordered_embeddings": bool(groups),
        "num_centroids": groups or 2048,
        "centroid_intermediate_top_k": TOP_GROUPS,
        "text_config": inner,
    }


def raw_assistant(name: str, seed: int = 0) -> Raw:
    """Random tensors, numpy float32, named and shaped as in the published repositories."""
    rng = np.random.default_rng(seed)
    config = assistant_config(name)
    inner, size = config["text_config"], config["backbone_hidden_size"]
    raw: Raw = {}
    random, norm = partial(_matrix, rng), partial(_norm, rng)

    raw["model.embed_tokens.weight"] = random(VOCABULARY, SIZE) * 2
    for number, kind in enumerate(inner["layer_types"]):
        layer = f"model.layers.{number}."
        width = inner["global_head_dim"] if kind == "full_attention" else inner["head_dim"]
        heads = inner["num_attention_heads"]
        raw[f"{layer}self_attn.q_proj.weight"] = random(heads * width, SIZE)
        raw[f"{layer}self_attn.o_proj.weight"] = random(SIZE, heads * width)
        raw[f"{layer}self_attn.q_norm.weight"] = norm(width)
        for part, shape in (("gate", (48, SIZE)), ("up", (48, SIZE)), ("down", (SIZE, 48))):
            raw[f"{layer}mlp.{part}_proj.weight"] = random(*shape)
        for place in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            raw[f"{layer}{place}_layernorm.weight"] = norm(SIZE)
        raw[f"{layer}layer_scalar"] = rng.uniform(0.7, 1.3, 1).astype(np.float32)
    raw["model.norm.weight"] = norm(SIZE)
    raw["pre_projection.weight"] = random(SIZE, 2 * size)
    raw["post_projection.weight"] = random(size, SIZE)
    if groups := ASSISTANTS[name][1]:
        raw["masked_embedding.centroids.weight"] = random(groups, SIZE)
        raw["masked_embedding.token_ordering"] = rng.permutation(VOCABULARY).astype(np.int64)
    return raw


def write_drafted_model(folder: Path, name: str) -> None:
    """Writes the model in `folder`, and beside it its head."""
    config = model_config(name)
    weights = dict(tree_flatten(build(config, 2.0).parameters()))
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder)
    write_head(head_folder(folder), name)


def head_folder(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-Eagle3-head")


def write_head(place: Path, name: str) -> None:
    place.mkdir(parents=True)
    kinds: tuple[Any, ...] = (assistant_config, raw_assistant)
    if name not in ASSISTANTS:
        kinds = (eagle_config, raw_eagle) if name in EAGLES else (block_config, raw_block)
    config, raw = (make(name) for make in kinds)
    mx.save_safetensors(str(place / "model.safetensors"), {key: mx.array(each) for key, each in raw.items()})
    (place / "config.json").write_text(json.dumps(config))
    write_tokenizer(place)


# ---- EAGLE-3 heads, in the layouts of SpecForge and speculators


class Eagle(NamedTuple):
    """`model`: its architecture. `layers`: numbers in the config, which may have none. `changes`: of it."""

    model: str
    layers: tuple[int, ...]
    nested: bool
    changes: Mapping[str, Any]


_NARROW = {"hidden_size": SIZE, "head_dim": 8}
EAGLES: Mapping[str, Eagle] = {
    "eagle3-specforge": Eagle("llama", (), False, {}),
    "eagle3-numbered": Eagle("qwen3_5", (1, 2, 5), False, {"num_hidden_layers": 2}),
    "eagle3-speculators": Eagle("qwen3", (1, 3, 4), True, {"norm_before_residual": True}),
    "eagle3-own-embedding": Eagle("llama", (), False, {"embed_requires_grad": True}),
    "eagle3-narrow": Eagle(
        "gemma3_text", (3, 5, 6), True, {**_NARROW, "norm_before_fc": True, "norm_before_residual": False}
    ),
}
DRAFTED = 96
EAGLE_SIZE = 32


def eagle_config(name: str) -> dict[str, Any]:
    own = EAGLES[name]
    layer = {
        "model_type": "llama",
        "hidden_size": EAGLE_SIZE,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT_TOKENS,
    }
    outer = {key: value for key, value in own.changes.items() if key.startswith(("norm_", "embed_"))}
    layer |= {key: value for key, value in own.changes.items() if key not in outer}
    outer["draft_vocab_size"] = DRAFTED
    numbers = {"eagle_aux_hidden_state_layer_ids": list(own.layers)} if own.layers else {}
    if own.nested:
        kind: dict[str, Any] = {"speculators_model_type": "eagle3", "architectures": ["Eagle3Speculator"]}
        return {
            **kind,
            **outer,
            **numbers,
            "target_hidden_size": EAGLE_SIZE,
            "transformer_layer_config": layer,
        }
    return {"architectures": ["LlamaForCausalLMEagle3"], **layer, **outer, "eagle_config": numbers}


def raw_eagle(name: str, seed: int = 0) -> Raw:
    """Random tensors, numpy float32, named and shaped as in the published repositories."""
    rng = np.random.default_rng(seed)
    config, own = eagle_config(name), EAGLES[name]
    inner = config.get("transformer_layer_config", config)
    size = inner["hidden_size"]
    raw: Raw = {}
    random, norm = partial(_matrix, rng), partial(_norm, rng)

    raw["fc.weight"] = random(size, 3 * EAGLE_SIZE)
    if "norm_before_fc" in config:
        raw["input_norm.weight"] = norm(3 * EAGLE_SIZE)
    for number in range(inner["num_hidden_layers"]):
        single = inner["num_hidden_layers"] == 1 and not own.nested
        layer = "midlayer." if single else f"layers.{number}."
        width = size if number else 2 * size
        for part, rows in (("q", 32), ("k", 16), ("v", 16)):
            raw[f"{layer}self_attn.{part}_proj.weight"] = random(rows, width)
        raw[f"{layer}self_attn.o_proj.weight"] = random(size, 32)
        for part, shape in (("gate", (64, size)), ("up", (64, size)), ("down", (size, 64))):
            raw[f"{layer}mlp.{part}_proj.weight"] = random(*shape)
        for place in ("input_layernorm", "post_attention_layernorm", *(() if number else ("hidden_norm",))):
            raw[f"{layer}{place}.weight"] = norm(size)
    raw["norm.weight"] = norm(size)
    raw["lm_head.weight"] = random(DRAFTED, size) * 2
    ids = np.sort(rng.permutation(VOCABULARY)[:DRAFTED])
    raw["d2t"] = ids - np.arange(DRAFTED)
    raw["t2d"] = np.isin(np.arange(VOCABULARY), ids)
    # Without training, an embedding of the model's size counts as a copy of the model's.
    if size != EAGLE_SIZE or "embed_requires_grad" in config or name == "eagle3-numbered":
        raw["embed_tokens.weight"] = random(VOCABULARY, size)
    return raw


# ---- DFlash drafters


# The model's architecture, and changes of the config.
BLOCKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "dflash": ("qwen3", {}),
    "dflash-windows": (
        "qwen3_5",
        {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 4},
    ),
    "dflash-causal": (
        "qwen3",
        {
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 4,
            "dflash_query_causal": True,
        },
    ),
    "dflash-few-rows": ("qwen3", {"dflash_config": {"causal": True, "draft_window_size": 8}}),
}
BLOCK_SIZE = 4
BLOCK_LAYERS = (1, 2, 4)


def block_config(name: str) -> dict[str, Any]:
    return {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "hidden_size": EAGLE_SIZE,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_hidden_layers": 2,
        "num_target_layers": 6,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT_TOKENS,
        "block_size": BLOCK_SIZE,
        **BLOCKS[name][1],
        "dflash_config": {
            "mask_token_id": 7,
            "target_layer_ids": list(BLOCK_LAYERS),
            **BLOCKS[name][1].get("dflash_config", {}),
        },
    }


def raw_block(name: str, seed: int = 0) -> Raw:
    """Random tensors, numpy float32, named and shaped as in the published repositories."""
    rng = np.random.default_rng(seed)
    raw: Raw = {"fc.weight": _matrix(rng, EAGLE_SIZE, len(BLOCK_LAYERS) * EAGLE_SIZE)}
    for number in range(2):
        layer = f"layers.{number}."
        for part, rows in (("q", 32), ("k", 16), ("v", 16), ("o", 32)):
            raw[f"{layer}self_attn.{part}_proj.weight"] = _matrix(rng, rows, EAGLE_SIZE)
        for part in ("gate", "up"):
            raw[f"{layer}mlp.{part}_proj.weight"] = _matrix(rng, 64, EAGLE_SIZE)
        raw[f"{layer}mlp.down_proj.weight"] = _matrix(rng, EAGLE_SIZE, 64)
        for place, size in (
            ("self_attn.q_norm", 8),
            ("self_attn.k_norm", 8),
            ("input_layernorm", EAGLE_SIZE),
        ):
            raw[f"{layer}{place}.weight"] = _norm(rng, size)
        raw[f"{layer}post_attention_layernorm.weight"] = _norm(rng, EAGLE_SIZE)
    return raw | {f"{name}.weight": _norm(rng, EAGLE_SIZE) for name in ("hidden_norm", "norm")}


def _matrix(rng: np.random.Generator, *shape: int) -> Any:
    return (rng.normal(size=shape) * 1.5 / np.sqrt(shape[-1])).astype(np.float32)


def _norm(rng: np.random.Generator, length: int) -> Any:
    return rng.uniform(0.7, 1.3, length).astype(np.float32)


# ---- cases: heads whose outputs were recorded by tests.tuning.head_oracle


RECORDED = Path(__file__).parent / "heads" / "head_outputs.json"
MTP_CASES = ("qwen3_5", "qwen3_5_moe")
OTHERS = (*ASSISTANTS, *EAGLES, *BLOCKS)
CASES = (*MTP_CASES, *OTHERS)
ROWS = 6
COLUMNS = 11


def inputs(name: str) -> Raw:
    """The model's embedding and its scale, tokens, states before them, and keys of both types of layer."""
    rng = np.random.default_rng(len(name))
    size = 32

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    found = {
        "embedding": normal(VOCABULARY, size) / 4,
        "scale": np.array([size**0.5 if name in ASSISTANTS else 1.0], np.float32),
        "ids": rng.integers(0, VOCABULARY, ROWS).astype(np.int32),
        "states": normal(ROWS, 3 * size if name in (*EAGLES, *BLOCKS) else size),
    }
    if name in ASSISTANTS:
        own = model_config(name)
        for kind, heads, width in (
            ("sliding_attention", own["num_key_value_heads"], own["head_dim"]),
            ("full_attention", _global_heads(own), own["global_head_dim"]),
        ):
            found |= {f"{kind}.{part}": normal(1, heads, COLUMNS, width) for part in ("keys", "values")}
    return found


def _global_heads(config: Mapping[str, Any]) -> int:
    equal = config.get("attention_k_eq_v")
    return int(config["num_global_key_value_heads" if equal else "num_key_value_heads"])


def write_case(folder: Path, name: str) -> None:
    """config.json and model.safetensors of the head, and inputs.safetensors."""
    if name in MTP_CASES:
        write_headed_model(folder.with_name("Tiny"), name, Layout(SEPARATE, bare=True))
        separate_folder(folder.with_name("Tiny")).rename(folder)
        shutil.rmtree(folder.with_name("Tiny"))
    else:
        write_head(folder, name)
    given = {key: mx.array(value) for key, value in inputs(name).items()}
    mx.save_safetensors(str(folder / "inputs.safetensors"), given)
