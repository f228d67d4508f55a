"""Reads an export of chats in a child process: its lines, its entry point, and the parent's side.

`ArchiveReading.lines()` blocks; iterate it on a separate thread. `stop()` may be called from any thread.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from core.chat_archives import strings
from core.chat_archives.reading import ChatHead, ChatReader, Losses, OwnChat
from core.chat_archives.tree import ArchivedPath, ArchivedTurn
from core.errors import RequestError
from core.system.child_bounds import LineOutput, read_within
from core.system.children import child_command
from core.system.prepared import prepared
from core.system.reader_process import ReaderFaultError, ReaderProcess, StoppedError

_TELL_EVERY_S = 0.2


class Progress(Struct, frozen=True, tag="progress"):
    """Bytes that were read, and all bytes."""

    done: int
    total: int


class TurnLine(Struct, frozen=True, tag="turn"):
    """The next turn of the last head."""

    turn: ArchivedTurn


class PathEnd(Struct, frozen=True, tag="path_end"):
    """The last head's chat is complete."""


class End(Struct, frozen=True, tag="end"):
    """Everything was read or, with a message, why not."""

    refused: str = ""
    hint: str = ""


Line = Progress | ChatHead | TurnLine | PathEnd | OwnChat | Losses | End
_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(prepared(Line))

# ---- the child process


def main(arguments: Sequence[str]) -> int:
    """Read the export that `arguments` name: path, bytes of memory, seconds of processor.

    Writes `Line`s to stdout; returns 0 if it was read, 1 if the last line says why not.
    """
    path, (memory_bytes, cpu_s) = Path(arguments[0]), map(int, arguments[1:3])
    output = LineOutput()
    told_at = 0.0

    def write(line: Line) -> None:
        output.write(_encoder.encode(line))

    def progressed(done: int, total: int) -> None:
        nonlocal told_at
        now = time.monotonic()
        if now >= told_at + _TELL_EVERY_S:
            told_at = now
            write(Progress(done, total))

    def read() -> None:
        for line in lines_of(ChatReader(path, progressed)):
            write(line)
        write(End())

    memory = f"{memory_bytes / 2**20:,.0f} MB of memory"
    return read_within(
        memory_bytes,
        cpu_s,
        read,
        lambda error: write(End(error.message, error.hint)),
        RequestError(strings.too_much(path.name, memory), strings.DAMAGED_HINT),
        lambda why: RequestError(strings.not_read(path.name, why), strings.DAMAGED_HINT),
    )


def lines_of(reader: ChatReader) -> Iterator[Line]:
    """Yields the lines of everything that `reader` finds. Raises `RequestError`."""
    for record in reader.records():
        if isinstance(record, ArchivedPath):
            yield from map(TurnLine, record.turns)
            yield PathEnd()
        else:
            yield record


# ---- the parent process


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
        self._name = path.name
        self._limits = limits = limits or ArchiveLimits()
        arguments = [os.path.abspath(path), str(limits.memory_bytes), str(limits.cpu_s)]
        self._process = ReaderProcess(
            [*(command or child_command("--read-chats")), *arguments], silence_s=limits.silence_s
        )

    def stop(self) -> None:
        """End the process at once."""
        self._process.stop()

    def lines(self) -> Iterator[Line]:
        """Yields the lines of the process without the last one, and ends early after `stop()`.

        Raises `RequestError` if the export cannot be read, or not completely.
        """
        try:
            with closing(self._process.lines()) as lines:
                for data in lines:
                    line = _decoder.decode(data)
                    if isinstance(line, End):
                        if line.refused:
                            raise RequestError(line.refused, line.hint)
                        return
                    yield line
            why = self._ended(self._process.status)
        except StoppedError:
            return
        except ReaderFaultError as fault:
            why = strings.stands_still(self._name, self._limits.silence_s)
            if fault.kind == "not started":
                why = strings.not_read(self._name, strings.NOT_STARTED.format(why=fault))
        except msgspec.DecodeError as error:
            why = strings.not_read(self._name, str(error))
        raise RequestError(why, strings.DAMAGED_HINT)

    def _ended(self, status: int) -> str:
        """The message for a process that ended before its last line."""
        if status == -signal.SIGXCPU:
            return strings.too_much(self._name, f"{self._limits.cpu_s:,} seconds of processor time")
        return strings.not_read(self._name, strings.ENDED.format(status=status))
