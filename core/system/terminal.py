"""The terminal: text without control characters, Ctrl-C for work that can be aborted at any time, progress.

Names of folders and models, titles, errors and answers come from others. An escape sequence in them could
change what the terminal shows, so control characters are written as `\\u001b`, which is also valid in JSON.

Python raises KeyboardInterrupt in the main thread. It can be lost there, in a destructor ("Exception ignored
in") or in a library's bare `except:`, and it does not interrupt calls such as getaddrinfo. So such work runs
on another thread, and the main thread only waits for it.
"""

from __future__ import annotations

import io
import os
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from types import TracebackType
from typing import TextIO, TypeVar
from unicodedata import east_asian_width

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
STOPPED = 130  # 128 and SIGINT's number, as shells count
_Result = TypeVar("_Result")


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


def until_ctrl_c(work: Callable[[], _Result], say: Callable[[], None]) -> _Result:
    """The result of `work`, which runs on a thread; Ctrl-C calls `say` and exits the process with `STOPPED`.

    No other cleanup runs. Main thread only. If SIGINT is ignored (`nohup … &`), it stays ignored.
    """
    threads = ThreadPoolExecutor(1)
    try:
        return threads.submit(work).result()
    except KeyboardInterrupt:
        try:
            say()
        finally:
            os._exit(STOPPED)
    finally:
        threads.shutdown()


# ---- progress


_EVERY_S = 0.25


def _columns() -> int:
    """Columns of the terminal on stderr; 80 if unknown."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:  # also a stream without a descriptor
        return 80


def _cut(words: str, columns: int) -> str:
    """The beginning of `words` that fits; wide characters, as in Chinese, take two columns."""
    ends = accumulate(1 + (east_asian_width(each) in "WF") for each in words)
    return words[: sum(end <= columns for end in ends)]


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
            write_raw(sys.stderr, f"\r\x1b[K{_cut(visible(words), _columns() - 1)}")

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
