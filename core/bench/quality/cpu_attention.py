"""MLX's attention computed by NumPy on the CPU, for benches that read prompts for hours.

MLX's CPU build takes 20 ns per softmax element, nine tenths of the time of a long prefill; NumPy takes 1 ns.
Results are equal up to rounding. A bench of speed must not use it, and neither does the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

Attend = Callable[..., mx.array]
_ROWS = 64
# Attention is a small part of the time of shorter blocks.
_LEAST_ROWS = 16


@contextmanager
def cpu_attention() -> Iterator[None]:
    """Replace MLX's attention within the context if MLX computes on the CPU; on a GPU nothing changes."""
    own = mx.fast.scaled_dot_product_attention
    if mx.default_device() == mx.Device(mx.cpu):
        mx.fast.scaled_dot_product_attention = _replacement(own)
    try:
        yield
    finally:
        mx.fast.scaled_dot_product_attention = own


def _replacement(own: Attend) -> Attend:
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
        scaled = _as_numpy(q) * np.float32(scale)
        return mx.array(_attention(scaled, _as_numpy(k), _as_numpy(v), _visible(mask, q, k)))[None]

    return attend


def _is_flat(mask: mx.array) -> bool:
    """Whether it is one boolean mask for all heads."""
    return mask.dtype == mx.bool_ and mask.size == mask.shape[-1] * mask.shape[-2]


def _as_numpy(array: mx.array) -> NDArray[np.float32]:
    """[heads, tokens, width] of a batch of one sequence."""
    found: NDArray[np.float32] = np.asarray(mx.contiguous(array))[0]
    return found


def _visible(mask: mx.array | str | None, q: mx.array, k: mx.array) -> NDArray[np.bool_]:
    """bool [L, S]: which keys each query attends to."""
    rows, columns = q.shape[2], k.shape[2]
    if isinstance(mask, mx.array):
        return np.asarray(mx.contiguous(mask)).reshape(rows, columns)
    return np.tri(rows, columns, columns - rows if mask else columns, dtype=np.bool_)


def _attention(
    q: NDArray[np.float32],
    k: NDArray[np.float32],
    v: NDArray[np.float32],
    visible: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """float32 [Hq, L, D] of scaled q [Hq, L, D] and k, v [Hk, S, D].

    Computed in blocks of rows whose scores fit the CPU's cache, without the keys no row of a block attends
    to.
    """
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
