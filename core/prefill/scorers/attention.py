"""Attention watched at its door: what the rows of a forward attend to, on stock models.

mlx-lm's models all send queries, keys and scale through `scaled_dot_product_attention`, by the
name their module imported it under. There the queries are what they are, after any norm, gate
and rotation, and without a rotation where a model has none; extracting them again from the
weights is where ports went wrong. While watched, that name leads past a `see` first.

Scores (the SpecPrefill paper): softmax over the prompt's keys, mean over 13 neighbouring tokens, largest over
layers, heads and the rows of one forward: mostly one word of a question finds its place, and a
mean over the others drowns it (notes/prefill.md). Grouped keys are never repeated; one key head's
scores are held at a time. Worker's main thread.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.base import scaled_dot_product_attention

from core.kv.mlx_lm_caches import kind_of

_DOOR = "scaled_dot_product_attention"
_SIGNATURE = inspect.signature(scaled_dot_product_attention)
_POOL = 13


class AttentionSeen:
    """One attention that is about to happen: `queries` [1, H, L, D], `keys` [1, K, N, D]."""

    def __init__(self, bound: inspect.BoundArguments) -> None:
        given = bound.arguments
        self.queries: mx.array = given["queries"]
        self.keys: Any = given["keys"]
        self.entry: Any = given["cache"]
        self.scale: float = given["scale"]
        self.mask: Any = given["mask"]


@contextmanager
def watched(model: nn.Module, see: Callable[[AttentionSeen], None]) -> Iterator[None]:
    """While open, `see` is shown every attention of `model`; afterwards all is as it was."""
    rooms = {sys.modules[type(part).__module__] for _, part in model.named_modules()}
    own = {room: vars(room)[_DOOR] for room in rooms if _DOOR in vars(room)}

    def door(passing: Callable[..., mx.array]) -> Callable[..., mx.array]:
        def through(*args: Any, **options: Any) -> mx.array:
            see(AttentionSeen(_SIGNATURE.bind(*args, **options)))
            return passing(*args, **options)

        return through

    try:
        for room, passing in own.items():
            setattr(room, _DOOR, door(passing))
        yield
    finally:
        for room, passing in own.items():
            setattr(room, _DOOR, passing)


class Attended:
    """The largest, over layers, heads and the chosen rows, of what is attended to; lazy.

    `rows` are indices into the forward's rows; `tokens` is the length that keys must have, so
    that layers which do not span the prompt are left out. With `prompt_tokens` only so many keys
    from the beginning count.
    """

    def __init__(self, rows: list[int], tokens: int, prompt_tokens: int | None = None) -> None:
        self._rows = mx.array(rows)
        self._tokens = tokens
        self._prompt_tokens = prompt_tokens or tokens
        self._largest: mx.array | None = None

    @property
    def result(self) -> mx.array | None:
        """float32 [prompt_tokens]; None if no layer spanned the prompt."""
        return None if self._largest is None else mx.max(self._largest, axis=0)

    def add(self, seen: AttentionSeen) -> None:
        """Take one layer into account."""
        keys = seen.keys
        # A window may still hold the whole of a short prompt, and yet not look at it.
        if (
            kind_of(seen.entry) == "window"
            or not isinstance(keys, mx.array)
            or keys.shape[-2] != self._tokens
        ):
            return
        rows, heads, groups = len(self._rows), seen.queries.shape[1], keys.shape[1]
        queries = mx.take(seen.queries[0], self._rows, axis=-2) * seen.scale
        queries = queries.reshape(groups, heads // groups * rows, -1)
        bias = self._bias(seen)
        for group in range(groups):
            logits = (queries[group] @ keys[0, group].T).astype(mx.float32)
            logits = logits.reshape(heads // groups, rows, -1)
            if bias is not None:
                own = slice(group * (heads // groups), (group + 1) * (heads // groups))
                logits = logits + (bias[own] if bias.ndim == 3 and bias.shape[0] > 1 else bias)
            weights = mx.softmax(logits[..., : self._prompt_tokens], axis=-1, precise=True)
            pooled = _pooled(weights).max(axis=0)
            self._largest = pooled if self._largest is None else mx.maximum(self._largest, pooled)

    def _bias(self, seen: AttentionSeen) -> mx.array | None:
        """The mask as float32 to be added: [rows, N], or [heads, rows, N] where heads differ."""
        width, mask = seen.queries.shape[-2], seen.mask
        if mask is None:
            return None
        if isinstance(mask, str):  # causal
            at = mx.arange(self._tokens - width, self._tokens)
            mask = at[:, None] >= mx.arange(self._tokens)[None]
        mask = mx.take(mask[0] if mask.ndim == 4 else mask, self._rows, axis=-2)
        return mx.where(mask, 0.0, -mx.inf) if mask.dtype == mx.bool_ else mask.astype(mx.float32)


def _pooled(weights: mx.array) -> mx.array:
    """Mean over `_POOL` neighbours along the last axis; beyond the ends there is nothing."""
    before = _POOL // 2
    edges = [(0, 0)] * (weights.ndim - 1)
    sums = mx.cumsum(mx.pad(weights, [*edges, (before + 1, before)]), axis=-1)
    return (sums[..., _POOL:] - sums[..., :-_POOL]) / _POOL
