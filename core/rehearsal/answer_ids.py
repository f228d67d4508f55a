"""Answer ids: the answers of a rehearsal, small enough to ship, so that another machine can continue it.

The file is an xz-compressed container (`core.tables.table_file`). The header names the model and the family;
the arrays hold for each answer an 8-byte hash of its prompt's ids, and its ids. A prompt that is later worded
or rendered differently thus counts as not answered. Probabilities are omitted: they are three quarters of the
records and do not improve a table (resources/notes/rehearsal.md). A damaged or newer file, or one of another
model, raises `TableError`.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct

from core.errors import TableError
from core.events import ModelInfo
from core.rehearsal.streams import Stream
from core.system.files import write_atomic
from core.tables.prebuilt import shipped_dir
from core.tables.table_file import Arrays, InvalidFileError, check_arrays, decode, encode

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
    """The key of a prompt: a hash of its ids."""
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
        write_atomic(path, content, mode=0o644)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error}.", "Choose another path.") from error
    return found


def load_ids(path: Path, info: ModelInfo) -> AnswerIds:
    """The answers of the model `info` in a file. Raises `TableError`."""
    try:
        header, found = _read(path)
        if (header.family, header.model) != (info.family, info.name):
            raise InvalidFileError(
                f"holds answers of {header.model} ({header.family_name}), not of {info.name}"
            )
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    except InvalidFileError as refused:
        raise TableError(f"{path.name} {refused}.", "Choose a file that was made for this model.") from None
    return found


def shipped_ids(info: ModelInfo) -> AnswerIds | None:
    """The shipped answers of this model; None if there are none. Raises `TableError` for a damaged file.

    Files of other models are skipped.
    """
    for path in sorted(shipped_dir().glob(f"*{SUFFIX}")):
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
