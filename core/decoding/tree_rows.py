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
from core.kv.entries import columns_of, kind_of, window_columns
from core.kv.positioned import Positioned
from core.models.rope import Steps


class TreeRows(Steps):
    """The rows of one block.

    Raises `InternalError` if there is no lead or a node's parent does not come before it.
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
            # Node −1 is the last lead token, and that is the row before node 0.
            row, above = lead + node, lead + parent
            sees[row] = sees[above]
            sees[row, row] = True
            steps[row] = steps[above] + 1
        super().__init__(steps)
        self._sees = mx.array(sees)
        # Layers mostly share their columns and their window.
        self._masks: dict[tuple[int, int | None], mx.array] = {}

    def mask(self, entry: Any, window: int | None) -> mx.array:
        """bool [N, P + N] for `entry` as it is before the block is put in."""
        is_window = kind_of(entry) == "window"
        past = window_columns(entry) if is_window else columns_of(entry)
        if is_window:
            window = window or entry.max_size
        if (past, window) not in self._masks:
            self._masks[past, window] = self._new_mask(entry, past, window)
        return self._masks[past, window]

    def _new_mask(self, entry: Any, past: int, window: int | None) -> mx.array:
        sees: mx.array = mx.concatenate([mx.ones((self.size, past), dtype=mx.bool_), self._sees], axis=1)
        if window is None:
            return sees
        # The columns' positions, from the offset on. A window's own are without gaps.
        behind = np.arange(-past, 0, dtype=np.int32)
        if isinstance(entry, Positioned):
            behind = entry.columns.places(0, past) - np.int32(entry.offset)
        columns = mx.concatenate([mx.array(behind), self._steps])
        return mx.array(sees & (self._steps[:, None] - columns[None] < window))
