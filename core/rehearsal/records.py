"""Records: the answers of one model's rehearsal, a file that grows by a line an answer.

Each line is a `Stream`. A line that a crash or a full disk cut short is cut off at the next start,
so a rehearsal goes on where it stopped. One process at a time writes; a second one is told so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from core.errors import TableError
from core.rehearsal.streams import Stream


class Records:
    """`with Records(path) as records`: open for reading and appending, locked. Raises `TableError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path.with_suffix(".lock"), timeout=0)

    def __enter__(self) -> Records:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._mend()
            self._file = self.path.open("ab")
        except Timeout:
            raise TableError(
                f"{self.path.name} is being written by another Draftlight.", "Wait until that one is done."
            ) from None
        except OSError as error:
            self._lock.release()
            raise TableError(f"{self.path} cannot be written: {error}.", "Choose another place.") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.release()

    def add(self, stream: Stream) -> None:
        """Append an answer. Raises `TableError` if the disk does not take it."""
        try:
            self._file.write(msgspec.json.encode(stream) + b"\n")
            self._file.flush()
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error}.", "Free some space.") from error

    def __iter__(self) -> Iterator[Stream]:
        return read_records(self.path)

    def _mend(self) -> None:
        """Cut off a last line that has no end."""
        if not self.path.exists():
            return
        with self.path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            kept, step = size, 1 << 16
            while kept:
                start = max(0, kept - step)
                file.seek(start)
                newline = file.read(kept - start).rfind(b"\n")
                if newline >= 0:
                    kept = start + newline + 1
                    break
                kept = start
            if kept < size:
                file.truncate(kept)


def read_records(path: Path) -> Iterator[Stream]:
    """The answers of a file, one after the other; lines that are none are passed over."""
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    yield msgspec.json.decode(line, type=Stream)
                except msgspec.DecodeError:
                    continue
    except FileNotFoundError:
        return
