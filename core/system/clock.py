"""Clock: seconds in which this process ran. Neither sleep nor being stopped makes an answer slow.

The system's monotonic clock stands still while a Mac or a Linux machine sleeps, but not while only
this process does: stopped by a signal, frozen by the system, or blocked in a pipe that nobody
reads. So a thread ticks, and of the time between two ticks that are too far apart only as much is
counted as the processor worked for the process: nothing if it was stopped, all if it was busy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# How often somebody has to tick, and the longest gap that is taken for ordinary lateness.
TICK_S = 0.25
MOST_S = 0.5


class Clock:
    """Call it for seconds since some moment in the past; never goes back. Any thread may call and tick.

    Without ticks it counts as far as it can: `MOST_S`, and what the processor worked.
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
        """Nothing was missed until now, or it is forgotten."""
        with self._lock:
            counted_s = self()
            self._ticked = (self._wall_s(), self._worked_s(), counted_s)
