"""Bounds that a child process sets itself before it works on what others wrote.

The system is asked to bound its memory and its processor time; macOS does not bound memory, so a thread
looks at what is taken as well. How long it may take on the clock is for whoever started it. Imports
little: every child waits for it.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import threading
import time
from collections.abc import Callable

_LOOK_EVERY_S = 0.02
# To say that memory ran out takes some.
_SPARE_BYTES = 48 * 1024 * 1024


def bound(memory_bytes: int, cpu_s: int | None = None) -> None:
    """Have the system bound this process, as far as it does. `cpu_s` of None: as long as it lives."""
    limits = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_DATA, memory_bytes, memory_bytes + _SPARE_BYTES),
    ]
    if cpu_s is not None:
        limits.append((resource.RLIMIT_CPU, cpu_s + 1, cpu_s + 2))
    for what, soft, hard in limits:
        most = resource.getrlimit(what)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        # What the system does not bound is watched, and whoever started this bounds the time.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (soft, hard))


def give_spare_memory() -> None:
    """What was held back, to say that memory ran out."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def watch(most_bytes: int, beyond: Callable[[], None]) -> threading.Thread:
    """Call `beyond` from a thread once this process holds more than `most_bytes`."""

    def look() -> None:
        with contextlib.suppress(MemoryError):
            while held_bytes() <= most_bytes:
                time.sleep(_LOOK_EVERY_S)
        beyond()

    thread = threading.Thread(target=look, name="memory", daemon=True)
    thread.start()
    return thread


def held_bytes() -> int:
    """The most memory this process has held."""
    if sys.platform == "linux":
        # getrusage would count what the process held that this one was started from.
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
