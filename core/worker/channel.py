"""The worker's side of the protocol: commands from fd 0, events to a private copy of fd 1.

fd 1 is duplicated and then redirected to stderr, so that no library's print corrupts the protocol. Writes are
locked (the main thread and the heartbeat write); one thread reads.
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
    """Create it before any other code can print."""

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
        """Sets the handler of a closed pipe, called from any thread for each event that is not sent."""
        self._at_end = leave

    def send(self, event: Event) -> None:
        """Writes one event. Any thread. If the pipe is closed, the process exits or calls `at_end`."""
        line = encode(event)
        try:
            with self._lock:
                view = memoryview(line)
                while view:
                    view = view[self._out.write(view) or 0 :]
        except OSError:
            self._at_end()

    def commands(self) -> Iterator[Command]:
        """Yields commands until the pipe is closed.

        An invalid line, or one that does not fit into memory, is answered with `failed` and skipped.
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
        """The next line, empty at the end, cut at the limit."""
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
