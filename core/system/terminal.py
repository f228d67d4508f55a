"""The terminal: text without control characters, Ctrl-C for work that can be aborted at any time, progress.

Names of folders and models, titles, errors and answers come from others. An escape sequence in them could
change what the terminal shows, so control characters are written as `\\u001b`, which is also valid in JSON.

Python raises KeyboardInterrupt in the main thread. It can be lost there, in a destructor ("Exception ignored
in") or in a library's bare `except:`, and it does not interrupt calls such as getaddrinfo. A thread therefore
reads the signal numbers from a pipe (`signal.set_wakeup_fd`).
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TextIO

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
STOPPED = 130  # 128 and SIGINT's number, as shells count


def visible(text: str) -> str:
    """`text` with control characters escaped; tabs and line feeds stay."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class VisibleText(io.TextIOWrapper):
    """A text stream that escapes control characters; `write_raw` is for Draftlight's own sequences."""

    def write(self, text: str, /) -> int:
        super().write(visible(text))
        return len(text)

    def write_raw(self, text: str) -> None:
        super().write(text)


def write_raw(stream: TextIO, text: str) -> None:
    """Writes `text`, with its control characters, also to a `VisibleText`."""
    getattr(stream, "write_raw", stream.write)(text)
    stream.flush()


def escape_stderr() -> None:
    """Escapes what this child process and its libraries write to stderr from Python, such as tracebacks."""
    own = sys.__stderr__
    if own is not None and sys.stderr is own:
        sys.stderr = VisibleText(own.buffer, own.encoding, errors="backslashreplace", line_buffering=True)


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
            write_raw(sys.stderr, f"\r\x1b[K{visible(words[:width])}")

    def print(self, words: str) -> None:
        """Prints a permanent line on stderr, unless quiet."""
        self.clear()
        if not self._quiet:
            print(words, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line."""
        if self._is_there:
            self._is_there = False
            write_raw(sys.stderr, "\r\x1b[K")

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
