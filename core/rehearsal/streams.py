"""Recorded streams: prompts and greedy answers as token ids, for tables and for replays of drafters.

One JSON object per line, gzipped if the name ends in .gz: `prompt` and `out` are ids; `tops` are the model's
most probable ids at each position of `out`, best first, and `shares` their probabilities (both optional);
`cls` is the kind of prompt.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from core.errors import RequestError, TableError
from core.system.paths import resources_dir


class Stream(Struct, frozen=True):
    """One recorded answer."""

    prompt: list[int]
    out: list[int]
    cls: str = "prompt"
    tops: list[list[int]] = []
    shares: list[list[float]] = []


def read_streams(path: Path) -> list[Stream]:
    """All streams of a file. Raises `RequestError` naming the line."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise RequestError(f"{path} cannot be read: {error}.", "Check the path.") from None
    streams = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            streams.append(msgspec.json.decode(line, type=Stream))
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{path}, line {number}: {error}.", 'A line is like {"prompt": [1], "out": [2]}.'
            ) from None
    if not streams:
        raise RequestError(f"{path} holds no streams.", "Write one JSON object a line.")
    return streams


def write_streams(path: Path, streams: Iterable[Stream]) -> None:
    """Write a file that `read_streams` reads."""
    content = b"".join(msgspec.json.encode(stream) + b"\n" for stream in streams)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


# ---- records: a file with one line per answer of a model's rehearsal
#
# Each line is a `Stream`. An incomplete line after a crash or on a full disk is removed at the next start, so
# a rehearsal resumes. One process at a time writes; a second one gets an error.


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
                f"{self.path.name} is being written by another Draftlight.", "Wait until it has finished."
            ) from None
        except OSError as error:
            self._lock.release()
            raise TableError(f"{self.path} cannot be written: {error}.", "Choose another path.") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.release()

    def add(self, stream: Stream) -> None:
        """Appends an answer. Raises `TableError` if it cannot be written."""
        try:
            self._file.write(msgspec.json.encode(stream) + b"\n")
            self._file.flush()
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error}.", "Free some space.") from error

    def __iter__(self) -> Iterator[Stream]:
        return read_records(self.path)

    def _mend(self) -> None:
        """Removes an incomplete last line."""
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
    """Yields the answers of a file; skips invalid lines."""
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    yield msgspec.json.decode(line, type=Stream)
                except msgspec.DecodeError:
                    continue
    except FileNotFoundError:
        return


# ---- conversations of rehearsal: prompts with their follow-ups, as JSON lines
#
#     {"class": "howto", "prompt": "How do I …?", "then": ["What do I need to buy?"]}
#
# `then`: the user's later turns; each follows the model's own answer to the turn before.


class RehearsedConversation(Struct, frozen=True, rename={"kind": "class"}):
    """One line. Other fields of the line are ignored."""

    prompt: str
    kind: str = "prompt"
    then: tuple[str, ...] = ()


def default_conversations() -> Path:
    """Draftlight's own prompts, written for rehearsal: see resources/tables/README.md."""
    return resources_dir() / "rehearsal" / "prompts.jsonl"


def read_conversations(path: Path) -> list[RehearsedConversation]:
    """The conversations of a file. Raises `RequestError` naming the line."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            held = msgspec.json.decode(line, type=RehearsedConversation)
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{path}, line {number}: {error}.", 'A line is like {"class": "code", "prompt": "…"}.'
            ) from None
        if not held.prompt.strip() or not all(turn.strip() for turn in held.then):
            raise RequestError(f"{path}, line {number}: a turn is empty.", "Write some text in every turn.")
        found.append(held)
    if not found:
        raise RequestError(f"{path} holds no prompts.", "Write one JSON object a line.")
    return found
