"""Memory and processor limits that a child process sets for itself before it reads untrusted input.

macOS does not enforce memory limits, so a thread watches the resident size as well. The parent enforces the
time limit. A separate module, because every child process imports it at start and it imports little.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import threading
import time
from collections.abc import Callable

_LOOK_EVERY_S = 0.02
# Reporting that memory ran out needs some memory.
_SPARE_BYTES = 48 * 1024 * 1024


def bound(memory_bytes: int, cpu_s: int | None = None) -> None:
    """Sets the resource limits of this process. `cpu_s` None: no limit on processor time."""
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
        # Unsupported limits are covered by `watch` and by the parent's time limit.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (soft, hard))


def give_spare_memory() -> None:
    """Releases the memory reserve, so that the process can report that memory ran out."""
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
    """Peak resident size of this process."""
    if sys.platform == "linux":
        # getrusage includes the peak of the parent before exec.
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
