"""TreeRows: what each row of a verify block sees, and where it stands.

A block is `lead` known tokens (a chain) and the nodes of a tree after them, in one forward of N
rows over P cached columns:

    step of row i   i in the lead, lead − 1 + depth in the tree; its position is offset + step.
    mask            bool [N, P + N]. A row sees the cached past, the lead up to itself, its
                    ancestors and itself; inside a window of W only what is less than W
                    positions before its own.

Nodes at different indices can have the same position; a plain forward would tell them apart by
index. Knows cache entries only as far as counting their columns. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from core.errors import InternalError
from core.kv.entries import kind_of


class TreeRows:
    """The rows of one block. `rotated` counts the calls of rotary modules in the pass.

    Raises `InternalError` if there is no lead or a node's parent does not come before it.
    """

    def __init__(self, parents: Sequence[int], lead: int) -> None:
        if lead < 1:
            raise InternalError(f"A block has at least one lead token, not {lead}.")
        self.size = lead + len(parents)
        self.rotated = 0
        sees = np.tri(self.size, dtype=np.bool_)
        steps = np.arange(self.size, dtype=np.int32)
        for node, parent in enumerate(parents):
            if not -1 <= parent < node:
                raise InternalError(f"Node {node} of a tree has parent {parent}, which is not before it.")
            # Node −1 is the last lead token, and that is the row before node 0.
            row, above = lead + node, lead + parent
            sees[row] = sees[above]
            sees[row, row] = True
            steps[row] = steps[above] + 1
        self._sees = mx.array(sees)
        self._steps = mx.array(steps)
        # Layers mostly share their offset and their window.
        self._positions: dict[int, mx.array] = {}
        self._masks: dict[tuple[int, int | None], mx.array] = {}

    def positions(self, offset: Any) -> mx.array:
        """int32 [N]. `offset` is a number or, as some models pass it, an array of one."""
        if not isinstance(offset, int):
            return mx.array(self._steps + offset)
        if offset not in self._positions:
            self._positions[offset] = self._steps + offset
        return self._positions[offset]

    def mask(self, entry: Any, window: int | None) -> mx.array:
        """bool [N, P + N] for `entry` as it is before the block is put in."""
        past = int(entry.offset)
        if kind_of(entry) == "window":
            window = window or entry.max_size
            past = _window_columns(entry)
        if (past, window) not in self._masks:
            self._masks[past, window] = self._new_mask(past, window)
        return self._masks[past, window]

    def _new_mask(self, past: int, window: int | None) -> mx.array:
        sees: mx.array = mx.concatenate([mx.ones((self.size, past), dtype=mx.bool_), self._sees], axis=1)
        if window is None:
            return sees
        # Column c of the past is `past` − c positions before the offset, whatever the offset is.
        columns = mx.concatenate([mx.arange(-past, 0, dtype=mx.int32), self._steps])
        return mx.array(sees & (self._steps[:, None] - columns[None] < window))


def _window_columns(entry: Any) -> int:
    """Columns of its past that a `RotatingKVCache` puts before a block of two or more rows."""
    if entry.keys is None:
        return 0
    # As its _temporal_order: all columns if they are full or have wrapped, else those written.
    held = int(entry.keys.shape[2])
    if entry._idx >= entry.offset:
        held = min(held, int(entry._idx))
    return min(held, int(entry.max_size) - 1)
