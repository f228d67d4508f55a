"""Clock: seconds in which this process ran, without sleep and suspension.

The system's monotonic clock pauses while the machine sleeps, but not while only this process is stopped: by a
signal, by App Nap, or in a write to a full pipe. A thread therefore ticks, and a long gap between two ticks
counts only as much as the processor time used in it: nothing if the process was stopped, all if it was busy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Interval of ticks, and the longest gap that counts in full.
TICK_S = 0.25
MOST_S = 0.5


class Clock:
    """A monotonic clock in seconds; call the instance to read it. Thread-safe.

    Without ticks a gap counts as `MOST_S` plus the processor time used.
    """

    def __init__(
        self,
        wall_s: Callable[[], float] = time.perf_counter,
        worked_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._wall_s = wall_s
        self._worked_s = worked_s
        self._lock = threading.Lock()
        self._ticked = (wall_s(), worked_s(), 0.0)

    def __call__(self) -> float:
        wall_s, worked_s, counted_s = self._ticked
        gap_s = self._wall_s() - wall_s
        if gap_s > MOST_S:
            gap_s = min(gap_s, MOST_S + self._worked_s() - worked_s)
        return counted_s + gap_s

    def tick(self) -> None:
        """Ends the current gap."""
        with self._lock:
            counted_s = self()
            self._ticked = (self._wall_s(), self._worked_s(), counted_s)
