"""Family: how the models of one family see, without weights; and the ids of images' rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import shake_256
from typing import Any, Literal, NamedTuple, Protocol

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.documents.images import Filter
from core.events import FIRST_IMAGE_ROW, Image

# Incremented when a family processes pixels differently, so that rows of earlier versions are not reused.
_VERSION = 1
# Limit of the scores of one pass of attention, which MLX keeps in memory for most sizes of heads.
_SCORES_BYTES = 256 << 20
_IDS = (1 << 31) - FIRST_IMAGE_ROW


class Scaled(NamedTuple):
    """An image's size for a tower, in pixels, and its grid of rows: `down` lines of `across` rows."""

    height: int
    width: int
    down: int
    across: int

    @property
    def rows(self) -> int:
        return self.down * self.across


class Tower(Protocol):
    """A tower's parameters have the names that `Family.weight` gives them."""

    def __call__(self, pixels: NDArray[np.uint8]) -> mx.array:
        """Rows [rows, size] for the text model of an image uint8 [height, width, 3]."""


class Family(Struct, frozen=True):
    """How the models of one family process an image; made from a model's configuration.

    - `written`: the chat template's text for an image; it is replaced by `shown`, in which `token` is the
      placeholder of the image's rows.
    - `scale`: from width and height in pixels. `filter`: of the scaling.
    - `tower`: makes the tower. `weight`: a tensor of the checkpoint, by its name, as a parameter of the
      tower; None for tensors of other parts. `working`: bytes that the tower needs for an image.
    - `sections`: numbers of rotated pairs of dimensions by time, height and width, of models whose rows have
      positions in three axes (M-RoPE); empty for others. `interleaved`: the axes alternate.
    - `both_ways`: layers in which rows of one image attend to each other in both directions.
    - `row_id`: the id that the text model reads at rows, as for the inputs of each layer of Gemma 4.
    - `embed_scale`: by which the text model multiplies the embeddings that it is given.
    """

    name: str
    written: str
    shown: str
    token: str
    scale: Callable[[int, int], Scaled]
    filter: Filter
    tower: Callable[[], nn.Module]
    weight: Callable[[str, mx.array], tuple[str, mx.array] | None]
    working: Callable[[Scaled], int]
    sections: tuple[int, ...] = ()
    interleaved: bool = False
    both_ways: Literal["", "sliding", "all"] = ""
    row_id: int = 0
    embed_scale: Callable[[mx.Dtype], float] = lambda dtype: 1.0

    def rows_of(self, image: Image) -> list[int]:
        """The ids of the image's rows, from the hash of its pixels and of their processing."""
        scaled = self.scale(image.width, image.height)
        key = f"{_VERSION}:{self.name}:{scaled.width}x{scaled.height}:{self.filter}:{image.hash}"
        stream = shake_256(key.encode()).digest(4 * scaled.rows)
        found: list[int] = (FIRST_IMAGE_ROW + np.frombuffer(stream, "<u4") % _IDS).tolist()
        return found


class UnseenError(Exception):
    """A configuration that the family does not support; `str()` says why."""


def attended(q: mx.array, k: mx.array, v: mx.array, scale: float) -> mx.array:
    """Attention [1, heads, rows, size] of each row of an image to all, for as many rows at a time as bounds
    the scores.
    """
    rows, at_once = q.shape[2], max(1, _SCORES_BYTES // (4 * q.shape[1] * k.shape[2]))
    found = []
    for start in range(0, rows, at_once):
        block = q[:, :, start : start + at_once]
        found.append(mx.fast.scaled_dot_product_attention(block, k, v, scale=scale))
        if at_once < rows:
            mx.eval(found)  # else the scores of all blocks could be held together
    return found[0] if len(found) == 1 else mx.concatenate(found, axis=2)


def working_bytes(vision: Mapping[str, Any], scaled: Scaled) -> int:
    """Estimated bytes that a tower with the configuration `vision` needs for an image."""
    patches = scaled.width * scaled.height // figure(vision, "patch_size") ** 2
    a_patch = 12 * figure(vision, "hidden_size") + 3 * figure(vision, "intermediate_size")
    pixels = 3 * 3 * scaled.width * scaled.height
    heads = figure(vision, "num_heads", vision.get("num_attention_heads"))
    return 4 * (patches * a_patch + pixels) + 2 * min(_SCORES_BYTES, 4 * heads * patches**2)


def colours(
    processor: Mapping[str, Any], default: tuple[float, float, float]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and deviation, float32 [3], by which a processor normalises values from 0 to 1."""
    mean, deviation = (
        np.array(processor.get(key) or default, np.float32) for key in ("image_mean", "image_std")
    )
    if mean.shape != (3,) or deviation.shape != (3,) or not deviation.all():
        raise UnseenError("its processor's image_mean or image_std are not three numbers")
    return mean, deviation


def rounded(value: float, *kinds: mx.Dtype) -> float:
    """`value` after it was rounded to each of the dtypes `kinds`."""
    found = mx.array(value)
    for kind in kinds:
        found = found.astype(kind)
    return float(found.astype(mx.float32).item())  # type: ignore[arg-type]


def figure(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A positive integer of a configuration. Raises `UnseenError`."""
    value = config.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UnseenError(f"its vision_config gives {name} as {value!r}")
    return value
