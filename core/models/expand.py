"""Expanding quantised weights to float32, bit for bit what MLX's own dequantize and cast give.

MLX's CPU build does that in half precision, which x86 has no arithmetic for, and through copies of
every weight: four to five seconds for the starter model. Here each weight is written once, in pieces
that fit a processor's cache, by a few threads: `value = round(round(code · scale) + bias)`, where
`round` is to the precision of the scales. In float32 the product and the sum have bits enough that
rounding them again gives what half-precision arithmetic would have given.

Affine 4 and 8 bits with float16 or bfloat16 scales; whatever else a model has is left to MLX.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_unflatten
from numpy.typing import NDArray

_BITS = (4, 8)
# Lower bits of a float32 that the format of the scales does not have, and its greatest value.
_FORMATS = {mx.float16: (13, 65504.0), mx.bfloat16: (16, 3e38)}
# 256 KiB of results: they, the codes and the scratch stay in a core's own cache.
_PIECE_ELEMENTS = 1 << 16
_MOST_THREADS = 4


def expand(model: nn.Module) -> nn.Module:
    """Replace the quantised linear layers and embeddings of `model` that can be written here, in place.

    The new weights are there when this returns. Main thread: the others only fill in numbers.
    """
    quantised = nn.QuantizedLinear | nn.QuantizedEmbedding
    known = [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, quantised) and _is_known(module)
    ]
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), "expand") as threads:
        weights = _expanded_weights([module for _, module in known], threads)
        replaced = [(name, _plain(module, weight)) for (name, module), weight in zip(known, weights)]
    if replaced:
        model.update_modules(tree_unflatten(replaced))
    return model


def _expanded_weights(modules: Sequence[Any], threads: ThreadPoolExecutor) -> Iterator[mx.array]:
    """float32 `[rows, columns]` of each module's packed `weight[rows, columns · bits / 32]`, in order.

    Touching new memory for the first time takes half as long as writing the numbers: MLX's own thread
    does it for the next weight meanwhile.
    """
    columns = [module.weight.shape[1] * 32 // module.bits for module in modules]
    targets = [mx.zeros((module.weight.shape[0], width)) for module, width in zip(modules, columns)]
    for number, module in enumerate(modules):
        target = targets[number]
        grown = [np.array(each.astype(mx.float32)) for each in (module.scales, module.biases)]
        mx.eval(target, module.weight)
        mx.async_eval(*targets[number + 1 : number + 2])  # type: ignore[no-untyped-call]
        _write(target, module, grown, threads)
        yield target


def _write(
    target: mx.array, module: Any, grown: Sequence[NDArray[np.float32]], threads: ThreadPoolExecutor
) -> None:
    """All of `target`, with the module's scales and biases `grown` to float32."""
    values: NDArray[np.float32] = np.asarray(target, copy=False)
    codes: NDArray[np.uint8] = np.asarray(module.weight, copy=False).view(np.uint8)
    dropped = _FORMATS[module.scales.dtype][0]
    rows = max(1, _PIECE_ELEMENTS // target.shape[1])

    def fill(start: int) -> None:
        piece = slice(start, start + rows)
        _fill(values[piece], codes[piece], grown[0][piece], grown[1][piece], module.bits, dropped)

    for _ in threads.map(fill, range(0, len(values), rows)):
        pass


def _is_known(module: Any) -> bool:
    """Whether `_fill` gives what MLX would: the format, and no value that half precision has not."""
    scales, biases = module.scales, module.get("biases")
    if biases is None or module.bits not in _BITS or module.mode != "affine" or scales.ndim != 2:
        return False
    if scales.dtype not in _FORMATS or biases.dtype != scales.dtype or module.weight.dtype != mx.uint32:
        return False
    most = mx.abs(scales.astype(mx.float32)) * (2**module.bits - 1) + mx.abs(biases.astype(mx.float32))
    return bool(mx.max(most) < _FORMATS[scales.dtype][1])


def _plain(module: Any, weight: mx.array) -> nn.Module:
    plain: nn.Module
    if isinstance(module, nn.QuantizedEmbedding):
        plain = nn.Embedding(1, 1)
    else:
        plain = nn.Linear(1, 1, bias="bias" in module)
        if "bias" in module:
            plain.bias = module.bias
    plain.weight = weight
    return plain


def _fill(
    values: NDArray[np.float32],
    codes: NDArray[np.uint8],
    scales: NDArray[np.float32],
    biases: NDArray[np.float32],
    bits: int,
    dropped: int,
) -> None:
    """Write `values[rows, columns]` from packed `codes[rows, bytes]` and `scales`, `biases[rows, groups]`."""
    if bits == 4:  # the lower half of a byte is the earlier one
        np.bitwise_and(codes, 15, out=values[:, 0::2], casting="unsafe")
        np.right_shift(codes, 4, out=values[:, 1::2], casting="unsafe")
    else:
        values[:] = codes
    grouped = values.reshape(*scales.shape, -1)
    integers = values.view(np.uint32)
    scratch = np.empty_like(integers)
    grouped *= scales[:, :, None]
    _round(integers, scratch, dropped)
    grouped += biases[:, :, None]
    _round(integers, scratch, dropped)


def _round(integers: NDArray[np.uint32], scratch: NDArray[np.uint32], dropped: int) -> None:
    """Float32s, seen as integers, to the nearest with zeros in the `dropped` lowest bits; ties to even."""
    np.right_shift(integers, np.uint32(dropped), out=scratch)
    scratch &= np.uint32(1)
    scratch += np.uint32((1 << (dropped - 1)) - 1)
    integers += scratch
    integers &= np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
