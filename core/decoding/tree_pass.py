"""tree_pass: one forward of a stock model verifies a tree, by two hooks that are taken off again.

A block is `lead` known tokens (a chain) and the tree's nodes after them; `tree_rows` says what
each of its rows may see and where it stands. While a pass is open, on the objects at hand and
nowhere else:

    mask       `make_mask` of every cache entry gives the tree's mask.
    positions  every rotary module turns each row to its own position (`core.models.rope`).

Invariant: afterwards, also after an exception, model and cache are the objects they were, and
the cache holds the block's rows in block order: rolling back is `core.kv`'s business. The graph
is built inside the pass and may be computed later. That nothing else in a model goes by a
token's index in the block is for `tree_probe` to find out. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from core.decoding.tree_rows import TreeRows
from core.errors import InternalError
from core.kv.entries import kind_of, leaves
from core.kv.masks import masked
from core.kv.told import ToldCache, Tree
from core.models.rope import Rotation, rotations, standing


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
    if parents and isinstance(cache, ToldCache):
        cache.tell(Tree(tuple(parents), lead))
    masks = [] if not parents else [(entry, _tree_mask(entry, rows)) for entry in leaves(cache)]
    with standing(found, rows), masked(masks):
        yield rows


def _tree_mask(entry: Any, rows: TreeRows) -> Callable[..., mx.array]:
    def make_mask(width: int, window_size: int | None = None, return_array: bool = True) -> mx.array:
        if width != rows.size:
            raise InternalError(f"A tree of {rows.size} rows is open; the forward has {width}.")
        return rows.mask(entry, window_size)

    return make_mask
