"""The worker's end of the wire: commands in from fd 0, events out on a private copy of fd 1.

fd 1 is copied first and then pointed at stderr, so that no library's print can corrupt the
protocol. Writing is locked (main thread and heartbeat write); reading happens on one thread.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator

from core.errors import DraftlightError, OutOfMemoryError, ProtocolError
from core.events import Command, Event, decode_command, encode, failure
from core.events.codec import LINE_LIMIT_BYTES, TOO_LONG, head_of

_PIECE_BYTES = 1024 * 1024


class Channel:
    """Take it before anything else may print."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._in = os.fdopen(os.dup(0), "rb")
        devnull = os.open(os.devnull, os.O_RDONLY)
        os.dup2(devnull, 0)
        os.close(devnull)
        sys.stdout = sys.stderr
        self._lock = threading.Lock()
        self._at_end: Callable[[], None] = lambda: os._exit(0)

    def at_end(self, leave: Callable[[], None]) -> None:
        """From now on a closed pipe calls `leave`, from any thread and at each event that finds nobody."""
        self._at_end = leave

    def send(self, event: Event) -> None:
        """Write one event, from any thread. A closed pipe means the window is gone: exit, or `at_end`."""
        line = encode(event)
        try:
            with self._lock:
                view = memoryview(line)
                while view:
                    view = view[self._out.write(view) or 0 :]
        except OSError:
            self._at_end()

    def commands(self) -> Iterator[Command]:
        """Commands until the other end closes.

        A bad line, or one that there is not enough memory for, is answered with `failed` and skipped.
        """
        while line := self._next_line():
            if len(line) == LINE_LIMIT_BYTES and not line.endswith(b"\n"):
                self._skip_rest()
                self.send(failure(ProtocolError(TOO_LONG), command="unknown"))
                continue
            if not line.strip():
                continue
            try:
                yield decode_command(line)
            except DraftlightError as error:
                head = head_of(line)
                self.send(failure(error, command=head.type or "unknown", request=head.request))
            except MemoryError:
                self.send(failure(_no_memory(), command="unknown"))

    def _next_line(self) -> bytes:
        """Empty at the end. A line that is too long comes in part."""
        while True:
            try:
                return self._in.readline(LINE_LIMIT_BYTES)
            except MemoryError:
                self._skip_rest()
                self.send(failure(_no_memory(), command="unknown"))

    def _skip_rest(self) -> None:
        while (piece := self._in.readline(_PIECE_BYTES)) and not piece.endswith(b"\n"):
            pass


def _no_memory() -> OutOfMemoryError:
    return OutOfMemoryError(
        "There was not enough memory to read a command.", "Close other programs, or send a shorter text."
    )
