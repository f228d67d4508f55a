"""tree_pass: one forward of a stock model verifies a tree, by two hooks that are taken off again.

A block is `lead` known tokens (a chain) and the tree's nodes after them; `tree_rows` says what
each of its rows may see and where it stands. While a pass is open, on the objects at hand and
nowhere else:

    mask       `make_mask` of every cache entry gives the tree's mask.
    positions  every rotary module's (x, offset) becomes one call of that module with the rows as
               its batch and their positions as its offsets. The offset is the caller's, layer by
               layer; frequencies, partial dimensions and dtypes stay the model's own, because
               every rotation that ports have computed by hand had a bug (FACTS).

Invariant: afterwards, also after an exception, model and cache are the objects they were, and
the cache holds the block's rows in block order: rolling back is `core.kv`'s business. The graph
is built inside the pass and may be computed later. That nothing else in a model goes by a
token's index in the block is for `tree_probe` to find out. Worker's main thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from core.decoding.tree_rows import TreeRows
from core.errors import InternalError
from core.kv.entries import kind_of, leaves


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


def why_no_tree_masks(cache: Sequence[Any]) -> str:
    """Why `cache` cannot give the mask of a tree, in words; empty if it can."""
    for entry in leaves(cache):
        kind = kind_of(entry)
        if kind == "recurrent":
            return "its recurrent state has one past, not one for each branch"
        if kind == "unknown":
            return f"its cache ({type(entry).__name__}) makes no mask that a tree could replace"
    return ""


@contextmanager
def tree_pass(
    model: nn.Module,
    cache: Sequence[Any],
    parents: Sequence[int],
    lead: int,
    found: Sequence[Rotation] | None = None,
) -> Iterator[TreeRows]:
    """While open, a forward over `lead` tokens and len(parents) nodes verifies a tree.

    `parents[i]` is a node before i, or −1 for the last of the lead tokens. `found` is what
    `rotations(model)` gave, to spare the walk through a large model. Raises `InternalError` if
    the tree is malformed, the cache has no tree masks, or the forward is of another width.
    """
    rows = TreeRows(parents, lead)
    if reason := why_no_tree_masks(cache):
        raise InternalError(f"A tree was to be verified, but {reason}.")
    # No nodes, no tree. One row alone would also take another path through the caches.
    found = [] if not parents else rotations(model) if found is None else found
    entries = [] if not parents else list({id(entry): entry for entry in leaves(cache)}.values())
    own_masks = [vars(entry).get("make_mask") for entry in entries]
    try:
        for rotation in found:
            rotation.owner[rotation.key] = _TreeRope(rotation.rope, rows)
        for entry in entries:
            entry.make_mask = _tree_mask(entry, rows)
        yield rows
    finally:
        for rotation in found:
            rotation.owner[rotation.key] = rotation.rope
        for entry, own in zip(entries, own_masks):
            if own is not None:
                entry.make_mask = own
            else:
                vars(entry).pop("make_mask", None)


class _TreeRope:
    """Stands in for `rope` while a pass is open."""

    def __init__(self, rope: Any, rows: TreeRows) -> None:
        self._rope = rope
        self._rows = rows

    def __call__(self, x: mx.array, offset: Any = 0, *rest: Any, **options: Any) -> mx.array:
        """`x` is [1, …, N, dims]; so is what is returned."""
        if x.shape[0] != 1 or x.shape[-2] != self._rows.size:
            raise InternalError(f"A tree of {self._rows.size} rows is open; {x.shape} was to be rotated.")
        self._rows.rotated += 1
        # mx.fast.rope takes one offset for each element of the batch, so rows and batch change places.
        turned = self._rope(x.swapaxes(0, -2), self._rows.positions(offset), *rest, **options)
        return mx.swapaxes(turned, 0, -2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rope, name)


def _tree_mask(entry: Any, rows: TreeRows) -> Callable[..., mx.array]:
    def make_mask(width: int, window_size: int | None = None, return_array: bool = True) -> mx.array:
        if width != rows.size:
            raise InternalError(f"A tree of {rows.size} rows is open; the forward has {width}.")
        return rows.mask(entry, window_size)

    return make_mask
