"""Rope: a model's rotary modules, and a pass in which every row stands where it is told.

mx.fast.rope takes one offset for each element of the batch, so a row gets a position of its own
by changing places with the batch for the length of one call. The call is always the model's own
module's: frequencies, partial dimensions and dtypes stay its own, because every rotation that
ports have computed by hand had a bug. Used for trees and for prompts with gaps.

Invariant: after a pass, also after an exception, the model holds the objects it held. Worker's
main thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from core.errors import InternalError


@dataclass(frozen=True)
class Rotation:
    """`owner[key]` is `rope`, a module that is called with (x, offset)."""

    owner: Any
    key: str
    rope: Any


def rotations(model: nn.Module) -> list[Rotation]:
    """Every rotary module of `model`. Known by its call: names differ, and an nn.RoPE is falsy."""
    found: list[Rotation] = []
    rotates: dict[type, bool] = {}
    for _, owner in model.named_modules():
        for key, value in owner.items():
            if not isinstance(value, nn.Module):
                continue
            kind = type(value)
            if kind not in rotates:
                rotates[kind] = list(inspect.signature(kind.__call__).parameters)[2:3] == ["offset"]
            if rotates[kind]:
                found.append(Rotation(owner, key, value))
    return found


class Steps:
    """Row i of a forward stands `steps[i]` (int32) positions after the offset that a layer gives.

    `rotated` counts the calls of rotary modules in the pass.
    """

    def __init__(self, steps: np.ndarray[Any, Any]) -> None:
        self.size = len(steps)
        self.rotated = 0
        self._steps = mx.array(steps.astype(np.int32))
        # Layers mostly share their offset.
        self._positions: dict[int, mx.array] = {}

    def positions(self, offset: Any) -> mx.array:
        """int32 [size]. `offset` is a number or, as some models pass it, an array of one."""
        if not isinstance(offset, int):
            return mx.array(self._steps + offset)
        if offset not in self._positions:
            self._positions[offset] = self._steps + offset
        return self._positions[offset]


@contextmanager
def standing(found: Sequence[Rotation], steps: Steps) -> Iterator[None]:
    """While open, forwards have `steps.size` rows, and each is rotated to its own position."""
    try:
        for rotation in found:
            rotation.owner[rotation.key] = _Placed(rotation.rope, steps)
        yield
    finally:
        for rotation in found:
            rotation.owner[rotation.key] = rotation.rope


class _Placed:
    """Stands in for `rope` while a pass is open."""

    def __init__(self, rope: Any, steps: Steps) -> None:
        self._rope = rope
        self._steps = steps

    def __call__(self, x: mx.array, offset: Any = 0, *rest: Any, **options: Any) -> mx.array:
        """`x` is [1, …, N, dims]; so is what is returned."""
        if x.shape[0] != 1 or x.shape[-2] != self._steps.size:
            raise InternalError(f"A pass of {self._steps.size} rows is open; {x.shape} was to be rotated.")
        self._steps.rotated += 1
        turned = self._rope(x.swapaxes(0, -2), self._steps.positions(offset), *rest, **options)
        return mx.swapaxes(turned, 0, -2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rope, name)
