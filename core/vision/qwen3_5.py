"""The eyes of Qwen3.5, 3.6 and 3.8, dense and MoE: patches of 16 pixels, of which four make a row.

Positions in a patch's tower are learned on a square grid, between whose points they are interpolated, and
rotary by line and column; each image attends within itself. Rows of the text model have positions in three
axes, interleaved. The tower is that of Qwen3-VL without its deepstack. Source: transformers' `qwen3_5` and
`qwen2_vl` (sizes); tested against mlx-vlm.
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

from core.vision.family import Family, Scaled, UnseenError, attended, colours, figure, working_bytes

# Most rows of an image: 4,096 rows are 2,048 × 2,048 pixels. The processors allow four times as many,
# which take as long to read as a book.
MOST_ROWS = 4096
_LEAST_PIXELS, _MOST_PIXELS = 256 * 256, 4096 * 4096
_PLACE = "<|vision_start|><|image_pad|><|vision_end|>"


def family(config: Mapping[str, Any], processor: Mapping[str, Any]) -> Family:
    """The family of a model with these configurations. Raises `UnseenError`."""
    vision, text = config["vision_config"], config["text_config"]
    if vision.get("deepstack_visual_indexes"):
        raise UnseenError("its tower hands rows to several layers of the text model")
    size = processor.get("size") or {}
    factor = figure(vision, "patch_size") * figure(vision, "spatial_merge_size")
    least = size.get("shortest_edge") or processor.get("min_pixels") or _LEAST_PIXELS
    most = size.get("longest_edge") or processor.get("max_pixels") or _MOST_PIXELS
    most = min(most, MOST_ROWS * factor**2)
    rope = text.get("rope_parameters") or text.get("rope_scaling") or {}
    sections = tuple(rope.get("mrope_section") or ())
    if len(sections) != 3:
        raise UnseenError("its configuration has no mrope_section")
    mean, deviation = colours(processor, (0.5, 0.5, 0.5))

    def scale(width: int, height: int) -> Scaled:
        tall, wide = size_for(height, width, factor=factor, least=least, most=most)
        return Scaled(tall, wide, tall // factor, wide // factor)

    return Family(
        "Qwen3.5",
        _PLACE,
        _PLACE,
        "<|image_pad|>",
        scale,
        "bicubic",
        lambda: Tower(vision, mean, deviation),
        weight,
        partial(working_bytes, vision),
        sections,
        interleaved=True,
    )


def size_for(height: int, width: int, *, factor: int, least: int, most: int) -> tuple[int, int]:
    """Height and width in multiples of `factor`, between `least` and `most` pixels in all."""
    tall, wide = (max(factor, round(each / factor) * factor) for each in (height, width))
    if tall * wide > most:
        by = math.sqrt(height * width / most)
        tall, wide = (max(factor, math.floor(each / by / factor) * factor) for each in (height, width))
    elif tall * wide < least:
        by = math.sqrt(least / (height * width))
        tall, wide = (math.ceil(each * by / factor) * factor for each in (height, width))
    return tall, wide


def weight(name: str, value: mx.array) -> tuple[str, mx.array] | None:
    """The parameter of `Tower` that a checkpoint's tensor is."""
    for prefix in ("vision_tower.", "model.visual.", "visual.", "model.language_model.visual."):
        if name.startswith(prefix):
            break
    else:
        return None
    name = name.removeprefix(prefix)
    if name == "patch_embed.proj.weight" and value.ndim == 5:
        if value.shape[-1] == 3:  # MLX's convolutions have channels last
            value = value.transpose(0, 4, 1, 2, 3)
        value = value.reshape(value.shape[0], -1)
    return name, value


def patches(pixels: NDArray[np.float32], patch: int, merge: int, frames: int) -> NDArray[np.float32]:
    """float32 [patches, 3 · frames · patch²] of [height, width, 3], by blocks of merged patches."""
    down, across = pixels.shape[0] // patch, pixels.shape[1] // patch
    blocks = pixels.reshape(down // merge, merge, patch, across // merge, merge, patch, 3)
    flat = blocks.transpose(0, 3, 1, 4, 6, 2, 5).reshape(down * across, 3, 1, patch * patch)
    found: NDArray[np.float32] = np.repeat(flat, frames, axis=2).reshape(down * across, -1)
    return found


class _Block(nn.Module):  # type: ignore[misc]
    def __init__(self, size: int, inner: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size, eps=1e-6), nn.LayerNorm(size, eps=1e-6)
        self.attn = {"qkv": nn.Linear(size, 3 * size), "proj": nn.Linear(size, size)}
        self.mlp = {"linear_fc1": nn.Linear(size, inner), "linear_fc2": nn.Linear(inner, size)}

    def __call__(self, x: mx.array, cos: mx.array, sin: mx.array) -> mx.array:
        rows = x.shape[0]
        joined = self.attn["qkv"](self.norm1(x)).reshape(rows, 3, self._heads, -1)
        q, k, v = joined.transpose(1, 2, 0, 3)
        q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
        scale = q.shape[-1] ** -0.5
        seen = attended(q[None], k[None], v[None], scale)[0]
        x = x + self.attn["proj"](seen.swapaxes(0, 1).reshape(rows, -1))
        inner = nn.gelu_approx(self.mlp["linear_fc1"](self.norm2(x)))
        found: mx.array = x + self.mlp["linear_fc2"](inner)
        return found


def _rotated(x: mx.array, cos: mx.array, sin: mx.array) -> mx.array:
    one, other = mx.split(x, 2, axis=-1)
    return mx.concatenate([one * cos - other * sin, other * cos + one * sin], axis=-1).astype(x.dtype)


class Tower(nn.Module):  # type: ignore[misc]
    """Rows of one image."""

    def __init__(
        self, config: Mapping[str, Any], mean: NDArray[np.float32], deviation: NDArray[np.float32]
    ) -> None:
        super().__init__()
        size, heads = figure(config, "hidden_size"), figure(config, "num_heads")
        self._colours = mean, deviation
        self._merge, self._patch = figure(config, "spatial_merge_size"), figure(config, "patch_size")
        self._frames = figure(config, "temporal_patch_size")
        self._half = size // heads // 2
        places = figure(config, "num_position_embeddings")
        self._side = math.isqrt(places)
        self.patch_embed = {"proj": nn.Linear(3 * self._frames * self._patch**2, size)}
        self.pos_embed = nn.Embedding(places, size)
        inner = figure(config, "intermediate_size")
        self.blocks = [_Block(size, inner, heads) for _ in range(figure(config, "depth"))]
        wide = size * self._merge**2
        self.merger = {
            "norm": nn.LayerNorm(size, eps=1e-6),
            "linear_fc1": nn.Linear(wide, wide),
            "linear_fc2": nn.Linear(wide, figure(config, "out_hidden_size")),
        }

    def __call__(self, pixels: NDArray[np.uint8]) -> mx.array:
        mean, deviation = self._colours
        values = np.asarray((pixels / 255 - mean) / deviation, np.float32)
        down, across, merge = pixels.shape[0] // self._patch, pixels.shape[1] // self._patch, self._merge
        order = np.arange(down * across).reshape(down // merge, merge, across // merge, merge)
        line, column = np.divmod(order.transpose(0, 2, 1, 3).reshape(-1), across)
        kind = self.merger["norm"].weight.dtype
        given = mx.array(patches(values, self._patch, merge, self._frames)).astype(kind)
        x = self.patch_embed["proj"](given) + self._places(line, column, down, across)
        turns = 1.0 / (10000.0 ** (np.arange(0, self._half, 2, dtype=np.float32) / self._half))
        angles = mx.array(
            np.concatenate([line[:, None] * turns, column[:, None] * turns], 1).astype(np.float32)
        )
        cos, sin = mx.cos(angles), mx.sin(angles)
        for block in self.blocks:
            x = block(x, cos, sin)
        x = self.merger["norm"](x).reshape(-1, x.shape[-1] * merge**2)
        found: mx.array = self.merger["linear_fc2"](nn.gelu(self.merger["linear_fc1"](x)))
        return found

    def _places(self, line: NDArray[Any], column: NDArray[Any], down: int, across: int) -> mx.array:
        """The learned positions of patches, between the points of their square grid."""
        side = self._side - 1
        at_line = np.linspace(0, side, down, dtype=np.float32)[line]
        at_column = np.linspace(0, side, across, dtype=np.float32)[column]
        found: Any = 0
        for row, by_row in _neighbours(at_line, side):
            for place, by_place in _neighbours(at_column, side):
                held = self.pos_embed(mx.array((row * self._side + place).astype(np.int32)))
                found = found + held * mx.array(by_row * by_place).astype(held.dtype)[:, None]
        return found  # type: ignore[no-any-return]


def _neighbours(at: NDArray[np.float32], last: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The points below and above `at`, and the share of each."""
    below = np.floor(at)
    return [(below, 1 - (at - below)), (np.minimum(below + 1, last), at - below)]
