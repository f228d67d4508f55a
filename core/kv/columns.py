"""Columns: which position of the context each column of a cache holds.

After a dense reading column and position are the same number. A sparse prefill leaves gaps:
the columns stay dense, the positions jump. Pure bookkeeping: knows no cache and no token.

Positions rise with columns; a run is a stretch in which both rise by one. Positions that were skipped may
be inserted later; what had been read behind them by then did not see them.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np


class Columns:
    """One per sequence; shared by its cache entries, which ask it where they stand."""

    def __init__(self) -> None:
        self.count = 0
        # Run i begins at column _firsts[i] with position _places[i]; the last one is open.
        self._firsts = [0]
        self._places = [0]
        self._whole: int | None = None

    @property
    def whole(self) -> int | None:
        """How many positions from 0 on a dense reading would hold alike; None: all of them.

        That is up to the first one that was skipped, even if it was inserted since.
        """
        return self._whole

    @property
    def next(self) -> int:
        """The position of the next column."""
        return self.position(self.count)

    def position(self, column: int) -> int:
        """The position that `column` holds or, past the last one, will hold."""
        run = len(self._firsts) - 1
        if column < self._firsts[run]:
            run = bisect_right(self._firsts, column) - 1
        return self._places[run] + column - self._firsts[run]

    def places(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """int32: the positions of columns `start` to `stop`, end-exclusive."""
        columns = np.arange(start, stop, dtype=np.int32)
        runs = np.searchsorted(self._firsts, columns, side="right") - 1
        shifts = np.asarray(self._places, dtype=np.int32) - np.asarray(self._firsts, dtype=np.int32)
        return columns + shifts[runs]

    def gaps(self) -> np.ndarray[Any, Any]:
        """int32, ascending: the positions before the next one that are not held."""
        every = np.arange(self.whole or 0, self.next, dtype=np.int32)
        return np.setdiff1d(every, self.places(0, self.count), assume_unique=True)

    def jump(self, position: int) -> None:
        """The next column holds `position`, which is not before its present one."""
        if self._whole is None and self._firsts and position > self.next:
            self._whole = self.next
        if self._firsts and self._firsts[-1] == self.count:
            self._firsts.pop()
            self._places.pop()
        if not self._firsts or self.next != position:
            self._firsts.append(self.count)
            self._places.append(position)

    def insert(self, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Hold `positions` (ascending, skipped so far) as well.

        Returns int32, the columns' new order: column i was the `order[i]`-th, where the inserted ones
        count as if they had been appended.
        """
        end = self.next
        places = np.append(self.places(0, self.count), positions)
        order = np.argsort(places, kind="stable").astype(np.int32)
        places = places[order]
        firsts = np.append(0, np.flatnonzero(np.diff(places) != 1) + 1)
        self._firsts, self._places = firsts.tolist(), places[firsts].tolist()
        self.count = len(places)
        self.jump(end)
        return order

    def extend(self, columns: int) -> None:
        """So many columns more, at the positions that follow."""
        self.count += columns

    def cut(self, position: int) -> None:
        """Forget all positions from `position` on; the next column holds it."""
        while self._places and self._places[-1] >= position:
            self.count = self._firsts.pop()
            self._places.pop()
        if self._places:
            self.count = min(self.count, self._firsts[-1] + position - self._places[-1])
        if self._whole is not None and position <= self._whole:
            self._whole = None
        self.jump(position)

    def fork(self, position: int) -> Columns:
        """A copy, cut at `position`."""
        other = Columns()
        other.count, other._firsts, other._places = self.count, self._firsts[:], self._places[:]
        other._whole = self._whole
        other.cut(position)
        return other
