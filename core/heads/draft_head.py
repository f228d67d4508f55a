"""DraftHead: a trained head of any kind that drafts for one model; and helpers shared by the loaders.

A head gets hidden states that the model computes anyway and guesses the next tokens. The kinds differ in the
states that they take, in whether they keep a cache of their own, and in their output layer. `core.decoding`
draws the guesses. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from msgspec import Struct

from core.kv.mlx_lm_caches import Cache
from core.models.loader import expand_for_cpu
from core.models.parts import SplitModel

Weights = dict[str, mx.array]
# Modes of quantised weights without biases, by bits and group size.
_MODES = {(4, 32): "mxfp4", (4, 16): "nvfp4", (8, 32): "mxfp8"}


def unchanged(states: mx.array) -> mx.array:
    return states


class DraftHead(Struct, frozen=True):
    """A loaded head of the model with the parts `parts`.

    - `layers`: the model's layers, from 0, whose outputs the head takes, joined; empty: the state after the
      final norm. `fuse(states)`: the fused states, [1, n, width].
    - `step(ids, states, cache)`: reads tokens `ids` [1, n] with the fused `states` before them. Returns its
      hidden states, and those that take the place of the model's for guesses after a guess.
    - `output(hidden)`: logits [1, n, k] and the ids of their columns, [k]; None: all ids in order.
    - `new_cache`: makes the cache to which `step` appends its rows. None: `step` gets the model's, unchanged.
    - `block(ids, states, cache, count)`: for heads that guess up to `block_tokens` at once, `count` rows of
      logits as of `output`, after the row of the one token `ids` was appended.
    - `source`: its file or folder.
    """

    module: nn.Module
    parts: SplitModel
    step: Callable[[mx.array, mx.array, Sequence[Any]], tuple[mx.array, mx.array]]
    output: Callable[[mx.array], tuple[mx.array, mx.array | None]]
    new_cache: Callable[[], Cache] | None = None
    layers: tuple[int, ...] = ()
    fuse: Callable[[mx.array], mx.array] = unchanged
    block: Callable[[mx.array, mx.array, Sequence[Any], int], mx.array] | None = None
    block_tokens: int = 0
    source: str = ""


def filled(head: Any, weights: Weights) -> Any:
    """`head` with `weights`, of which there must be one for each parameter, quantised where they are.

    On MLX's CPU build in float32. Raises `ValueError`.
    """
    _quantise(head, weights)
    head.load_weights(list(weights.items()), strict=True)
    head.eval()
    return expand_for_cpu(head) if mx.default_device() == mx.cpu else head


def rope_settings(config: dict[str, Any]) -> dict[str, Any]:
    """The rotary settings of `config` in the names of mlx-lm's older types."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    base = given.get("rope_theta") or config.get("rope_theta") or 10000.0
    return {"rope_theta": float(base), "rope_scaling": given or None}


def why_unsound(head: nn.Module) -> str:
    """Evaluates the weights. Returns why they cannot be used, as a phrase; empty if they can."""
    mx.eval(head.parameters())
    for _, value in tree_flatten(head.parameters()):
        if mx.issubdtype(value.dtype, mx.floating) and not mx.isfinite(value).all().item():
            return "contains NaN or infinity"
    return ""


def _quantise(head: nn.Module, weights: Weights) -> None:
    """Replaces the modules of `head` that have scales; their form follows from shapes and biases."""

    def form(path: str, module: Any) -> bool | dict[str, Any]:
        scales = weights.get(f"{path}.scales")
        if scales is None or not hasattr(module, "to_quantized"):
            return False
        if not scales.size:
            raise ValueError(f"“{path}.scales” is empty")
        columns = int(module.weight.shape[-1])
        group = columns // int(scales.shape[-1])
        bits = int(weights[f"{path}.weight"].shape[-1]) * 32 // columns
        mode = "affine" if f"{path}.biases" in weights else _MODES.get((bits, group))
        if mode is None:
            raise ValueError(f"{bits} bits in groups of {group} without biases are not supported")
        return {"group_size": group, "bits": bits, "mode": mode}

    nn.quantize(head, class_predicate=form)
