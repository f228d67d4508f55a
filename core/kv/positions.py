"""Positions of cache columns, with gaps after a sparse prefill.

After a dense prefill a column's position is its number. A sparse prefill leaves gaps: columns stay
contiguous, positions in the sequence's tokens jump. `Columns` keeps them. `Positioned` gives them to a model
through a cache entry: for columns that were selected from a dense cache (`CachedSequence.selected`), and for
trials at late positions of a context (`core.machine.trials`).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray


class Columns:
    """Positions of a sequence's columns; shared by its cache entries. Pure bookkeeping.

    Positions increase with columns; in a run both increase by one.
    """

    def __init__(self) -> None:
        self.count = 0
        # Run i begins at column _firsts[i] with position _places[i]; the last run is open.
        self._firsts = [0]
        self._places = [0]
        self._whole: int | None = None

    @property
    def whole(self) -> int | None:
        """Number of positions from 0 that equal a dense prefill; None: all.

        They end at the first position that was skipped.
        """
        return self._whole

    @property
    def next(self) -> int:
        return self.position(self.count)

    def position(self, column: int) -> int:
        """The position of `column`, which may be past the last one."""
        run = len(self._firsts) - 1
        if column < self._firsts[run]:
            run = bisect_right(self._firsts, column) - 1
        return self._places[run] + column - self._firsts[run]

    def places(self, start: int, stop: int) -> NDArray[np.int32]:
        """int32: the positions of columns `start` to `stop`, end-exclusive."""
        columns = np.arange(start, stop, dtype=np.int32)
        runs = np.searchsorted(self._firsts, columns, side="right") - 1
        shifts = np.asarray(self._places, dtype=np.int32) - np.asarray(self._firsts, dtype=np.int32)
        return columns + shifts[runs]

    def gaps(self) -> NDArray[np.int32]:
        """int32, ascending: the skipped positions before `next`."""
        every = np.arange(self.whole or 0, self.next, dtype=np.int32)
        return np.setdiff1d(every, self.places(0, self.count), assume_unique=True)

    def jump(self, position: int) -> None:
        """Sets the position of the next column, at or after `next`."""
        if self._whole is None and self._firsts and position > self.next:
            self._whole = self.next
        if self._firsts and self._firsts[-1] == self.count:
            self._firsts.pop()
            self._places.pop()
        if not self._firsts or self.next != position:
            self._firsts.append(self.count)
            self._places.append(position)

    def extend(self, columns: int) -> None:
        """Adds `columns` columns at the positions that follow."""
        self.count += columns

    def cut(self, position: int) -> None:
        """Removes all positions from `position` on, which becomes the position of the next column."""
        while self._places and self._places[-1] >= position:
            self.count = self._firsts.pop()
            self._places.pop()
        if self._places:
            self.count = min(self.count, self._firsts[-1] + position - self._places[-1])
        if self._whole is not None and position <= self._whole:
            self._whole = None
        self.jump(position)

    def runs(self) -> np.ndarray[Any, Any]:
        """int32 [2, runs]: the first column of each run of consecutive positions, and its position."""
        return np.array([self._firsts, self._places], dtype=np.int32)

    @classmethod
    def at(cls, positions: NDArray[np.int32]) -> Columns:
        """One column at each of `positions`, which ascend."""
        columns = cls()
        for run in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1):
            columns.jump(int(run[0]))
            columns.extend(len(run))
        return columns

    @classmethod
    def of_runs(cls, runs: np.ndarray[Any, Any], count: int) -> Columns:
        """The columns with these `runs` and `count`. Raises `ValueError` if they contradict each other."""
        columns = cls()
        ends = [*runs[0, 1:].tolist(), count]
        for first, place, end in zip(runs[0].tolist(), runs[1].tolist(), ends):
            if first != columns.count or place < columns.next or end < first:
                raise ValueError("the runs of positions contradict each other")
            columns.jump(place)
            columns.extend(end - first)
        if not np.array_equal(columns.runs(), runs):
            raise ValueError("the runs of positions contradict each other")
        return columns

    def fork(self, position: int) -> Columns:
        other = Columns()
        other.count, other._firsts, other._places = self.count, self._firsts[:], self._places[:]
        other._whole = self._whole
        other.cut(position)
        return other


class Positioned:
    """`entry`, an appending cache entry of mlx-lm, with the positions of `columns`. Worker's main thread.

    Models read an entry's `offset`, its mask, and its keys and values. In mlx-lm `offset` is the number of
    columns; here it is a position, so rotary modules and scales by position are correct in an unmodified
    model. Everything else is forwarded to `entry`, quantised or not.
    """

    def __init__(self, entry: Any, columns: Columns) -> None:
        self.entry = entry
        self.columns = columns

    @property
    def offset(self) -> int:
        """The position of the next token."""
        return self.columns.position(self.entry.offset)

    def make_mask(self, width: int, window_size: int | None = None, return_array: bool = False) -> Any:
        """The entry's mask; a window counts positions instead of columns."""
        if window_size is None:
            return self.entry.make_mask(width, window_size=None, return_array=return_array)
        rows = np.arange(self.offset, self.offset + width, dtype=np.int32)
        columns = np.append(self.columns.places(0, self.entry.offset), rows)
        behind = mx.array(rows)[:, None] - mx.array(columns)[None]
        return (behind >= 0) & (behind < window_size)

    def __setattr__(self, name: str, value: Any) -> None:
        # Pipelined models assign to an entry's keys.
        if name in ("entry", "columns", "make_mask"):
            super().__setattr__(name, value)
        else:
            setattr(self.entry, name, value)

    def __getattr__(self, name: str) -> Any:
        if name == "entry":  # during copying
            raise AttributeError(name)
        return getattr(self.entry, name)
