"""Model types: which ones mlx-lm can load, and the values that a config leaves to its type's defaults.

A config.json omits what equals the defaults of its type: gemma-3-4b's names no context length, and
neither heads nor layers. The defaults are those of mlx-lm's ModelArgs, with which the model will run. For
the length of the context it is the larger of mlx-lm's and transformers' default: mlx-lm's is often only
the start of the rotary table.

They are read from resources/models/types.json, so that listing models loads neither library. After an
update of mlx-lm or transformers write it again: `python -m tests.tuning.model_types`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from core.events import CHUNK_TOKENS, MemoryNeed
from core.settings.prefill import KV_GROUP_SIZES
from core.system.paths import resources_dir

TYPES_FILE = "models/types.json"
# Names of the same value in different types' configs.
CONTEXT_NAMES = ("max_position_embeddings", "max_seq_len", "n_positions", "model_max_length", "seq_length")
LAYER_NAMES = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "num_transformer_layers")
HEAD_NAMES = ("num_attention_heads", "n_heads", "n_head", "num_heads", "num_query_heads")
KV_HEAD_NAMES = ("num_key_value_heads", "num_kv_heads", "n_kv_heads")
HIDDEN_NAMES = ("hidden_size", "d_model", "n_embd", "model_dim", "hidden_dim")
INNER_NAMES = ("intermediate_size", "moe_intermediate_size")
WINDOW_NAMES = ("sliding_window", "attention_window_size", "sliding_window_size", "window_size")
STATE_NAMES = ("mamba_d_state", "ssm_state_size", "state_size", "mamba_state_dim")
_SYNONYMS = (CONTEXT_NAMES, LAYER_NAMES, HEAD_NAMES, KV_HEAD_NAMES, HIDDEN_NAMES, WINDOW_NAMES, STATE_NAMES)
_OTHER_NAMES = (
    "head_dim",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "full_attention_interval",
    "attn_layer_period",
    "attn_layer_offset",
    "sliding_window_pattern",
    "layer_group_size",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "mamba_expand",
    "expand",
)
NAMES = frozenset(name for names in (*_SYNONYMS, INNER_NAMES, _OTHER_NAMES) for name in names)


def is_supported(model_type: str) -> bool:
    """Whether mlx-lm has a module for the type."""
    return _module_of({"model_type": model_type}) in types_table()["defaults"]


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of `config`, with the defaults of its type for missing values."""
    inner = config.get("text_config")
    inner = inner if isinstance(inner, dict) else {}
    given = {**config, **inner}
    for names in _SYNONYMS:
        if any(is_number(given.get(name)) for name in names):
            given = dict.fromkeys(names) | given
    table = types_table()
    outer, kind = _module_of(config), _module_of(inner)
    if kind not in table["defaults"]:
        kind = table["text"].get(outer, outer)
    defaults = {**table["defaults"].get(kind, {}), **table["inner"].get(outer, {})}
    if not any(is_number(given.get(name)) for name in CONTEXT_NAMES):
        contexts = [table["defaults"].get(each, {}).get(CONTEXT_NAMES[0], 0) for each in (kind, outer)]
        given[CONTEXT_NAMES[0]] = max(contexts) or None
    return {**defaults, **given}


def _module_of(config: dict[str, Any]) -> str:
    """The module of mlx-lm that loads `config`."""
    kind = str(config.get("model_type", ""))
    architectures = config.get("architectures")
    for kind_then, architecture, module in types_table()["architectures"]:
        if kind == kind_then and isinstance(architectures, list) and architecture in architectures:
            return str(module)
    return str(types_table()["aliases"].get(kind, kind))


def is_number(value: Any) -> bool:
    """Whether `value` is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


@lru_cache(maxsize=1)
def types_table() -> dict[str, Any]:
    """The defaults of model types, as `tests.tuning.model_types` writes them."""
    table: dict[str, Any] = json.loads((resources_dir() / TYPES_FILE).read_text(encoding="utf-8"))
    return table


def model_class(config: dict[str, Any]) -> Any:
    """mlx-lm's class of the model with this config; None for an unsupported type. Imports mlx-lm.

    `_get_classes` is private in mlx-lm (read in 0.32.2) and the only function that applies its renamings.
    """
    from mlx_lm.utils import _get_classes

    try:
        return _get_classes(config)[0]
    except ValueError:
        return None


_KINDS = {int: "an integer", float: "a number", str: "a text", bool: "true or false", list: "a list"}


def wrong_field(config: dict[str, Any]) -> str:
    """The first value of a type that mlx-lm does not declare for it, in words; empty if there is none.

    Numbers in nested objects have no declared type; a number that is written as a text is wrong there.
    """
    owner = model_class(config)
    if owner is None:
        return ""
    # A type's module may take its inner classes from another type's.
    inside = [each for each in vars(sys.modules[owner.__module__]).values() if isinstance(each, type)]
    names = dict.fromkeys([owner.__module__, *(each.__module__ for each in inside)])
    modules = [sys.modules[name] for name in names if name.startswith("mlx_lm.")]
    declared: dict[str, list[Any]] = {}
    for module in modules:
        for each in vars(module).values():
            if is_dataclass(each):
                for name, kind in get_type_hints(each).items():
                    declared.setdefault(name, []).append(kind)
    for name, value in _values(config):
        kinds = declared.get(name, [])
        if kinds and not any(_is_of(value, kind) for kind in kinds):
            allowed = " or ".join(dict.fromkeys(_KINDS[one] for kind in kinds for one in _plain(kind)))
            return f"{name} is {json.dumps(value)}, and must be {allowed}"
        if not kinds and isinstance(value, str) and _JSON_NUMBER.fullmatch(value):
            return f"{name} is {json.dumps(value)}, and must be a number"
        if not kinds and name.endswith("type") and not isinstance(value, str):
            return f"{name} is {json.dumps(value)}, and must be a text"
    return ""


_JSON_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def _values(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _values(value)
        elif value is not None:
            yield name, value


def _plain(kind: Any) -> list[Any]:
    """The types of `_KINDS` that the annotation `kind` allows; empty if it allows anything else."""
    if get_origin(kind) in (Union, UnionType):
        parts = [_plain(each) for each in get_args(kind) if each is not NoneType]
        return [one for each in parts for one in each] if all(parts) else []
    kind = get_origin(kind) or kind
    return [kind] if kind in _KINDS else []


def _is_of(value: Any, kind: Any) -> bool:
    allowed = _plain(kind)
    return not allowed or any(
        isinstance(value, (int, float) if one is float else one)
        and (one is bool or not isinstance(value, bool))
        for one in allowed
    )


# ---- memory of a model, estimated from its config and its tensors' headers
#
#     weights   size of the tensors; 4 bytes per parameter if expanded (MLX's CPU build)
#     cache     2 · kv heads · head dimensions · element size, per attention layer and token; layers with a
#               sliding window stop growing at its size; recurrent layers have a fixed state; layers with
#               latent attention store (rank + rotary dimensions) instead
#     working   one chunk of the prompt in a layer, and attention scores if MLX does not fuse them:
#               heads · chunk · element size, per token of the context
#
# For the starter model after a prompt of 8,000 tokens the estimate is 7% above the process's memory (Linux,
# 1,218 and 1,144 MiB). Reads no files and does not use MLX.


Kind = Literal["full", "window", "state"]
# MLX's Metal kernels fuse attention for these (steel_attention, MLX 0.32); others hold the scores.
_FUSED_HEAD_DIMENSIONS = (64, 80, 128)
# Memory of Python, MLX and the tokenizer library without weights (measured on Linux: 174 MiB).
_PROCESS_BYTES = 200_000_000


# Layers without a cache.
_KEEPS_NOTHING = ("mlp", "moe")


class Machine(Struct, frozen=True):
    """A machine for estimates. `expands`: weights become float32 at load, as on MLX's CPU build."""

    limit_bytes: int
    expands: bool


def need_of(config: dict[str, Any], parameters: int, stored_bytes: int, machine: Machine) -> MemoryNeed:
    """The estimate for a model with this config. `stored_bytes`: size of its tensors on disk."""
    text = text_config(config)
    element = 4 if machine.expands or str(text.get("dtype") or text.get("torch_dtype")) == "float32" else 2
    kinds = layer_kinds(text)
    heads = _int(text, *HEAD_NAMES)
    kv_heads = _int(text, *KV_HEAD_NAMES) or heads
    hidden = _int(text, *HIDDEN_NAMES)
    head_dim = _int(text, "head_dim") or (hidden // heads if heads else 0)
    a_token = 2 * kv_heads * head_dim * element
    rank = _int(text, "kv_lora_rank")
    if rank:
        a_token = (rank + _int(text, "qk_rope_head_dim")) * element
    inner = _int(text, *INNER_NAMES) or 4 * hidden
    fused = not machine.expands and head_dim in _FUSED_HEAD_DIMENSIONS
    scores = heads * CHUNK_TOKENS * element
    return MemoryNeed(
        weights=4 * parameters if machine.expands else stored_bytes,
        growing=a_token * kinds.count("full"),
        windowed=a_token * kinds.count("window"),
        window_tokens=_int(text, *WINDOW_NAMES),
        state=_state_bytes(text, hidden) * kinds.count("state"),
        working=CHUNK_TOKENS * (4 * hidden + 4 * max(hidden, heads * head_dim) + 3 * inner) * element,
        working_growing=0 if fused else scores,
        process=_PROCESS_BYTES if machine.expands else 0,
        growing_8=0 if rank else _quantised(kv_heads, head_dim, element, 8) * kinds.count("full"),
        growing_4=0 if rank else _quantised(kv_heads, head_dim, element, 4) * kinds.count("full"),
        working_quantised=scores,
        growing_layers=kinds.count("full"),
    )


def _quantised(kv_heads: int, head_dim: int, element: int, bits: int) -> int:
    """Bytes of a token's keys and values in one quantised layer; 0 if they cannot be quantised."""
    group = next((size for size in KV_GROUP_SIZES if head_dim % size == 0), 0)
    if not group:
        return 0
    # The codes, and a scale and a bias for each group.
    return 2 * kv_heads * (head_dim * bits // 8 + head_dim // group * 2 * element)


def context_tokens(config: dict[str, Any]) -> int:
    """Length of the model's context; 4,096 where neither the config nor its type gives one."""
    return _int(text_config(config), *CONTEXT_NAMES) or 4096


def layer_kinds(text: dict[str, Any]) -> tuple[Kind, ...]:
    """Kind of each layer's cache. `text`: from `text_config`."""
    count = _int(text, *LAYER_NAMES)
    for name in ("layer_types", "layers_block_type", "block_types"):
        named = text.get(name)
        if isinstance(named, list) and named:
            kept = [str(each) for each in named if each not in _KEEPS_NOTHING]
            return tuple(_kind_of(each) for each in kept[:count] or kept)
    pattern, indices = text.get("hybrid_override_pattern"), text.get("full_attn_idxs")
    if isinstance(pattern, str | list) and pattern:
        return _hybrid([sign == "*" for sign in pattern if sign in ("*", "M")])
    if isinstance(indices, list):
        return _hybrid([layer in indices for layer in range(count)])
    windows = text.get("hybrid_layer_pattern")
    if isinstance(windows, list) and windows:
        return tuple("window" if sign else "full" for sign in windows[:count])
    linear = text.get("linear_attn_config")
    if isinstance(linear, dict) and isinstance(linear.get("full_attn_layers"), list):
        return _hybrid([layer + 1 in linear["full_attn_layers"] for layer in range(count)])
    if every := _int(text, "full_attention_interval", "attn_layer_period", "layer_group_size"):
        offset = _int(text, "attn_layer_offset") if "attn_layer_offset" in text else every - 1
        return _hybrid([layer % every == offset for layer in range(count)])
    every = _int(text, "sliding_window_pattern")
    if every and _int(text, *WINDOW_NAMES):
        return tuple("window" if (layer + 1) % every else "full" for layer in range(count))
    attends = bool(_int(text, *HEAD_NAMES)) and not _int(text, *STATE_NAMES)
    return _hybrid([attends or bool(_int(text, *KV_HEAD_NAMES))] * count)


def _hybrid(attends: list[bool]) -> tuple[Kind, ...]:
    return tuple("full" if each else "state" for each in attends)


def _kind_of(name: str) -> Kind:
    if name in ("sliding_attention", "chunked_attention", "local_attention"):
        return "window"
    return "full" if name in ("full_attention", "attention", "global_attention") else "state"


def _state_bytes(text: dict[str, Any], hidden: int) -> int:
    """One recurrent layer's state, in float32."""
    if value_heads := _int(text, "linear_num_value_heads"):
        each = _int(text, "linear_key_head_dim") * _int(text, "linear_value_head_dim")
        return 4 * value_heads * each
    size = _int(text, *STATE_NAMES) or _int(text, "head_dim")
    return 4 * size * (_int(text, "mamba_expand", "expand") or 2) * hidden


def _int(config: dict[str, Any], *names: str) -> int:
    """The first integer among these keys, or the largest of a list of integers; 0 if there is none."""
    for name in names:
        value = config.get(name)
        if isinstance(value, list) and value and all(isinstance(each, int) for each in value):
            value = max(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0
