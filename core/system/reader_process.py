"""ReaderProcess: a child process that reads an untrusted file, from the side of its parent.

`core.system.child_bounds` has the side of the child.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Literal

from core.errors import reason_of
from core.system.children import CHILD_FOLDER, child_environment

_PIECE_BYTES = 1024 * 1024
# A pause of this process, however long, counts as one of these waits.
_WAITS_PER_SILENCE = 10


class StoppedError(Exception):
    """The reading was stopped."""


class ReaderFaultError(Exception):
    """A reader process could not be started (`str()` says why) or exceeded a limit of its parent."""

    def __init__(self, kind: Literal["not started", "silent", "slow", "long"], why: str = "") -> None:
        super().__init__(why)
        self.kind = kind


class ReaderProcess:
    """A child process that reads one file and writes lines to stdout.

    `lines()` blocks; iterate it on a separate thread. `stop()` may be called from any thread.

    `silence_s`: without a line. `whole_s`: on the clock, in all. `most_bytes`: of its output. `status` is the
    exit status if the process ended before the caller had enough.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        silence_s: float,
        whole_s: float = float("inf"),
        most_bytes: float = float("inf"),
    ) -> None:
        self._command = command
        self._silence_s = silence_s
        self._whole_s = whole_s
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.status = 0

    @property
    def pid(self) -> int | None:
        """The process id; None before it runs."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """End the process at once."""
        with self._lock:
            self._stopped = True
            if self._process:
                self._process.kill()

    def lines(self) -> Generator[bytes]:
        """Run the process and yield its lines as they arrive, until it ends or the iterator is closed.

        Raises `StoppedError` after `stop()`, and `ReaderFaultError`.
        """
        process = self._start()
        assert process.stdin
        assert process.stdout
        try:
            yield from self._complete_lines(process.stdout.fileno())
            self.status = process.wait()
            if self._stopped:
                raise StoppedError
        finally:
            process.kill()
            process.stdin.close()
            process.stdout.close()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise StoppedError
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=child_environment(),
                    cwd=CHILD_FOLDER,
                )
            except (OSError, ValueError) as error:
                raise ReaderFaultError("not started", reason_of(error)) from error
            return self._process

    def _complete_lines(self, source: int) -> Iterator[bytes]:
        ends_at = time.monotonic() + self._whole_s
        pieces: list[bytes] = []
        size_bytes = 0
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while True:
                self._wait(selector, ends_at)
                data = os.read(source, _PIECE_BYTES)
                size_bytes += len(data)
                if self._stopped:
                    raise StoppedError
                if not data:
                    return
                if size_bytes > self._most_bytes:
                    raise ReaderFaultError("long")
                *whole, rest = data.split(b"\n")
                for line in whole:
                    yield b"".join((*pieces, line))
                    pieces.clear()
                pieces.append(rest)

    def _wait(self, selector: selectors.BaseSelector, ends_at: float) -> None:
        """Wait for output."""
        for _ in range(_WAITS_PER_SILENCE):
            left_s = ends_at - time.monotonic()
            if selector.select(max(0.0, min(self._silence_s / _WAITS_PER_SILENCE, left_s))):
                return
            if left_s <= 0:
                raise ReaderFaultError("slow")
        raise ReaderFaultError("silent")
