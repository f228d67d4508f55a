"""Progress: one line on stderr that says how far a long work is, written over again and again.

Nothing is said where stderr is no terminal or `--quiet` was given. `clear()` comes before anything
else is printed, so that output never stands in the middle of the line.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType

_EVERY_S = 0.25


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """The flag that keeps it silent."""
    parser.add_argument("--quiet", action="store_true", help="do not say on stderr how far it is")


class ProgressLine:
    """`with ProgressLine(options.quiet) as line:`; the line is gone at the end of the block."""

    def __init__(self, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._clock = clock
        self._said_s: float | None = None
        self._is_there = False

    def due(self) -> bool:
        """Whether something said now would be shown: a quarter of a second after the last."""
        return self._shown and (self._said_s is None or self._clock() - self._said_s >= _EVERY_S)

    def say(self, words: str) -> None:
        """Show `words` in place of the last, if that is due."""
        if self.due():
            self._said_s = self._clock()
            self._is_there = True
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{words[:width]}", end="", file=sys.stderr, flush=True)

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
