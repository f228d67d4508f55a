"""Progress: one line on stderr that says how far a long work is, written over again and again.

Nothing is said where stderr is no terminal or it is to be quiet. `clear()` comes before anything
else is printed, so that output never stands in the middle of the line.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType

_EVERY_S = 0.25


class ProgressLine:
    """`with ProgressLine(options.quiet) as line:`; the line is gone at the end of the block."""

    def __init__(self, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._shown = not quiet and sys.stderr.isatty()
        self._clock = clock
        self._said_s: float | None = None
        self._is_there = False

    def due(self) -> bool:
        """Whether something said now would be shown: a quarter of a second after the last."""
        return self._shown and (self._said_s is None or self._clock() - self._said_s >= _EVERY_S)

    def say(self, words: str, *, now: bool = False) -> None:
        """Show `words` in place of the last, if that is due; `now` shows them whether it is or not."""
        if self.due() or (now and self._shown):
            self._said_s = self._clock()
            self._is_there = True
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{words[:width]}", end="", file=sys.stderr, flush=True)

    def print(self, words: str) -> None:
        """A line that stays, on stderr, terminal or not; nothing if it is to be quiet."""
        self.clear()
        if not self._quiet:
            print(words, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._is_there:
            self._is_there = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
