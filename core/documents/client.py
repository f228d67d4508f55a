"""DocumentReading: reads one document in a child process that can be stopped.

`run()` blocks; call it on a thread of its own. `stop()` may be called from any thread. However the process
ends, the result is a text or a `RequestError`. No Qt.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from core.documents import strings
from core.documents.limits import Limits
from core.documents.reading import Document, DocumentLine, shown_name
from core.errors import RequestError
from core.system.children import child_command
from core.system.reader_process import ReaderFaultError, ReaderProcess

# Eight million characters are at most 48 MB of JSON.
_MOST_BYTES = 64 * 1024 * 1024


def reader_command() -> list[str]:
    """How to start a reader."""
    return child_command("--read")


class DocumentReading:
    """Reads the file at `path`, once; plain text and HTML with the codec `encoding`, if it is given."""

    def __init__(
        self,
        path: Path,
        limits: Limits | None = None,
        command: Sequence[str] | None = None,
        encoding: str = "",
    ) -> None:
        self.path = path
        self._name = shown_name(path)
        self._limits = limits = limits or Limits()
        bounds = (limits.memory_bytes, limits.whole_s, limits.characters)
        self._process = ReaderProcess(
            [
                *(command or reader_command()),
                os.path.abspath(path),
                *(str(int(bound)) for bound in bounds),
                encoding,
            ],
            silence_s=limits.silence_s,
            whole_s=limits.whole_s,
            most_bytes=_MOST_BYTES,
        )

    @property
    def pid(self) -> int | None:
        """The reader's process id; None before it runs."""
        return self._process.pid

    def stop(self) -> None:
        """End the process at once."""
        self._process.stop()

    def run(self, progressed: Callable[[DocumentLine], None] = lambda progress: None) -> Document:
        """The document; `progressed` gets lines with the progress.

        Raises `RequestError`, and `StoppedError` after `stop()`.
        """
        try:
            with closing(self._process.lines()) as lines:
                for data in lines:
                    line = msgspec.json.decode(data, type=DocumentLine)
                    if line.document is not None:
                        return line.document
                    if line.refused is not None:
                        raise RequestError(line.refused, line.hint)
                    progressed(line)
        except ReaderFaultError as fault:
            raise RequestError(self._fault(fault), strings.PASTE_PART) from fault
        except msgspec.DecodeError as error:
            raise RequestError(strings.file_unreadable(self._name, str(error)), strings.PASTE_PART) from error
        raise RequestError(self._ended(self._process.status), strings.PASTE_PART)

    def _fault(self, fault: ReaderFaultError) -> str:
        match fault.kind:
            case "not started":
                return strings.file_unreadable(self._name, strings.NOT_STARTED.format(why=fault))
            case "silent":
                return strings.file_stands_still(self._name, self._limits.silence_s)
            case "slow":
                return strings.file_takes_long(self._name, self._limits.whole_s)
            case "long":
                return strings.file_too_long(self._name, self._limits.characters)

    def _ended(self, status: int) -> str:
        """The message for a process that ended without a result."""
        if status == -signal.SIGXCPU:
            return strings.file_takes_long(self._name, self._limits.whole_s)
        why = strings.ENDED_WITH.format(status=status)
        if status == -signal.SIGABRT:  # PDFium aborts where it gets no memory
            why = strings.aborted(self._limits.memory_bytes)
        elif status < 0:
            why = strings.ENDED_BY_SIGNAL.format(signal=signal.Signals(-status).name)
        return strings.file_unreadable(self._name, why)
