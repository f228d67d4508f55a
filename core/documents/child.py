"""The process that reads one document, and its bounds.

It writes JSON lines to its stdout: how far it is, and last of all the text or why there is none.
It ends when its stdin closes, so that it never outlives who started it. The system is asked to bound
its memory; macOS does not, so a thread looks at what is taken as well.
Imports little: every document waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from core.documents import strings
from core.documents.limits import Limits
from core.documents.reading import document_text, shown_name
from core.errors import RequestError

_TELL_EVERY_S = 0.05
_LOOK_EVERY_S = 0.02
# To say that memory ran out takes some.
_SPARE_BYTES = 48 * 1024 * 1024
_STACK_BYTES = 256 * 1024


def main(arguments: Sequence[str]) -> int:
    """Read the file that `arguments` name: path, bytes of memory, seconds of processor, characters.

    0 if there is a text, 1 if the last line says why not.
    """
    path, memory_bytes, cpu_s, characters = Path(arguments[0]), *(int(number) for number in arguments[1:])
    lines = Lines(path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_end_with_the_starter, name="starter", daemon=True).start()
    watch(memory_bytes, lambda: lines.out_of_memory(memory_bytes))
    bound(Limits(memory_bytes=memory_bytes, whole_s=cpu_s))
    try:
        text = document_text(path, lines.tell, characters)
        lines.write({"text": text})
    except RequestError as error:
        lines.refuse(error)
        return 1
    except MemoryError:
        _give_spare_memory()
        lines.out_of_memory(memory_bytes)
    except Exception as error:  # the boundary: whatever went wrong, the person is told
        import traceback

        traceback.print_exc()
        why = strings.file_unreadable(shown_name(path), type(error).__name__)
        lines.refuse(RequestError(why, strings.CHECK_FILE))
        return 1
    return 0


class Lines:
    """What is written to stdout, which is taken before a library could write there."""

    def __init__(self, path: Path) -> None:
        self._name = shown_name(path)
        self._lock = threading.Lock()
        self._told_at = 0.0
        self._out = os.dup(1)
        os.dup2(2, 1)

    def tell(self, done: int, total: int, unit: str) -> None:
        """How far it is; not every time."""
        now = time.monotonic()
        if now >= self._told_at + _TELL_EVERY_S:
            self._told_at = now
            self.write({"done": done, "total": total, "unit": unit})

    def refuse(self, error: RequestError) -> None:
        """Why there is no text."""
        self.write({"refused": error.message, "hint": error.hint})

    def out_of_memory(self, memory_bytes: int) -> None:
        """Say so and end."""
        self.refuse(RequestError(strings.file_needs_memory(self._name, memory_bytes), strings.PASTE_PART))
        os._exit(1)

    def write(self, line: dict[str, object]) -> None:
        """One line."""
        data = memoryview(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:
                os._exit(0)  # nobody listens any more


def bound(limits: Limits) -> None:
    """Have the system bound this process, as far as it does."""
    cpu_s = int(limits.whole_s) + 1
    for what, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_DATA, limits.memory_bytes, limits.memory_bytes + _SPARE_BYTES),
    ):
        most = resource.getrlimit(what)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        # What the system does not bound is watched, and whoever started this bounds the time.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (soft, hard))


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


def _give_spare_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _end_with_the_starter() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)
