"""The eyes of Gemma 4: patches of any proportion, rotary by column and line, nine of which make a row.

In the large models rows of an image attend to each other in both directions, in sliding layers only; the
small ones are causal. The text model scales rows like embeddings, and reads the id 0 at them for the inputs
of each layer. The unified models without a tower are another family. Source: transformers' `gemma4`; tested
against mlx-vlm, with transformers' masks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from numpy.typing import NDArray

from core.vision.family import Family, Scaled, UnseenError, attended, figure, rounded, working_bytes
from core.vision.gemma3 import flat_patches

_ROWS = 280
_PREFIXES = ("vision_tower.", "model.vision_tower.")
_EMBEDDER = "embed_vision."


def family(config: Mapping[str, Any], processor: Mapping[str, Any]) -> Family:
    """The family of a model with these configurations. Raises `UnseenError`."""
    vision, text = config["vision_config"], config["text_config"]
    patch, pool = figure(vision, "patch_size"), figure(vision, "pooling_kernel_size")
    named = processor.get("max_soft_tokens") or config.get("vision_soft_tokens_per_image")
    most = figure({"rows": named or vision.get("default_output_length") or _ROWS}, "rows")
    size = figure(text, "hidden_size")
    attends = text.get("use_bidirectional_attention")
    if attends not in (None, "vision"):
        raise UnseenError(f"its use_bidirectional_attention is {attends!r}")

    def scale(width: int, height: int) -> Scaled:
        tall, wide = size_for(height, width, patch=patch, pool=pool, most=most)
        return Scaled(tall, wide, tall // (patch * pool), wide // (patch * pool))

    return Family(
        "Gemma 4",
        "<|image|>",
        "<|image><|image|><image|>",
        "<|image|>",
        scale,
        "bicubic",
        lambda: Tower(vision, size),
        weight,
        partial(working_bytes, vision),
        both_ways="sliding" if attends else "",
        embed_scale=lambda dtype: rounded(size**0.5, dtype),
    )


def size_for(height: int, width: int, *, patch: int, pool: int, most: int) -> tuple[int, int]:
    """Height and width in multiples of `pool` patches, with at most `most` rows; nearly of its proportion."""
    side = patch * pool
    by = math.sqrt(most * side**2 / (height * width))
    tall, wide = (math.floor(by * each / side) * side for each in (height, width))
    if not tall and not wide:
        raise UnseenError(f"{most} rows are too few for an image")
    if not tall:
        return side, min(math.floor(width / height), most) * side
    if not wide:
        return min(math.floor(height / width), most) * side, side
    return tall, wide


def weight(name: str, value: mx.array) -> tuple[str, mx.array] | None:
    """The parameter of `Tower` that a checkpoint's tensor is."""
    if (at := name.find(_EMBEDDER)) in (0, len("model.")):
        return name[at:], value
    prefix = next((each for each in _PREFIXES if name.startswith(each)), None)
    return (name.removeprefix(prefix), value) if prefix else None


class _Clipped(nn.Module):  # type: ignore[misc]
    """A linear layer, of some models between bounds that are stored with it."""

    def __init__(self, size: int, to: int, *, clips: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(size, to, bias=False)
        if clips:
            self.input_min = self.output_min = mx.array(-math.inf)
            self.input_max = self.output_max = mx.array(math.inf)

    def __call__(self, x: mx.array) -> mx.array:
        if "input_min" not in self:
            found: mx.array = self.linear(x)
            return found
        found = self.linear(mx.clip(x, self.input_min, self.input_max))
        return mx.clip(found, self.output_min, self.output_max)


class _Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size, inner = figure(config, "hidden_size"), figure(config, "intermediate_size")
        self._heads = heads = figure(config, "num_attention_heads")
        self._kv_heads = kv_heads = figure(config, "num_key_value_heads", heads)
        head = figure(config, "head_dim", size // heads)
        clips, self._eps = bool(config.get("use_clipped_linears")), float(config.get("rms_norm_eps", 1e-6))
        self.self_attn = {
            "q_proj": _Clipped(size, heads * head, clips=clips),
            "k_proj": _Clipped(size, kv_heads * head, clips=clips),
            "v_proj": _Clipped(size, kv_heads * head, clips=clips),
            "o_proj": _Clipped(heads * head, size, clips=clips),
            "q_norm": nn.RMSNorm(head, eps=1e-6),
            "k_norm": nn.RMSNorm(head, eps=1e-6),
        }
        self.mlp = {
            "gate_proj": _Clipped(size, inner, clips=clips),
            "up_proj": _Clipped(size, inner, clips=clips),
            "down_proj": _Clipped(inner, size, clips=clips),
        }
        self.input_layernorm = nn.RMSNorm(size, eps=self._eps)
        self.post_attention_layernorm = nn.RMSNorm(size, eps=self._eps)
        self.pre_feedforward_layernorm = nn.RMSNorm(size, eps=self._eps)
        self.post_feedforward_layernorm = nn.RMSNorm(size, eps=self._eps)

    def __call__(self, x: mx.array, turns: list[tuple[mx.array, mx.array]]) -> mx.array:
        attn, rows, given = self.self_attn, x.shape[0], self.input_layernorm(x)
        q = _rotated(attn["q_norm"](attn["q_proj"](given).reshape(rows, self._heads, -1)), turns)
        k = _rotated(attn["k_norm"](attn["k_proj"](given).reshape(rows, self._kv_heads, -1)), turns)
        v = mx.fast.rms_norm(attn["v_proj"](given).reshape(rows, self._kv_heads, -1), None, 1e-6)
        q, k, v = (each.swapaxes(0, 1)[None] for each in (q, k, v))
        seen = attended(q, k, v, 1.0)[0]
        seen = attn["o_proj"](seen.swapaxes(0, 1).reshape(rows, -1))
        x = x + self.post_attention_layernorm(seen)
        given = self.pre_feedforward_layernorm(x)
        inner = nn.gelu_approx(self.mlp["gate_proj"](given)) * self.mlp["up_proj"](given)
        found: mx.array = x + self.post_feedforward_layernorm(self.mlp["down_proj"](inner))
        return found


def _rotated(x: mx.array, turns: list[tuple[mx.array, mx.array]]) -> mx.array:
    """`x` [rows, heads, dims], each part of whose dimensions turns by one axis."""
    size = 2 * turns[0][0].shape[-1]
    parts = []
    for number, (cos, sin) in enumerate(turns):
        one, other = mx.split(x[..., number * size : (number + 1) * size], 2, axis=-1)
        parts += [one * cos - other * sin, other * cos + one * sin]
    return mx.concatenate(parts, axis=-1).astype(x.dtype)


class Tower(nn.Module):  # type: ignore[misc]
    """Rows of one image, projected to the text model's size `to`."""

    def __init__(self, config: Mapping[str, Any], to: int) -> None:
        super().__init__()
        size = figure(config, "hidden_size")
        self._patch, self._pool = figure(config, "patch_size"), figure(config, "pooling_kernel_size")
        heads = figure(config, "num_attention_heads")
        self._head = figure(config, "head_dim", size // heads)
        self._eps = float(config.get("rms_norm_eps", 1e-6))
        rope = config.get("rope_parameters") or {}
        self._base = float(rope.get("rope_theta", 100.0))
        self.patch_embedder = {
            "input_proj": nn.Linear(3 * self._patch**2, size, bias=False),
            "position_embedding_table": mx.zeros((2, figure(config, "position_embedding_size"), size)),
        }
        layers = figure(config, "num_hidden_layers")
        self.encoder = {"layers": [_Layer(config) for _ in range(layers)]}
        if config.get("standardize"):
            self.std_bias, self.std_scale = mx.zeros(size), mx.ones(size)
        self.embed_vision = {"embedding_projection": nn.Linear(size, to, bias=False)}

    def __call__(self, pixels: NDArray[np.uint8]) -> mx.array:
        down, across = pixels.shape[0] // self._patch, pixels.shape[1] // self._patch
        line, column = (mx.array(each) for each in np.divmod(np.arange(down * across), across))
        table = self.patch_embedder["position_embedding_table"]
        values = np.asarray(2 * (pixels / 255 - 0.5), np.float32)
        given = mx.array(flat_patches(values, self._patch)).astype(table.dtype)
        x = self.patch_embedder["input_proj"](given) + table[0][column] + table[1][line]
        turns = [self._turns(each) for each in (column, line)]
        for layer in self.encoder["layers"]:
            x = layer(x, turns)
        pool, size = self._pool, x.shape[-1]
        # In float32: the factor can exceed half precision's range.
        wide = x.astype(mx.float32).reshape(down // pool, pool, across // pool, pool, size)
        rows = wide.mean(axis=(1, 3)).reshape(-1, size) * size**0.5
        if "std_bias" in self:
            rows = (rows - self.std_bias) * self.std_scale
        found: mx.array = self.embed_vision["embedding_projection"](
            mx.fast.rms_norm(rows.astype(x.dtype), None, self._eps)
        )
        return found

    def _turns(self, at: mx.array) -> tuple[mx.array, mx.array]:
        """Cosine and sine [rows, 1, dims / 4] of one axis."""
        half = self._head // 4
        steps = mx.power(self._base, mx.arange(half, dtype=mx.float32) / half)
        angles = (at.astype(mx.float32)[:, None] / steps)[:, None]
        return mx.cos(angles), mx.sin(angles)
