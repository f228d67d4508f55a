"""The terminal: Ctrl-C for work that can be aborted at any time, and a progress line on stderr.

Python raises KeyboardInterrupt in the main thread. It can be lost there, in a destructor ("Exception ignored
in") or in a library's bare `except:`, and it does not interrupt calls such as getaddrinfo. A thread therefore
reads the signal numbers from a pipe (`signal.set_wakeup_fd`).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

STOPPED = 130  # 128 and SIGINT's number, as shells count


@contextmanager
def ending_at_ctrl_c(say: Callable[[], None]) -> Iterator[None]:
    """Within the block, Ctrl-C calls `say` in a separate thread and exits the process with `STOPPED`.

    No other cleanup runs. Main thread only. If SIGINT is ignored (`nohup … &`), it stays ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    listener = threading.Thread(target=_listen, args=(reader, say), name="ctrl-c", daemon=True)
    listener.start()
    descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _ignore)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(descriptor)
        os.close(writer)
        listener.join()
        os.close(reader)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Does nothing. Python writes to the wakeup pipe only for signals with a Python handler."""


def _listen(reader: int, say: Callable[[], None]) -> None:
    while number := os.read(reader, 1):
        if number[0] == signal.SIGINT:
            try:
                say()
            finally:
                os._exit(STOPPED)


# ---- progress


_EVERY_S = 0.25


class ProgressLine:
    """A status line on stderr, overwritten by each update and removed at the end of the `with` block.

    Shows nothing if `quiet` or if stderr is not a terminal. Call `clear` before other output.
    """

    def __init__(self, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._shown = not quiet and sys.stderr.isatty()
        self._clock = clock
        self._shown_s: float | None = None
        self._is_there = False

    def due(self) -> bool:
        """Whether an update would be shown now; updates are limited to four per second."""
        return self._shown and (self._shown_s is None or self._clock() - self._shown_s >= _EVERY_S)

    def say(self, words: str, *, now: bool = False) -> None:
        """Replaces the line with `words` if an update is due, or always with `now`."""
        if self.due() or (now and self._shown):
            self._shown_s = self._clock()
            self._is_there = True
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{words[:width]}", end="", file=sys.stderr, flush=True)

    def print(self, words: str) -> None:
        """Prints a permanent line on stderr, unless quiet."""
        self.clear()
        if not self._quiet:
            print(words, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line."""
        if self._is_there:
            self._is_there = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
