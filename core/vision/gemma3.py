"""The eyes of Gemma 3: SigLIP over one square size, pooled to a constant number of rows.

Rows of an image attend to each other in both directions, in all layers; the text model scales them like
embeddings. Pan and scan, which adds crops of the image, is off, as in the published processors. Source:
transformers' `gemma3`; tested against mlx-vlm with transformers' masks.
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

from core.vision.family import (
    Family,
    Scaled,
    UnseenError,
    attended,
    colours,
    figure,
    rounded,
    working_bytes,
)

_ROWS = 256
_PREFIXES = ("vision_tower.vision_model.", "model.vision_tower.vision_model.", "vision_tower.")
_PROJECTOR = "multi_modal_projector."


def family(config: Mapping[str, Any], processor: Mapping[str, Any]) -> Family:
    """The family of a model with these configurations. Raises `UnseenError`."""
    vision, text = config["vision_config"], config["text_config"]
    side, patch = figure(vision, "image_size"), figure(vision, "patch_size")
    rows = figure(config, "mm_tokens_per_image", text.get("mm_tokens_per_image") or _ROWS)
    across = math.isqrt(rows)
    if across**2 != rows or side % patch or (side // patch) % across:
        raise UnseenError(f"{side} pixels in patches of {patch} cannot be pooled to {rows} rows")
    mean, deviation = colours(processor, (0.5, 0.5, 0.5))
    size = figure(text, "hidden_size")

    def scale(width: int, height: int) -> Scaled:
        return Scaled(side, side, across, across)

    return Family(
        "Gemma 3",
        "<start_of_image>",
        "\n\n<start_of_image><image_soft_token><end_of_image>\n\n",
        "<image_soft_token>",
        scale,
        "bilinear",
        lambda: Tower(vision, size, across, (mean, deviation)),
        weight,
        partial(working_bytes, vision),
        both_ways="all",
        # mlx-lm rounds it to bfloat16 first.
        embed_scale=lambda dtype: rounded(size**0.5, mx.bfloat16, dtype),
    )


def weight(name: str, value: mx.array) -> tuple[str, mx.array] | None:
    """The parameter of `Tower` that a checkpoint's tensor is."""
    if (at := name.find(_PROJECTOR)) in (0, len("model.")):
        return "projector." + name[at + len(_PROJECTOR) :], value
    prefix = next((each for each in _PREFIXES if name.startswith(each)), None)
    if prefix is None or ".head." in f".{name.removeprefix(prefix)}":
        return None
    name = name.removeprefix(prefix)
    if name == "embeddings.patch_embedding.weight" and value.ndim == 4:
        if value.shape[-1] != 3:  # PyTorch's convolutions have channels first
            value = value.transpose(0, 2, 3, 1)
        value = value.reshape(value.shape[0], -1)
    return name, value


class _Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, size: int, inner: int, heads: int, eps: float) -> None:
        super().__init__()
        self._heads = heads
        names = ("q_proj", "k_proj", "v_proj", "out_proj")
        self.self_attn = {name: nn.Linear(size, size) for name in names}
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(size, eps=eps), nn.LayerNorm(size, eps=eps)
        self.mlp = {"fc1": nn.Linear(size, inner), "fc2": nn.Linear(inner, size)}

    def __call__(self, x: mx.array) -> mx.array:
        rows, attn, given = x.shape[0], self.self_attn, self.layer_norm1(x)
        q, k, v = (
            attn[name](given).reshape(1, rows, self._heads, -1).swapaxes(1, 2)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        seen = attended(q, k, v, q.shape[-1] ** -0.5)
        x = x + attn["out_proj"](seen.swapaxes(1, 2).reshape(rows, -1))
        found: mx.array = x + self.mlp["fc2"](nn.gelu_approx(self.mlp["fc1"](self.layer_norm2(x))))
        return found


class _Projector(nn.Module):  # type: ignore[misc]
    """Pools lines and columns, and projects to the text model's size."""

    def __init__(self, size: int, to: int, across: int, eps: float) -> None:
        super().__init__()
        self._across, self._eps = across, eps
        self.mm_input_projection_weight = mx.zeros((size, to))
        self.mm_soft_emb_norm = {"weight": mx.zeros(size)}

    def __call__(self, x: mx.array) -> mx.array:
        side = math.isqrt(x.shape[0])
        each = side // self._across
        pooled = x.reshape(self._across, each, self._across, each, -1).mean(axis=(1, 3))
        weight = 1.0 + self.mm_soft_emb_norm["weight"]
        normed = mx.fast.rms_norm(pooled.reshape(self._across**2, -1), weight, self._eps)
        return normed @ self.mm_input_projection_weight


class Tower(nn.Module):  # type: ignore[misc]
    """Rows of one image. `across`: rows in a line; `colours`: mean and deviation."""

    def __init__(
        self,
        config: Mapping[str, Any],
        to: int,
        across: int,
        colours: tuple[NDArray[np.float32], NDArray[np.float32]],
    ) -> None:
        super().__init__()
        size, eps = figure(config, "hidden_size"), float(config.get("layer_norm_eps", 1e-6))
        self._patch, self._colours = figure(config, "patch_size"), colours
        places = (figure(config, "image_size") // self._patch) ** 2
        self.embeddings = {
            "patch_embedding": nn.Linear(3 * self._patch**2, size),
            "position_embedding": nn.Embedding(places, size),
        }
        inner, heads = figure(config, "intermediate_size"), figure(config, "num_attention_heads")
        layers = figure(config, "num_hidden_layers")
        self.encoder = {"layers": [_Layer(size, inner, heads, eps) for _ in range(layers)]}
        self.post_layernorm = nn.LayerNorm(size, eps=eps)
        self.projector = _Projector(size, to, across, eps)

    def __call__(self, pixels: NDArray[np.uint8]) -> mx.array:
        mean, deviation = self._colours
        values = np.asarray((pixels / 255 - mean) / deviation, np.float32)
        given = mx.array(flat_patches(values, self._patch)).astype(self.post_layernorm.weight.dtype)
        x = self.embeddings["patch_embedding"](given)
        x = x + self.embeddings["position_embedding"](mx.arange(x.shape[0]))
        for layer in self.encoder["layers"]:
            x = layer(x)
        found: mx.array = self.projector(self.post_layernorm(x))
        return found


def flat_patches(pixels: NDArray[np.float32], patch: int) -> NDArray[np.float32]:
    """float32 [patches, patch² · 3] of [height, width, 3], line by line, channels last."""
    down, across = pixels.shape[0] // patch, pixels.shape[1] // patch
    blocks = pixels.reshape(down, patch, across, patch, 3).transpose(0, 2, 1, 3, 4)
    return blocks.reshape(down * across, -1)
