"""CpuAttention: MLX's attention worked out by NumPy, for benches that read for hours on a processor.

MLX's CPU build takes 20 ns for each element of a softmax, which is nine tenths of reading a long
document; NumPy's exponential takes one. The values are the same up to rounding. Only for benches
that ask what is read; one that asks how fast must not use it, and the product never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np

Attend = Callable[..., mx.array]
_ROWS = 64
# A short block spends its time elsewhere.
_LEAST_ROWS = 16


@contextmanager
def cpu_attention() -> Iterator[None]:
    """Until the block ends, if MLX computes on the processor; on a GPU nothing changes."""
    own = mx.fast.scaled_dot_product_attention
    if mx.default_device() == mx.Device(mx.cpu):
        mx.fast.scaled_dot_product_attention = _instead_of(own)
    try:
        yield
    finally:
        mx.fast.scaled_dot_product_attention = own


def _instead_of(own: Attend) -> Attend:
    def attend(
        q: mx.array,
        k: mx.array,
        v: mx.array,
        *,
        scale: float,
        mask: mx.array | str | None = None,
        sinks: mx.array | None = None,
        **more: Any,
    ) -> mx.array:
        plain = q.dtype == k.dtype == v.dtype == mx.float32 and sinks is None and not more
        masked = mask is None or mask == "causal" if not isinstance(mask, mx.array) else _is_flat(mask)
        if not plain or not masked or len(q) != 1 or q.shape[2] < _LEAST_ROWS:
            return own(q, k, v, scale=scale, mask=mask, sinks=sinks, **more)
        return mx.array(_attention(_seen(q) * np.float32(scale), _seen(k), _seen(v), _visible(mask, q, k)))[
            None
        ]

    return attend


def _is_flat(mask: mx.array) -> bool:
    """One mask for all heads."""
    return mask.dtype == mx.bool_ and mask.size == mask.shape[-1] * mask.shape[-2]


def _seen(array: mx.array) -> np.ndarray[Any, Any]:
    """[heads, tokens, width] of an array with one sequence."""
    found: np.ndarray[Any, Any] = np.asarray(mx.contiguous(array))[0]
    return found


def _visible(mask: mx.array | str | None, q: mx.array, k: mx.array) -> np.ndarray[Any, Any]:
    """bool [L, S]: which keys each query sees."""
    rows, columns = q.shape[2], k.shape[2]
    if isinstance(mask, mx.array):
        return np.asarray(mx.contiguous(mask)).reshape(rows, columns)
    return np.tri(rows, columns, columns - rows if mask else columns, dtype=np.bool_)


def _attention(
    q: np.ndarray[Any, Any],
    k: np.ndarray[Any, Any],
    v: np.ndarray[Any, Any],
    visible: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """float32 [Hq, L, D] of q [Hq, L, D], already scaled, and k, v [Hk, S, D]; in blocks of rows, so that
    the scores of one fit the processor's cache, and without the columns that no row of it sees."""
    heads, rows, _ = q.shape
    shared = heads // len(k)
    out = np.empty((heads, rows, v.shape[2]), dtype=np.float32)
    for first in range(0, rows, _ROWS):
        block = slice(first, min(first + _ROWS, rows))
        seen = visible[block]
        end = int(np.flatnonzero(seen.any(axis=0))[-1]) + 1
        hidden = ~seen[:, :end]
        for group in range(len(k)):
            own = slice(group * shared, (group + 1) * shared)
            scores = q[own, block] @ k[group, :end].T
            scores[:, hidden] = -np.inf
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            out[own, block] = scores @ v[group, :end] / scores.sum(axis=-1, keepdims=True)
    return out
