"""Trees in one forward pass of an unmodified model: row masks and positions, applied by two temporary hooks.

While a `tree_pass` is open, on the given objects only:

    mask       `make_mask` of every cache entry returns the tree's mask.
    positions  every rotary module rotates each row to its own position (`core.models.parts`).

Invariant: afterwards, also after an exception, model and cache are the objects they were, and the cache holds
the block's rows in block order; rolling back is up to `core.kv`. The graph is built inside the pass and may
be evaluated later. `core.machine.trials` tests that nothing else in a model depends on a token's index in the
block. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from core.errors import InternalError
from core.kv.mirrored import MirroredCache, TreeBegun
from core.kv.mlx_lm_caches import (
    CacheEntry,
    columns_of,
    is_appending,
    is_window,
    kind_of,
    leaves,
    masked,
    window_columns,
)
from core.kv.positions import Positioned
from core.models.parts import Rotation, Steps, rotations, row_positions


class TreeRows(Steps):
    """Mask and positions of the rows of one verify block.

    A block is `lead` known tokens (a chain) and the nodes of a tree after them, in one forward pass of N rows
    over P cached columns:

        step of row i   i in the lead, lead − 1 + depth in the tree; its position is offset + step.
        mask            bool [N, P + N]. A row sees the cached past, the lead up to itself, its ancestors and
                        itself; with a sliding window of W, only positions less than W before its own.

    Nodes at different indices can have the same position. Raises `InternalError` if `lead` is 0 or a
    node's parent does not precede it.
    """

    def __init__(self, parents: Sequence[int], lead: int) -> None:
        if lead < 1:
            raise InternalError(f"A block has at least one lead token, not {lead}.")
        size = lead + len(parents)
        sees = np.tri(size, dtype=np.bool_)
        steps = np.arange(size, dtype=np.int32)
        for node, parent in enumerate(parents):
            if not -1 <= parent < node:
                raise InternalError(f"Node {node} of a tree has parent {parent}, which is not before it.")
            # Node −1 is the last lead token: the row before node 0.
            row, above = lead + node, lead + parent
            sees[row] = sees[above]
            sees[row, row] = True
            steps[row] = steps[above] + 1
        super().__init__(steps)
        self._sees = mx.array(sees)
        # Most layers share their columns and their window.
        self._masks: dict[tuple[int, int | None], mx.array] = {}

    def mask(self, entry: CacheEntry, window: int | None) -> mx.array:
        """bool [N, P + N] for `entry` as it is before the block is appended."""
        if is_window(entry):
            past, window = window_columns(entry), window or entry.max_size
        else:
            assert is_appending(entry)
            past = columns_of(entry)
        if (past, window) not in self._masks:
            self._masks[past, window] = self._new_mask(entry, past, window)
        return self._masks[past, window]

    def _new_mask(self, entry: Any, past: int, window: int | None) -> mx.array:
        sees: mx.array = mx.concatenate([mx.ones((self.size, past), dtype=mx.bool_), self._sees], axis=1)
        if window is None:
            return sees
        # The columns' positions relative to the offset. A window's own have no gaps.
        behind = np.arange(-past, 0, dtype=np.int32)
        if isinstance(entry, Positioned):
            behind = entry.columns.places(0, past) - np.int32(entry.offset)
        columns = mx.concatenate([mx.array(behind), self._steps])
        return mx.array(sees & (self._steps[:, None] - columns[None] < window))


def why_no_tree_masks(cache: Sequence[CacheEntry]) -> str:
    """Why `cache` does not support tree masks; empty if it does."""
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
    cache: Sequence[CacheEntry],
    parents: Sequence[int],
    lead: int,
    found: Sequence[Rotation] | None = None,
) -> Iterator[TreeRows]:
    """While open, a forward pass over `lead` tokens and len(parents) nodes verifies a tree.

    `parents[i]` is a node before i, or −1 for the last lead token. `found` is the result of
    `rotations(model)`, to avoid a traversal of a large model. Raises `InternalError` if the tree is
    malformed, the cache does not support tree masks, or the forward pass has another width.
    """
    rows = TreeRows(parents, lead)
    if reason := why_no_tree_masks(cache):
        raise InternalError(f"The tree cannot be verified: {reason}.")
    # A single row is not a tree, and the caches handle it differently.
    found = [] if not parents else rotations(model) if found is None else found
    if parents and isinstance(cache, MirroredCache):
        cache.mirror(TreeBegun(tuple(parents), lead))
    masks = [] if not parents else [(entry, _tree_mask(entry, rows)) for entry in leaves(cache)]
    with row_positions(found, rows), masked(masks):
        yield rows


def _tree_mask(entry: CacheEntry, rows: TreeRows) -> Callable[..., mx.array]:
    def make_mask(width: int, window_size: int | None = None, return_array: bool = True) -> mx.array:
        if width != rows.size:
            raise InternalError(f"A tree of {rows.size} rows is open; the forward has {width}.")
        return rows.mask(entry, window_size)

    return make_mask
