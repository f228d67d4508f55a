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

Kind = Literal["full", "window", "state"]
_CHUNK_TOKENS = 512  # of a prompt that is read at once: the default of prefill.chunk_tokens
# MLX's Metal kernels fuse attention for these (steel_attention, MLX 0.32); others hold the scores.
_FUSED_HEAD_DIMENSIONS = (64, 80, 128)
# What Python, MLX and the tokenizer library hold beside the weights (measured on Linux: 174 MiB).
_PROCESS_BYTES = 200_000_000

# What configs call the length of the context.
CONTEXT_NAMES = ("max_position_embeddings", "max_seq_len", "n_positions")


class Machine(Struct, frozen=True):
    """What matters here of a machine. `expands`: weights become float32 at load, as on MLX's CPU build."""

    limit_bytes: int
    expands: bool


def need_of(config: dict[str, Any], parameters: int, stored_bytes: int, machine: Machine) -> MemoryNeed:
    """Of a model with that config; `stored_bytes` are its tensors' in the file."""
    text = text_config(config)
    element = 4 if machine.expands or str(text.get("dtype") or text.get("torch_dtype")) == "float32" else 2
    kinds = layer_kinds(text)
    heads = _int(text, "num_attention_heads", "n_heads", "n_head")
    kv_heads = _int(text, "num_key_value_heads", "num_kv_heads") or heads
    hidden = _int(text, "hidden_size", "d_model", "n_embd")
    head_dim = _int(text, "head_dim") or (hidden // heads if heads else 0)
    a_token = 2 * kv_heads * head_dim * element
    if rank := _int(text, "kv_lora_rank"):
        a_token = (rank + _int(text, "qk_rope_head_dim")) * element
    inner = _int(text, "intermediate_size", "moe_intermediate_size") or 4 * hidden
    fused = not machine.expands and head_dim in _FUSED_HEAD_DIMENSIONS
    return MemoryNeed(
        weights=4 * parameters if machine.expands else stored_bytes,
        growing=a_token * kinds.count("full"),
        windowed=a_token * kinds.count("window"),
        window_tokens=_int(text, "sliding_window", "attention_window_size"),
        state=_state_bytes(text, hidden) * kinds.count("state"),
        working=_CHUNK_TOKENS * (8 * hidden + 3 * inner) * element
        + (_PROCESS_BYTES if machine.expands else 0),
        working_growing=0 if fused else heads * _CHUNK_TOKENS * element,
    )


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The part of the config that is about the language model."""
    inner = config.get("text_config")
    return {**config, **inner} if isinstance(inner, dict) else config


def context_tokens(config: dict[str, Any]) -> int:
    """How many tokens the model can look back on; 4,096 where nothing says it."""
    return _int(text_config(config), *CONTEXT_NAMES) or 4096


def layer_kinds(text: dict[str, Any]) -> tuple[Kind, ...]:
    """What each layer keeps of the past. The names are those that configs on the hub use."""
    count = _int(text, "num_hidden_layers", "n_layers", "n_layer")
    named = text.get("layer_types")
    if isinstance(named, list) and named:
        return tuple(_kind_of(str(name)) for name in named[:count])
    pattern, indices = text.get("hybrid_override_pattern"), text.get("full_attn_idxs")
    if isinstance(pattern, str):
        return _hybrid([sign == "*" for sign in pattern if sign in "*M"])
    if isinstance(indices, list):
        return _hybrid([layer in indices for layer in range(count)])
    if every := _int(text, "full_attention_interval", "attn_layer_period"):
        offset = _int(text, "attn_layer_offset") if "attn_layer_offset" in text else every - 1
        return _hybrid([layer % every == offset for layer in range(count)])
    every = _int(text, "sliding_window_pattern")
    if every and _int(text, "sliding_window"):
        windows: list[Kind] = ["window" if (layer + 1) % every else "full" for layer in range(count)]
        return tuple(windows)
    attends = bool(_int(text, "num_attention_heads", "n_heads", "n_head"))
    return _hybrid([attends] * count)


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
    size = _int(text, "mamba_d_state", "ssm_state_size", "state_size", "mamba_state_dim")
    return 4 * size * (_int(text, "mamba_expand", "expand") or 2) * hidden


def _int(config: dict[str, Any], *names: str) -> int:
    """The first of these that is a number; 0 if none is."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0
