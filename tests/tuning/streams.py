"""Recorded answers: streams to replay, records of a rehearsal, its prompts, and shipped answers.

A stream is a prompt and a greedy answer as token ids, one JSON object per line, gzipped if the name ends in
.gz: `prompt` and `out` are ids; `tops` are the model's most probable ids at each position of `out`, best
first, and `shares` their probabilities (both optional); `cls` is the kind of prompt.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Literal, cast

import msgspec
import numpy as np
from filelock import FileLock, Timeout
from msgspec import Struct

from core.bench.runner import MOST_INPUT_BYTES, read_input
from core.errors import RequestError, TableError
from core.events import ModelInfo
from core.system.files import read_stream, write_atomic
from core.system.paths import resources_dir
from core.tables.files import Arrays, InvalidFileError, check_arrays, decode, encode
from core.tables.prebuilt import shipped_dir


class Stream(Struct, frozen=True):
    prompt: list[int]
    out: list[int]
    cls: str = "prompt"
    tops: list[list[int]] = []
    shares: list[list[float]] = []


def read_streams(path: Path) -> list[Stream]:
    """All streams of a file. Raises `RequestError` naming the line."""
    content = read_input(path)
    if path.suffix == ".gz":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = read_stream(cast(BinaryIO, file), MOST_INPUT_BYTES, path.name)
        except (OSError, EOFError, zlib.error) as error:
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
    found = []
    for number, line in enumerate(read_input(path).splitlines(), 1):
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


# ---- shipped answers
#
# The answers of a rehearsal, small enough to ship, so that another machine can continue it. The file is an
# xz-compressed container (`core.tables.files`). The header names the model and the family; the arrays
# hold for each answer an 8-byte hash of its prompt's ids, and its ids. A prompt that is later worded or
# rendered differently thus counts as not answered. Probabilities are omitted: they are three quarters of the
# records and do not improve a table (resources/notes/rehearsal.md). A damaged or newer file, or one of
# another model, raises `TableError`.


SUFFIX = ".answers.xz"
_FORMAT: Literal["draftlight-answers"] = "draftlight-answers"
_VERSION = 1
# Ids compress to a third; a few thousand answers are a megabyte.
_MOST_BYTES = 64 << 20
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 1, "pb": 1}]


class _Header(Struct, frozen=True):
    model: str
    family: str
    family_name: str
    vocabulary: int
    answers: int
    tokens: int
    format: Literal["draftlight-answers"] = _FORMAT
    version: int = _VERSION


class AnswerIds(Struct, frozen=True):
    """The answers of one model by `prompt_key`."""

    model: str
    answers: Mapping[int, list[int]]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.answers.values()))


def prompt_key(prompt: Sequence[int]) -> int:
    digest = hashlib.blake2b(np.array(prompt, dtype="<u4").tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def save_ids(path: Path, streams: Iterable[Stream], info: ModelInfo) -> AnswerIds:
    """Writes the answers of the model `info`; returns them. Raises `TableError`."""
    held = {prompt_key(stream.prompt): stream.out for stream in streams}
    found = AnswerIds(info.name, held)
    header = _Header(
        info.name, info.family, info.family_name, info.vocabulary, len(held), sum(map(len, held.values()))
    )
    arrays: Arrays = {
        "prompts": np.array(list(held), dtype=np.uint64),
        "lengths": np.array([len(out) for out in held.values()], dtype=np.uint32),
        "ids": np.array([token for out in held.values() for token in out], dtype=_kind(info.vocabulary)),
    }
    content = lzma.compress(encode(header, arrays), check=lzma.CHECK_CRC64, filters=_FILTERS)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content, private=False)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error}.", "Choose another path.") from error
    return found


def shipped_ids(info: ModelInfo, folder: Path | None = None) -> AnswerIds | None:
    """The answers of this model in `folder` (None: the shipped ones); None if there are none.

    Files of other models are skipped. Raises `TableError` for a damaged file.
    """
    for path in sorted((folder or shipped_dir()).glob(f"*{SUFFIX}")):
        try:
            header, found = _read(path)
        except (OSError, InvalidFileError) as error:
            raise TableError(f"{path.name} {error}.", "Install Draftlight again.") from None
        if (header.family, header.model) == (info.family, info.name):
            return found
    return None


def _read(path: Path) -> tuple[_Header, AnswerIds]:
    content = path.read_bytes()
    try:
        opened = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=256 << 20)
        plain = opened.decompress(content, max_length=_MOST_BYTES)
    except lzma.LZMAError:
        raise InvalidFileError("is damaged, or not a file of answers") from None
    if not opened.eof or opened.unused_data:
        raise InvalidFileError("is damaged: it does not end where it should")
    header, arrays = decode(plain, _Header, _FORMAT, _VERSION)
    check_arrays(
        arrays,
        {
            "prompts": (np.uint64, (header.answers,)),
            "lengths": (np.uint32, (header.answers,)),
            "ids": (_kind(header.vocabulary), (header.tokens,)),
        },
    )
    ids = arrays["ids"]
    ends = [0, *np.cumsum(arrays["lengths"], dtype=np.uint64).tolist()]
    if ends[-1] != header.tokens or (len(ids) and int(ids.max()) >= header.vocabulary):
        raise InvalidFileError("contains invalid answers")
    outs = [ids[start:end].tolist() for start, end in pairwise(ends)]
    return header, AnswerIds(header.model, dict(zip(arrays["prompts"].tolist(), outs)))


def _kind(vocabulary: int) -> type[np.uint16] | type[np.uint32]:
    return np.uint16 if vocabulary <= 1 << 16 else np.uint32
