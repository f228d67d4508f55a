"""Child processes that read untrusted input: their limits, and the lines that they write to their parent.

A child sets its own memory and processor limits. macOS does not enforce memory limits, so a thread watches
the resident size as well. The parent enforces the time limit (`core.system.reader_process`). Imports
little, because every child process imports it at start.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from core.errors import RequestError, reason_of

_LOOK_EVERY_S = 0.02
_STACK_BYTES = 256 * 1024
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


def watch(most_bytes: int, beyond: Callable[[], None]) -> None:
    """Call `beyond` from a thread once this process holds more than `most_bytes`."""

    def look() -> None:
        with contextlib.suppress(MemoryError):
            while held_bytes() <= most_bytes:
                time.sleep(_LOOK_EVERY_S)
        beyond()

    threading.Thread(target=look, name="memory", daemon=True).start()


def held_bytes() -> int:
    """Peak resident size of this process."""
    if sys.platform == "linux":
        # getrusage includes the peak of the parent before exec.
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class LineOutput:
    """Lines to the parent process, from any thread.

    Takes over stdout, which is then redirected to stderr, so that no library writes between the lines.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._out = os.dup(1)
        os.dup2(2, 1)

    def write(self, line: bytes) -> None:
        """Write a line; ends this process if the parent has closed the pipe."""
        data = memoryview(line + b"\n")
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:
                os._exit(0)


def read_within(
    memory_bytes: int,
    cpu_s: int,
    read: Callable[[], None],
    refuse: Callable[[RequestError], None],
    too_large: RequestError,
    failed: Callable[[str], RequestError],
) -> int:
    """Call `read` within limits; returns the exit status: 0, or 1 after `refuse` was called.

    `refuse` gets the error of `read`, `too_large` if memory is exhausted, or `failed` with the name of an
    unexpected error. The process ends when its stdin closes, so that it does not outlive its parent.
    """

    def out_of_memory() -> NoReturn:
        refuse(too_large)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    watch(memory_bytes, out_of_memory)
    bound(memory_bytes, cpu_s)
    try:
        read()
    except RequestError as error:
        refuse(error)
        return 1
    except MemoryError:
        give_spare_memory()
        out_of_memory()
    except Exception as error:  # process boundary: every error becomes a refusal
        import traceback

        traceback.print_exc()
        refuse(failed(reason_of(error)))
        return 1
    return 0


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)
