"""Positioned: an appending cache entry whose columns hold positions with gaps between them.

Models ask an entry three things: where the next token stands (`offset`), what it may see
(`make_mask`), and to take new keys and values. In mlx-lm's entries the first is the number of
columns. Here it is the position that `Columns` gives, so rotary modules and scales by position
are right without touching the model; everything else stays the stock entry's, full precision
or quantised.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from core.kv.columns import Columns


class Positioned:
    """`entry` at the positions of `columns`. Worker's main thread."""

    def __init__(self, entry: Any, columns: Columns) -> None:
        self.entry = entry
        self.columns = columns

    @property
    def offset(self) -> int:
        """The position of the next token."""
        return self.columns.position(self.entry.offset)

    def make_mask(self, width: int, window_size: int | None = None, return_array: bool = False) -> Any:
        """Like the entry's own; a window counts positions, not columns."""
        if window_size is None:
            return self.entry.make_mask(width, window_size=None, return_array=return_array)
        rows = self.offset + np.arange(width)
        return window_mask(rows, np.append(self.columns.places(0, self.entry.offset), rows), window_size)

    def __setattr__(self, name: str, value: Any) -> None:
        """Models that run as a pipeline write the keys of an entry themselves."""
        if name in ("entry", "columns", "make_mask"):
            super().__setattr__(name, value)
        else:
            setattr(self.entry, name, value)

    def __getattr__(self, name: str) -> Any:
        if name == "entry":  # while it is being copied
            raise AttributeError(name)
        return getattr(self.entry, name)


def window_mask(rows: np.ndarray[Any, Any], columns: np.ndarray[Any, Any], window: int | None) -> mx.array:
    """bool [rows, columns], from their positions: a row sees what is at most window − 1 before it."""
    behind = mx.array(rows.astype(np.int32))[:, None] - mx.array(columns.astype(np.int32))[None]
    seen = behind >= 0
    return seen if window is None else mx.array(seen & (behind < window))
