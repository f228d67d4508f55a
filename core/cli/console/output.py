"""Output: a command's stdout and stderr, when what they lead to is full or gone.

Inside `guarded_output()` a write to stdout that fails raises `OutputGoneError` (its reader left, as
`head` does) or `OutputError` (a full disk), neither of which is an OSError that a command could take
for one of its files. A write to stderr that fails is dropped: there is nobody left to tell.
Characters that the output cannot hold are written as escapes.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from core.errors import DraftlightError, RequestError


class OutputError(RequestError):
    """The standard output cannot be written to."""

    code = "bad-output"


class OutputGoneError(DraftlightError):
    """Whoever read the standard output has left."""

    code = "output-gone"


class _Stdout(io.FileIO):
    """File descriptor 1. After its first failure all is dropped, so that closing it fails no more."""

    failed = False

    def write(self, data: Any) -> int:
        if self.failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            self.failed = True
            raise OutputGoneError("The output is not read any more.") from None
        except OSError as error:
            self.failed = True
            raise OutputError(
                f"The output cannot be written: {error.strerror}.", "Send it somewhere else."
            ) from None


class _Stderr(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


@contextmanager
def guarded_output() -> Iterator[None]:
    """The process's own streams are guarded until the block ends; others (a test's) are left alone."""
    before = sys.stdin, sys.stdout, sys.stderr
    try:
        # Python leaves a stream None where its descriptor is closed.
        sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
        sys.stdout = _guarded(sys.stdout, sys.__stdout__, _Stdout)
        sys.stderr = _guarded(sys.stderr, sys.__stderr__, _Stderr)
        yield
    finally:
        try:
            sys.stdout.flush()
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def _guarded(stream: TextIO | None, own: TextIO | None, kind: type[io.FileIO]) -> TextIO:
    if stream is None:
        return open(os.devnull, "w")
    if stream is not own:
        return stream
    raw = kind(stream.fileno(), "wb", closefd=False)
    at_once = kind is _Stderr or raw.isatty()
    buffered = io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffered, encoding=stream.encoding, errors="backslashreplace", line_buffering=at_once
    )
