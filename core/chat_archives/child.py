"""The process that reads an export of chats, and its bounds.

It writes JSON lines to stdout: records of `reading`, progress, and last the end or a refusal. It ends when
its stdin closes, so that it does not outlive its parent.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from core.chat_archives import strings
from core.chat_archives.reading import ChatHead, ChatReader, Losses, OwnChat
from core.chat_archives.tree import ArchivedPath, ArchivedTurn
from core.errors import RequestError
from core.system.child_bounds import bound, give_spare_memory, watch

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


def main(arguments: Sequence[str]) -> int:
    """Read the export that `arguments` name: path, bytes of memory, seconds of processor.

    Returns 0 if it was read, 1 if the last line says why not.
    """
    path, (memory_bytes, cpu_s) = Path(arguments[0]), map(int, arguments[1:3])
    lines = _Lines()

    def out_of_memory() -> None:
        memory = f"{memory_bytes / 2**20:,.0f} MB"
        lines.write(End(strings.too_much(path.name, f"{memory} of memory"), strings.DAMAGED_HINT))
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_starter, name="starter", daemon=True).start()
    watch(memory_bytes, out_of_memory)
    bound(memory_bytes, cpu_s)
    try:
        for line in lines_of(ChatReader(path, lines.progress)):
            lines.write(line)
        lines.write(End())
    except RequestError as error:
        lines.write(End(error.message, error.hint))
        return 1
    except MemoryError:
        give_spare_memory()
        out_of_memory()
    except Exception as error:  # process boundary: every error becomes a refusal
        import traceback

        traceback.print_exc()
        lines.write(End(strings.not_read(path.name, type(error).__name__), strings.DAMAGED_HINT))
        return 1
    return 0


def lines_of(reader: ChatReader) -> Iterator[Line]:
    """Yields the lines of everything that `reader` finds. Raises `RequestError`."""
    for record in reader.records():
        if isinstance(record, ArchivedPath):
            yield from map(TurnLine, record.turns)
            yield PathEnd()
        else:
            yield record


class _Lines:
    """Writes JSON lines to stdout, which is redirected before a library could write there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told_at = 0.0
        self._encoder = msgspec.json.Encoder()
        self._out = os.dup(1)
        os.dup2(2, 1)

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._told_at + _TELL_EVERY_S:
            self._told_at = now
            self.write(Progress(done, total))

    def write(self, line: Line) -> None:
        data = memoryview(self._encoder.encode(line) + b"\n")
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:
                os._exit(0)  # the parent has closed the pipe


def _end_with_the_starter() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)
