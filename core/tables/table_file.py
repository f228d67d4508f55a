"""The container of all table files, and the formats of an n-gram table and of `auto`'s calibration.

The container is safetensors with a typed header and a checksum over every byte. Its metadata holds two
strings: `draftlight`, the header as JSON, which starts with `format` and `version`, and `sha256`, the
checksum of the whole file with its own 64 digits as zeros. A change of any byte is therefore an error with a
message and never a wrong table. Errors are `InvalidFileError`, whose message continues a sentence that starts
with the file's name.

An n-gram table (used slots only) and a calibration:

    slots    uint32 [used]             the used slots, ascending
    tokens   uint32 [used]             the token in each
    ages     uint8  [used]             its age in epochs

    state    float64 [KINDS · 3 + 1]   `Calibration.state`: counts only, no token of any chat

Every count, size, number and id is checked before a table is made. The calibration's counts correct given
weights: with other weights, a saved state is out of date.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from core.drafting.calibration import WEIGHTS, WEIGHTS_LEARNED, Calibration
from core.drafting.ngram_table import ID_END, MULTIPLIER, Entries
from core.events import TableDay, TableFigures, TableTeacher

# ---- container: a header and arrays as one checked file


_HEADER_KEY = "draftlight"
_CHECKSUM_KEY = "sha256"
_NO_CHECKSUM = "0" * 64
# The history of a table takes some kilobytes.
_MOST_HEADER_BYTES = 1 << 20

H = TypeVar("H", bound=Struct)
Arrays = dict[str, NDArray[Any]]


class InvalidFileError(Exception):
    """The file cannot be used; the message says why and continues after the file's name."""


class _FormatVersion(Struct):
    format: str
    version: int


def encode(header: Struct, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The file's content. `header` has the fields `format` and `version`."""
    metadata = {_HEADER_KEY: msgspec.json.encode(header).decode(), _CHECKSUM_KEY: _NO_CHECKSUM}
    content = save(dict(arrays), metadata=metadata)
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(_checksum_field(_NO_CHECKSUM), _checksum_field(digest), 1)


def decode(content: bytes, header: type[H], file_format: str, version: int) -> tuple[H, Arrays]:
    """The header and arrays given to `encode`. Raises `InvalidFileError` if anything differs."""
    metadata = _metadata(content)
    stated = _decoded(metadata.get(_HEADER_KEY), _FormatVersion)
    if stated is None or stated.format != file_format:
        raise InvalidFileError("is not a Draftlight file of this kind")
    digest = metadata.get(_CHECKSUM_KEY)
    if (
        not isinstance(digest, str)
        or len(digest) != len(_NO_CHECKSUM)
        or _checksum(content, digest) != digest
    ):
        raise InvalidFileError("is damaged: its checksum does not match")
    if stated.version != version:
        raise InvalidFileError(
            f"has format version {stated.version}; this Draftlight reads version {version}"
        )
    typed = _decoded(metadata[_HEADER_KEY], header)
    if typed is None:
        raise InvalidFileError("has an invalid header")
    try:
        return typed, load(content)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise InvalidFileError(f"holds arrays that cannot be read ({error})") from None


def check_arrays(arrays: Arrays, shapes: Mapping[str, tuple[type[np.generic], tuple[int, ...]]]) -> None:
    """Raises `InvalidFileError` unless the arrays have exactly these names, dtypes and shapes."""
    if arrays.keys() != shapes.keys():
        raise InvalidFileError("does not contain the expected arrays")
    for name, (dtype, shape) in shapes.items():
        if arrays[name].dtype != dtype or arrays[name].shape != shape:
            raise InvalidFileError(f"has an array an array “{name}” of the wrong size or type")


def _metadata(content: bytes) -> dict[str, Any]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(_MOST_HEADER_BYTES, len(content) - 8):
        raise InvalidFileError("is damaged: it ends too early")
    try:
        metadata = msgspec.json.decode(content[8 : 8 + length], type=dict[str, Any]).get("__metadata__")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidFileError("is damaged: its header cannot be read") from None
    return metadata if isinstance(metadata, dict) else {}


def _checksum_field(digest: str) -> bytes:
    # Quotes inside the header's JSON are escaped, so this occurs once.
    return f'"{_CHECKSUM_KEY}":"{digest}"'.encode()


def _checksum(content: bytes, digest: str) -> str:
    return hashlib.sha256(
        content.replace(_checksum_field(digest), _checksum_field(_NO_CHECKSUM), 1)
    ).hexdigest()


def _decoded(text: object, file_format: type[H]) -> H | None:
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text, type=file_format)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def read_file(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file. Raises `InvalidFileError` for other or larger files, and `OSError`."""
    # Non-blocking: opening a pipe without a writer must not hang.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidFileError("is not a regular file")
        if status.st_size > most_bytes:
            raise InvalidFileError(f"is larger than {most_bytes // 1024:,} KiB, the limit for such a file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)


# ---- learned tables


FORMAT = "draftlight-table"
VERSION = 1
# The largest table takes 38 MB when full.
MOST_BYTES = 64 * 1024 * 1024
DAYS_KEPT = 60
_TEACHERS_KEPT = 32

Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Name = Annotated[str, Meta(max_length=200)]
_Count = Annotated[int, Meta(ge=0, lt=2**62)]
_Time = Annotated[float, Meta(ge=0, lt=2**40)]


class _Figures(TableFigures, frozen=True):
    """Bounds for counters from a file."""

    used: _Count = 0
    slots: Annotated[int, Meta(ge=2**12, le=2**22)] = 2**12
    inserts: _Count = 0
    overwrites: _Count = 0
    lookups: _Count = 0
    hits: _Count = 0
    tested: _Count = 0
    accepted: _Count = 0


class _Teacher(TableTeacher, frozen=True):
    model: _Name
    entries: _Count


class _Day(TableDay, frozen=True):
    day: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    used: _Count
    tested: _Count
    accepted: _Count


class TableHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """Header of a table file. Times are Unix seconds; `days` and `learned_from` as in `TableInfo`."""

    format: str
    version: int
    family: Fingerprint
    family_name: _Name
    n: Annotated[int, Meta(ge=2, le=32)]
    multiplier: int
    figures: _Figures
    learned_from: Annotated[tuple[_Teacher, ...], Meta(max_length=_TEACHERS_KEPT)]
    days: Annotated[tuple[_Day, ...], Meta(max_length=DAYS_KEPT)]
    created_s: _Time
    updated_s: _Time

    @property
    def slots(self) -> int:
        return self.figures.slots


class SavedTable(Struct, frozen=True):
    """A table's content and its header, whose `figures.used` is the number of entries."""

    header: TableHeader
    entries: Entries


def make_header(
    family: str,
    family_name: str,
    n: int,
    figures: TableFigures,
    learned_from: tuple[TableTeacher, ...],
    days: tuple[TableDay, ...],
    created_s: float,
    updated_s: float,
) -> TableHeader:
    """A header of the current version with the most active models and the latest days."""
    teachers = sorted(learned_from, key=lambda teacher: -teacher.entries)[:_TEACHERS_KEPT]
    return TableHeader(
        FORMAT,
        VERSION,
        family,
        family_name[:200],
        n,
        MULTIPLIER,
        _Figures(**{name: getattr(figures, name) for name in TableFigures.__struct_fields__}),
        tuple(_Teacher(teacher.model[:200], teacher.entries) for teacher in teachers),
        tuple(_Day(day.day, day.used, day.tested, day.accepted) for day in days[-DAYS_KEPT:]),
        created_s,
        updated_s,
    )


def encode_table(table: SavedTable) -> bytes:
    """The file's content."""
    entries = table.entries
    return encode(table.header, {"slots": entries.slots, "tokens": entries.tokens, "ages": entries.ages})


def decode_table(content: bytes, *, vocabulary: int = ID_END) -> SavedTable:
    """The table in `content`, with ids below `vocabulary`. Raises `InvalidFileError`."""
    header, arrays = decode(content, TableHeader, FORMAT, VERSION)
    used, slots = header.figures.used, header.slots
    if header.multiplier != MULTIPLIER:
        raise InvalidFileError("was written with another hash function")
    if slots & (slots - 1) or used > slots:
        raise InvalidFileError(f"has an impossible size: {used:,} entries in {slots:,} slots")
    check_arrays(
        arrays, {"slots": (np.uint32, (used,)), "tokens": (np.uint32, (used,)), "ages": (np.uint8, (used,))}
    )
    entries = Entries(arrays["slots"], arrays["tokens"], arrays["ages"])
    if used:
        if int(entries.slots[-1]) >= slots or bool((entries.slots[1:] <= entries.slots[:-1]).any()):
            raise InvalidFileError("has slots out of order or outside the table")
        if int(entries.tokens.max()) >= min(vocabulary, ID_END):
            raise InvalidFileError(f"holds ids outside the model's vocabulary of {vocabulary:,}")
    return SavedTable(header, entries)


CALIBRATION_FORMAT = "draftlight-calibration"
CALIBRATION_VERSION = 1
MOST_CALIBRATION_BYTES = 64 * 1024


class CalibrationHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """`basis` identifies the weights that the counts correct."""

    format: str
    version: int
    family: Fingerprint
    family_name: Annotated[str, Meta(max_length=200)]
    basis: str
    updated_s: float


def basis() -> str:
    """Identifies the weights of this version."""
    return hashlib.sha256(msgspec.json.encode((WEIGHTS, WEIGHTS_LEARNED))).hexdigest()[:16]


def encode_calibration(
    state: NDArray[np.float64], *, family: str, family_name: str, updated_s: float
) -> bytes:
    """The file's content."""
    header = CalibrationHeader(
        CALIBRATION_FORMAT, CALIBRATION_VERSION, family, family_name[:200], basis(), updated_s
    )
    return encode(header, {"state": state})


def decode_calibration(content: bytes) -> tuple[CalibrationHeader, NDArray[np.float64] | None]:
    """Header and state; the state is None if it corrects other weights. Raises `InvalidFileError`."""
    header, arrays = decode(content, CalibrationHeader, CALIBRATION_FORMAT, CALIBRATION_VERSION)
    if header.basis != basis():
        return header, None
    state: NDArray[Any] = Calibration().state()
    check_arrays(arrays, {"state": (np.float64, state.shape)})
    try:
        Calibration().restore(arrays["state"])
    except ValueError as error:
        raise InvalidFileError(f"has invalid counts ({error})") from None
    return header, arrays["state"]
