"""ThreadChoice: how many threads a matrix product should use beside other programs.

Each product is cut into equal parts, one a thread, and all wait for the last. A thread that shares its
core with another program makes the others wait for that program's turns, so beside one busy program
two threads on two cores are slower than one.

What others use says when to try fewer threads; the times of decode steps say whether they are kept,
which only what is faster is. A try that was slower is made again later, each time after twice as long.
Where nothing is decoded (reading a prompt) what others use decides alone, as it does of the way back:
cores that nobody else uses are used again, whatever the noise of a few steps says.

Pure: loads and step times in, a number out. Knows no clock, no library and no model.
"""

from __future__ import annotations

import math
import statistics

# A core that is half taken is not ours; it is again when less than a third of it is.
_TAKEN = 0.5
_FREE = 0.3
# Steps at a new number of threads; the first may have been begun with the old one.
_TRIED_STEPS = 4
_LEAST_BEFORE = 2
# Loads to wait for before what was slower is tried again.
_FIRST_HOLD = 8
_LONGEST_HOLD = 128


class ThreadChoice:
    """Of `most` threads at most, on `cores` cores. `load` it and `step` it; `threads` is the answer."""

    def __init__(self, cores: int, most: int) -> None:
        self._cores = cores
        self._most = most
        self.threads = most
        self._others = 0.0
        self._wanted = most
        self._before: list[float] = []
        self._tried: list[float] = []
        self._tried_from = 0
        self._hold = 0
        self._next_hold = _FIRST_HOLD

    @property
    def others(self) -> float:
        """Cores that others used when it was last heard."""
        return self._others

    def begin(self) -> None:
        """Another answer begins: its steps are not compared with those before it."""
        self._tried_from, self._wanted = 0, self.threads

    def load(self, others: float) -> None:
        """Others kept `others` cores busy for a moment. Twice in a row is believed."""
        self._others = others
        wanted = self._fitting()
        if self._tried_from:
            if wanted <= self.threads:
                return
            self._tried_from = 0
        if self._hold:
            self._hold -= 1
            return
        if wanted == self.threads or wanted != self._wanted:
            self._wanted = wanted
            self._before = []
            return
        if wanted < self.threads and len(self._before) >= _LEAST_BEFORE:
            self._tried_from, self._tried = self.threads, []
        self.threads = wanted

    def step(self, plain_s: float) -> None:
        """A decode step was done, in a time that would be `plain_s` for one of width 1."""
        if not self._tried_from:
            if self._wanted != self.threads:
                self._before.append(plain_s)
            return
        self._tried.append(plain_s)
        if len(self._tried) < _TRIED_STEPS:
            return
        if statistics.median(self._tried[1:]) < statistics.median(self._before):
            self._next_hold = _FIRST_HOLD
        else:
            self.threads = self._wanted = self._tried_from
            self._hold = self._next_hold
            self._next_hold = min(2 * self._next_hold, _LONGEST_HOLD)
        self._tried_from = 0

    def _fitting(self) -> int:
        """As many threads as find a core each beside the others; as now if that is near enough."""
        others, now = self._others, self.threads
        if now + others > self._cores > others:
            # Too many for the cores: each gets a share, and others ask for more than they get.
            others *= now / (self._cores - others)
        room = self._cores - others
        if now - room >= _TAKEN:
            return max(1, math.floor(room + _TAKEN))
        return max(now, min(self._most, math.floor(room + _FREE)))
