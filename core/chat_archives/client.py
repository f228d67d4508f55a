"""ArchiveReading: reads an export of chats in a child process that can be stopped.

`lines()` blocks; iterate it on a thread of its own. `stop()` may be called from any thread. No Qt.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from core.chat_archives import strings
from core.chat_archives.child import End, Line
from core.errors import RequestError
from core.system.children import CHILD_FOLDER, child_command, child_environment

_PIECE_BYTES = 1024 * 1024
# A pause of this process, however long, passes for one of these waits.
_WAITS_OF_A_SILENCE = 10
_decoder = msgspec.json.Decoder(Line)


class ArchiveLimits(NamedTuple):
    """Limits of the child process. An archive of a gigabyte takes about a minute."""

    memory_bytes: int = 1024 * 1024 * 1024
    cpu_s: int = 3600
    # Without a line from the process, which reports at least every megabyte.
    silence_s: float = 120.0


class ArchiveReading:
    """Reads the file or folder at `path`, once."""

    def __init__(
        self, path: Path, limits: ArchiveLimits | None = None, command: Sequence[str] | None = None
    ) -> None:
        self._path = path
        self._limits = limits or ArchiveLimits()
        self._command = list(command or child_command("--read-chats"))
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether `stop()` was called."""
        return self._stopped

    def lines(self) -> Iterator[Line]:
        """Yields the lines of the process without the last one, and ends early after `stop()`.

        Raises `RequestError` if the export cannot be read, or not completely.
        """
        process = self._start()
        if process is None:
            return
        try:
            for data in self._raw(process):
                line = _decoder.decode(data)
                if isinstance(line, End):
                    if line.refused:
                        raise RequestError(line.refused, line.hint)
                    return
                yield line
            if not self._stopped:
                raise self._ended(process.wait())
        except msgspec.DecodeError as error:
            raise RequestError(strings.not_read(self._path.name, str(error)), strings.DAMAGED_HINT) from error
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

    def _start(self) -> subprocess.Popen[bytes] | None:
        limits = self._limits
        arguments = [os.path.abspath(self._path), str(limits.memory_bytes), str(limits.cpu_s)]
        with self._lock:
            if self._stopped:
                return None
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
                raise RequestError(strings.not_read(self._path.name, why), strings.DAMAGED_HINT) from error
            return self._process

    def _raw(self, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
        assert process.stdout
        source = process.stdout.fileno()
        pieces: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while True:
                self._wait(selector)
                data = os.read(source, _PIECE_BYTES)
                if self._stopped or not data:
                    return
                *whole, rest = data.split(b"\n")
                for line in whole:
                    yield b"".join((*pieces, line))
                    pieces.clear()
                pieces.append(rest)

    def _wait(self, selector: selectors.BaseSelector) -> None:
        silence_s = self._limits.silence_s
        for _ in range(_WAITS_OF_A_SILENCE):
            if selector.select(silence_s / _WAITS_OF_A_SILENCE):
                return
        raise RequestError(strings.stands_still(self._path.name, silence_s), strings.DAMAGED_HINT)

    def _ended(self, status: int) -> RequestError:
        """The error for a process that ended without an end."""
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            what = f"{self._limits.cpu_s:,} seconds of processor time"
            return RequestError(strings.too_much(self._path.name, what), strings.DAMAGED_HINT)
        return RequestError(
            strings.not_read(self._path.name, strings.ENDED.format(status=status)), strings.DAMAGED_HINT
        )
