"""Table files: their container, the format of an n-gram table, and their folder.

The container is safetensors with a typed header and a checksum over every byte. Its metadata holds two
strings: `draftlight`, the header as JSON, which starts with `format` and `version`, and `sha256`, the
checksum of the whole file with its own 64 digits as zeros. A change of any byte is therefore an error with a
message and never a wrong table. Errors are `InvalidFileError`, whose message continues a sentence that starts
with the file's name.

An n-gram table (used slots only):

    slots    uint32 [used]             the used slots, ascending
    tokens   uint32 [used]             the token in each
    ages     uint8  [used]             its age in epochs

A table of short n-grams is one with n 0, whose ages are counts, and in addition:

    tags     uint32 [used]             the tag of each slot's context

Every count, size, number and id is checked before a table is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from filelock import FileLock, Timeout
from msgspec import Meta, Struct
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from core.drafting.ngram_mod import ID_END, MULTIPLIER, Entries
from core.errors import TableError, reason_of
from core.events import TableFigures
from core.system.files import TEMPORARY, temporary_prefix, write_atomic
from core.system.paths import shown
from core.system.prepared import prepared
from core.system.private import FILE_MODE, make_folder

# ---- container: a header and arrays as one checked file


_HEADER_KEY = "draftlight"
_CHECKSUM_KEY = "sha256"
_NO_CHECKSUM = "0" * 64
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
            raise InvalidFileError(f"has an array “{name}” of the wrong size or type")


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
        return msgspec.json.decode(text, type=prepared(file_format))
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

Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Name = Annotated[str, Meta(max_length=200)]
_Time = Annotated[float, Meta(ge=0, lt=2**40)]


class TableHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """Header of a table file. Times are Unix seconds."""

    format: str
    version: int
    family: Fingerprint
    family_name: _Name
    n: Annotated[int, Meta(ge=0, le=32)]
    multiplier: int
    figures: TableFigures
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
    family: str, family_name: str, n: int, figures: TableFigures, created_s: float, updated_s: float
) -> TableHeader:
    """A header of the current version."""
    name = family_name[:200]
    return TableHeader(FORMAT, VERSION, family, name, n, MULTIPLIER, figures, created_s, updated_s)


def encode_table(table: SavedTable) -> bytes:
    """The file's content."""
    entries = table.entries
    arrays: Arrays = {"slots": entries.slots, "tokens": entries.tokens, "ages": entries.ages}
    if not table.header.n:
        arrays["tags"] = entries.tags
    return encode(table.header, arrays)


def decode_table(content: bytes, *, vocabulary: int = ID_END) -> SavedTable:
    """The table in `content`, with ids below `vocabulary`. Raises `InvalidFileError`."""
    header, arrays = decode(content, TableHeader, FORMAT, VERSION)
    used, slots = header.figures.used, header.slots
    if header.multiplier != MULTIPLIER:
        raise InvalidFileError("was written with another hash function")
    if not 2**12 <= slots <= 2**22 or slots & (slots - 1) or used > slots:
        raise InvalidFileError(f"has an impossible size: {used:,} entries in {slots:,} slots")
    types: dict[str, type[np.generic]] = {"slots": np.uint32, "tokens": np.uint32, "ages": np.uint8}
    if not header.n:
        types["tags"] = np.uint32
    check_arrays(arrays, {name: (dtype, (used,)) for name, dtype in types.items()})
    entries = Entries(**arrays)
    if used:
        if int(entries.slots[-1]) >= slots or bool((entries.slots[1:] <= entries.slots[:-1]).any()):
            raise InvalidFileError("has slots out of order or outside the table")
        if int(entries.tokens.max()) >= min(vocabulary, ID_END):
            raise InvalidFileError(f"holds ids outside the model's vocabulary of {vocabulary:,}")
        if not header.n and not entries.ages.all():
            raise InvalidFileError("holds pairs that never occurred")
    return SavedTable(header, entries)


# ---- folder
#
#     <family>-n<n>-<slots>.safetensors             a table; <family> is 16 digits of the fingerprint
#     <table>.previous                              the previous generation
#     <any>.refused-<time>                          set aside: could not be used, never deleted
#     <family>.lock                                 held by the process that writes this family
#
# Invariant: whenever a process dies, the file or its previous generation exists and is complete. A file is
# written under another name, synced, and renamed. Only the owner can read the files. Only the process that
# holds a family's lock writes, renames or sets aside its files.
#
# Every error of the disk is a `TableError` with advice. One thread at a time.


_FINGERPRINT = re.compile(r"[0-9a-z]{1,64}")
PREVIOUS = ".previous"
_TABLE_NAME = re.compile(r"([0-9a-f]{16})-n(\d{1,2})-(\d{4,7})\.safetensors(?:\.previous)?")
_FAMILY = re.compile(r"\.?([0-9a-f]{16})-")
_REFUSED = ".refused-"


class TableKey(Struct, frozen=True, order=True):
    """Identifies a table. `family` is the fingerprint, or its first 16 digits if only a file name is
    known.
    """

    family: str
    n: int
    slots: int

    @property
    def file(self) -> str:
        return f"{self.family[:16]}-n{self.n}-{self.slots}.safetensors"

    def check(self, header: TableHeader) -> None:
        """Raises `InvalidFileError` unless a file with this header holds this table."""
        if not header.family.startswith(self.family):
            raise InvalidFileError(f"belongs to another tokenizer family, {header.family_name}")
        if (header.n, header.slots) != (self.n, self.slots):
            raise InvalidFileError(
                f"contains a table of another shape (n {header.n}, {header.slots:,} slots)"
            )


class ReadResult(Struct):
    """The size of the file read, and a sentence for each file that could not be used."""

    size_bytes: int = 0
    notes: list[str] = []


class TableFolder:
    """`path` need not exist; it is created at the first write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._locks: dict[str, FileLock] = {}

    # ---- who writes

    def lock(self, family: str) -> str:
        """Acquires the family's lock for this process. Returns the reason for a failure; empty if it is
        held.
        """
        name = family[:16]
        if name in self._locks:
            return ""
        try:
            make_folder(self.path)
            lock = FileLock(self.path / f"{name}.lock", mode=FILE_MODE, thread_local=False)
            lock.acquire(blocking=False)
        except Timeout:
            return "another Draftlight is using these tables and saves them"
        except (OSError, NotImplementedError) as error:
            return f"{self.path} cannot be written ({reason_of(error)})"
        self._locks[name] = lock
        self._remove_unfinished(name)
        return ""

    def unlock(self, family: str) -> None:
        """Releases the lock, if it is held."""
        lock = self._locks.pop(family[:16], None)
        if lock is not None:
            lock.release()

    @contextlib.contextmanager
    def hold_lock(self, family: str) -> Iterator[None]:
        """Holds the lock within the block, and longer if it was held before.

        Raises `TableError` if the lock cannot be acquired, or if `family` is not a fingerprint, because file
        names contain it.
        """
        if not _FINGERPRINT.fullmatch(family):
            raise TableError(
                f"“{shown(family)}” is not the fingerprint of a tokenizer family.",
                "Run `draftlight tables list` to list the families.",
            )
        held = family[:16] in self._locks
        why_not = self.lock(family)
        if why_not:
            raise TableError(
                f"The tables cannot be changed: {why_not}.",
                "Close the other Draftlight, or use its Tables window."
                if "another" in why_not
                else "Make the folder writable.",
            )
        try:
            yield
        finally:
            if not held:
                self.unlock(family)

    def holds(self, family: str) -> bool:
        """Whether this process holds the family's lock."""
        return family[:16] in self._locks

    # ---- reading

    def keys(self, family: str | None = None) -> list[TableKey]:
        """The tables with a file, of one family or of all, by file name."""
        keys = set()
        for name in self._names():
            match = _TABLE_NAME.fullmatch(name)
            if match and (family is None or match[1] == family[:16]):
                keys.add(TableKey(match[1], int(match[2]), int(match[3])))
        return sorted(keys)

    def families(self) -> set[str]:
        """First 16 digits of the fingerprint of every family with a file, valid or not."""
        return {match[1] for name in self._names() if (match := _FAMILY.match(name))}

    def read(self, key: TableKey, vocabulary: int = ID_END) -> tuple[SavedTable | None, ReadResult]:
        """The newest valid generation of a table, with ids below `vocabulary`; None if there is none.

        Invalid files are set aside if this process holds the lock. Does not raise: problems are in the notes.
        """
        found = ReadResult()
        if not _FINGERPRINT.fullmatch(key.family):  # no file name may contain it
            return None, found
        for path in (self.path / key.file, self.path / f"{key.file}{PREVIOUS}"):
            try:
                content = read_file(path, MOST_BYTES)
                table = decode_table(content, vocabulary=vocabulary)
                key.check(table.header)
            except FileNotFoundError:
                continue
            except OSError as error:
                found.notes.append(f"{path.name} could not be read: {reason_of(error)}.")
                continue
            except InvalidFileError as refusal:
                aside = self._set_aside(path) if self.holds(key.family) else "left alone"
                found.notes.append(f"{path.name} {refusal}; it was {aside}.")
                continue
            found.size_bytes = len(content)
            if found.notes:
                found.notes.append("The previous save is used.")
            return table, found
        return None, found

    def has_previous(self, name: str) -> bool:
        """Whether `name` has a previous generation."""
        return (self.path / f"{name}{PREVIOUS}").is_file()

    def set_aside(self) -> tuple[str, ...]:
        """Names of the files that were set aside."""
        return tuple(sorted(name for name in self._names() if _REFUSED in name))

    # ---- writing

    def write(self, name: str, content: bytes) -> None:
        """Makes `content` the newest generation of `name`, and the current one the previous.

        The lock must be held. Raises `TableError`; the newest generation is then unchanged.
        """
        target = self.path / name
        try:
            write_atomic(target, content, keep=self.path / f"{name}{PREVIOUS}")
        except OSError as error:
            raise TableError(
                f"{target} could not be saved: {reason_of(error)}.",
                "Free some disk space or make the folder writable. The last saved table is unchanged.",
            ) from error

    def restore_previous(self, name: str) -> None:
        """Makes the previous generation of `name` the newest. The lock must be held. Raises `TableError`."""
        try:
            os.replace(self.path / f"{name}{PREVIOUS}", self.path / name)
        except OSError as error:
            raise TableError(
                f"The previous generation of {name} cannot be restored: {reason_of(error)}."
            ) from error

    def erase(self, family: str) -> int:
        """Deletes every file of the family except its lock, including set-aside and unfinished ones; returns
        their number.

        The lock must be held. Raises `TableError` that names the first file that could not be deleted.
        """
        count = 0
        for name in self._names():
            if name.lstrip(".").startswith(f"{family[:16]}-"):
                try:
                    os.unlink(self.path / name)
                except OSError as error:
                    raise TableError(
                        f"{self.path / name} could not be erased: {reason_of(error)}.",
                        "Make the folder writable and reset again.",
                    ) from error
                count += 1
        return count

    # ---- inside

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.path))
        except OSError:
            return []

    def _remove_unfinished(self, name: str) -> None:
        """Removes unfinished files of a process that died while saving."""
        for unfinished in self._names():
            if unfinished.startswith(temporary_prefix(Path(name))) and unfinished.endswith(TEMPORARY):
                with contextlib.suppress(OSError):
                    os.unlink(self.path / unfinished)

    def _set_aside(self, path: Path) -> str:
        stem = f"{path.name}{_REFUSED}{time.strftime('%Y%m%d-%H%M%S')}"
        taken = set(self._names())
        name = next(n for i in range(len(taken) + 1) if (n := f"{stem}-{i}" if i else stem) not in taken)
        try:
            os.rename(path, path.with_name(name))
        except OSError as error:
            return f"left alone ({reason_of(error)})"
        return f"set aside as {name}"
