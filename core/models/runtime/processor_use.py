"""ProcessorUse: how many cores' worth of time other programs take from this process.

Read from the kernel's own counts, of the cores this process may run on. Programs of lower priority
than this one are left out: they give way. What a hypervisor takes counts, as whoever takes it. Linux
only; elsewhere nothing is known. Knows no BLAS.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

_STAT = Path("/proc/stat")
# Columns of a `cpu` line: user, nice, system, idle, iowait, irq, softirq, steal.
_BUSY = (0, 2, 5, 6, 7)
_NICE = 1


class ProcessorSample(Struct, frozen=True):
    """Seconds: of `time.monotonic`, and those that all cores and this process worked until then."""

    wall_s: float
    busy_s: float
    own_s: float


class ProcessorUse:
    """`others()` from time to time."""

    def __init__(self, read: Callable[[], ProcessorSample | None] | None = None) -> None:
        self._read = read or read_use
        self._last = self._read()

    @property
    def age_s(self) -> float:
        """Seconds since the last reading; 0 if there is none."""
        return time.monotonic() - self._last.wall_s if self._last else 0.0

    def others(self) -> float | None:
        """Cores that others kept busy since it was last asked; None where that cannot be known."""
        last, now = self._last, self._read()
        self._last = now
        if last is None or now is None or now.wall_s <= last.wall_s:
            return None
        own_s = now.own_s - last.own_s
        return max(0.0, (now.busy_s - last.busy_s - own_s) / (now.wall_s - last.wall_s))


def usable_cores() -> int:
    """Number of cores that this process may run on."""
    return len(_usable_core_numbers()) or os.cpu_count() or 1


def _usable_core_numbers() -> set[int]:
    """Cores that this process may run on; empty where the system has no such restriction."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return affinity(0) if affinity else set()


def read_use() -> ProcessorSample | None:
    """Current counts; None on systems without /proc/stat."""
    try:
        lines = _STAT.read_text().splitlines()
    except OSError:
        return None
    busy_s = busy_ticks(lines, _usable_core_numbers(), counts_nice=os.nice(0) > 0)
    return ProcessorSample(time.monotonic(), busy_s / os.sysconf("SC_CLK_TCK"), time.process_time())


def busy_ticks(lines: list[str], cores: set[int], *, counts_nice: bool) -> int:
    """Ticks that those cores worked, by the lines of /proc/stat."""
    names = {f"cpu{core}" for core in cores}
    columns = (*_BUSY, _NICE) if counts_nice else _BUSY
    ticks = 0
    for line in lines:
        name, *counts = line.split()
        if name in names:
            ticks += sum(int(counts[column]) for column in columns if column < len(counts))
    return ticks
