"""DocumentReading: reads one document in a child process that can be stopped.

`run()` blocks; call it on a thread of its own. `stop()` may be called from any thread. However the process
ends, the result is a text or a `RequestError`. No Qt.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from core.documents import strings
from core.documents.limits import Limits
from core.documents.reading import shown_name
from core.documents.text import Guess
from core.errors import RequestError
from core.system.children import CHILD_FOLDER, child_command, child_environment

# Eight million characters are at most 48 MB of JSON.
_MOST_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
# A pause of this process, however long, passes for one of these waits.
_WAITS_OF_A_SILENCE = 10


class StoppedError(Exception):
    """The reading was stopped."""


class DocumentProgress(Struct, frozen=True):
    """`done` of `total`."""

    done: int
    total: int
    unit: Literal["pages", "bytes"]


class _Line(Struct, frozen=True):
    """Any line of the process: progress, or one of the two ends."""

    done: int = 0
    total: int = 0
    unit: Literal["pages", "bytes"] = "bytes"
    text: str | None = None
    guess: Guess | None = None
    refused: str | None = None
    hint: str = ""


def reader_command() -> list[str]:
    """How to start a reader."""
    return child_command("--read")


class DocumentReading:
    """Reads the file at `path`, once; plain text and HTML with the codec `encoding`, if it is given.

    `guess` is the encoding after `run()`, if it was not certain.
    """

    def __init__(
        self,
        path: Path,
        limits: Limits | None = None,
        command: Sequence[str] | None = None,
        encoding: str = "",
    ) -> None:
        self.path = path
        self.guess: Guess | None = None
        self._encoding = encoding
        self._name = shown_name(path)
        self._limits = limits or Limits()
        self._command = list(command or reader_command())
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The reader's process id; None before it runs."""
        return self._process.pid if self._process else None

    def run(self, progressed: Callable[[DocumentProgress], None] = lambda progress: None) -> str:
        """The text. Raises `RequestError`, and `StoppedError` after `stop()`."""
        process = self._start()
        try:
            for line in self._lines(process):
                if line.text is not None:
                    self.guess = line.guess
                    return line.text
                if line.refused is not None:
                    raise RequestError(line.refused, line.hint)
                progressed(DocumentProgress(line.done, line.total, line.unit))
            raise self._ended(process.wait())
        finally:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
            process.wait()

    def stop(self) -> None:
        """End the process at once."""
        with self._lock:
            self._stopped = True
            if self._process:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        limits = self._limits
        bounds = (limits.memory_bytes, limits.whole_s, limits.characters)
        arguments = [os.path.abspath(self.path), *(str(int(bound)) for bound in bounds), self._encoding]
        with self._lock:
            if self._stopped:
                raise StoppedError
            try:
                self._process = subprocess.Popen(
                    [*self._command, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=child_environment(),
                    cwd=CHILD_FOLDER,
                )
            except (OSError, ValueError) as error:
                why = strings.NOT_STARTED.format(why=error)
                raise RequestError(strings.file_unreadable(self._name, why), strings.PASTE_PART) from error
            return self._process

    def _lines(self, process: subprocess.Popen[bytes]) -> Iterator[_Line]:
        """Yields lines as they arrive, until the process closes its output."""
        assert process.stdout
        source = process.stdout.fileno()
        ends_at = time.monotonic() + self._limits.whole_s
        pieces: list[bytes] = []
        left_bytes = _MOST_BYTES
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while True:
                self._wait(selector, ends_at)
                data = os.read(source, _PIECE_BYTES)
                left_bytes -= len(data)
                if self._stopped:
                    raise StoppedError
                if not data:
                    return
                if left_bytes < 0:
                    raise self._too_long()
                *whole, rest = data.split(b"\n")
                for line in whole:
                    yield self._decoded(b"".join((*pieces, line)))
                    pieces.clear()
                pieces.append(rest)

    def _wait(self, selector: selectors.BaseSelector, ends_at: float) -> None:
        """Waits for output. Raises `RequestError` if that takes too long."""
        silence_s = self._limits.silence_s
        for _ in range(_WAITS_OF_A_SILENCE):
            left_s = ends_at - time.monotonic()
            if selector.select(max(0.0, min(silence_s / _WAITS_OF_A_SILENCE, left_s))):
                return
            if left_s <= 0:
                raise self._too_slow()
        raise RequestError(strings.file_stands_still(self._name, silence_s), strings.PASTE_PART)

    def _decoded(self, line: bytes) -> _Line:
        try:
            return msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError as error:
            raise RequestError(strings.file_unreadable(self._name, str(error)), strings.PASTE_PART) from error

    def _ended(self, status: int) -> Exception:
        """The error for a process that ended without a result."""
        if self._stopped:
            return StoppedError()
        if status == -signal.SIGXCPU:
            return self._too_slow()
        why = strings.ENDED_WITH.format(status=status)
        if status == -signal.SIGABRT:  # PDFium aborts where it gets no memory
            why = strings.aborted(self._limits.memory_bytes)
        elif status < 0:
            why = strings.ENDED_BY_SIGNAL.format(signal=signal.Signals(-status).name)
        return RequestError(strings.file_unreadable(self._name, why), strings.PASTE_PART)

    def _too_slow(self) -> RequestError:
        return RequestError(strings.file_takes_long(self._name, self._limits.whole_s), strings.PASTE_PART)

    def _too_long(self) -> RequestError:
        return RequestError(strings.file_too_long(self._name, self._limits.characters), strings.PASTE_PART)
