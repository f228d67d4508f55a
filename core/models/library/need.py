"""Need: how much of a machine's memory a model will take, from its config and its tensors' headers.

    weights   the tensors' bytes; where they are expanded (MLX's CPU build), 4 bytes a parameter
    cache     2 · kv heads · head dimensions · bytes of an element, for each attention layer and token;
              a layer with a sliding window stops growing at it; recurrent layers have a fixed state;
              layers with latent attention keep (rank + rotary dimensions) instead
    working   one chunk of prompt going through a layer, and attention scores where MLX does not
              fuse them: heads · chunk · bytes of an element, for each token of the context

An estimate; for the starter model after a prompt of 8,000 tokens it is 7% above what the process
really holds (Linux, 1,218 and 1,144 MiB). Knows no file and no MLX.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from core.events import MemoryNeed
from core.models.library.model_types import (
    CONTEXT_NAMES,
    HEAD_NAMES,
    HIDDEN_NAMES,
    INNER_NAMES,
    KV_HEAD_NAMES,
    LAYER_NAMES,
    STATE_NAMES,
    WINDOW_NAMES,
    text_config,
)

Kind = Literal["full", "window", "state"]
_CHUNK_TOKENS = 512  # of a prompt that is read at once: the default of prefill.chunk_tokens
# MLX's Metal kernels fuse attention for these (steel_attention, MLX 0.32); others hold the scores.
_FUSED_HEAD_DIMENSIONS = (64, 80, 128)
# What Python, MLX and the tokenizer library hold beside the weights (measured on Linux: 174 MiB).
_PROCESS_BYTES = 200_000_000


# Entries of a list of layers that are no attention or state.
_KEEPS_NOTHING = ("mlp", "moe")


class Machine(Struct, frozen=True):
    """What matters here of a machine. `expands`: weights become float32 at load, as on MLX's CPU build."""

    limit_bytes: int
    expands: bool


def need_of(config: dict[str, Any], parameters: int, stored_bytes: int, machine: Machine) -> MemoryNeed:
    """Of a model with that config; `stored_bytes` are its tensors' in the file."""
    text = text_config(config)
    element = 4 if machine.expands or str(text.get("dtype") or text.get("torch_dtype")) == "float32" else 2
    kinds = layer_kinds(text)
    heads = _int(text, *HEAD_NAMES)
    kv_heads = _int(text, *KV_HEAD_NAMES) or heads
    hidden = _int(text, *HIDDEN_NAMES)
    head_dim = _int(text, "head_dim") or (hidden // heads if heads else 0)
    a_token = 2 * kv_heads * head_dim * element
    if rank := _int(text, "kv_lora_rank"):
        a_token = (rank + _int(text, "qk_rope_head_dim")) * element
    inner = _int(text, *INNER_NAMES) or 4 * hidden
    fused = not machine.expands and head_dim in _FUSED_HEAD_DIMENSIONS
    return MemoryNeed(
        weights=4 * parameters if machine.expands else stored_bytes,
        growing=a_token * kinds.count("full"),
        windowed=a_token * kinds.count("window"),
        window_tokens=_int(text, *WINDOW_NAMES),
        state=_state_bytes(text, hidden) * kinds.count("state"),
        working=_CHUNK_TOKENS * (8 * hidden + 3 * inner) * element
        + (_PROCESS_BYTES if machine.expands else 0),
        working_growing=0 if fused else heads * _CHUNK_TOKENS * element,
    )


def context_tokens(config: dict[str, Any]) -> int:
    """Length of the model's context; 4,096 where neither the config nor its type gives one."""
    return _int(text_config(config), *CONTEXT_NAMES) or 4096


def layer_kinds(text: dict[str, Any]) -> tuple[Kind, ...]:
    """What each layer keeps of the past; `text` is what `text_config` returns."""
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
    """The first of these that is a number, or the largest of a list of them; 0 if none is."""
    for name in names:
        value = config.get(name)
        if isinstance(value, list) and value and all(isinstance(each, int) for each in value):
            value = max(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0
