"""TableFolder: the tables' files on disk, with generations, locks and quarantine.

    <family>-n<n>-<slots>.safetensors             a table; <family> is 16 digits of the fingerprint
    <family>-auto.safetensors                     what auto learned about its guesses
    <either>.previous                             the previous generation
    <any>.refused-<time>                          set aside: could not be used, never deleted
    <family>.lock                                 held by the process that writes this family

Invariant: whenever a process dies, the file or its previous generation exists and is complete. A file is
written under another name, synced, and renamed. Only the owner can read the files. Only the process that
holds a family's lock writes, renames or sets aside its files.

Every error of the disk is a `TableError` with advice. One thread at a time.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout
from msgspec import Struct

from core.errors import TableError
from core.system.files import TEMPORARY, temporary_prefix, write_atomic
from core.system.paths import shown
from core.tables.table_file import InvalidFileError, read_file

_FINGERPRINT = re.compile(r"[0-9a-z]{1,64}")
PREVIOUS = ".previous"
_TABLE_NAME = re.compile(r"([0-9a-f]{16})-n(\d{1,2})-(\d{4,7})\.safetensors(?:\.previous)?")
_REFUSED = ".refused-"

T = TypeVar("T")


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
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(self.path / f"{name}.lock", mode=0o600, thread_local=False)
            lock.acquire(blocking=False)
        except Timeout:
            return "another Draftlight is using these tables and saves them"
        except (OSError, NotImplementedError) as error:
            return f"{self.path} cannot be written ({_reason(error)})"
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

    def read(
        self, name: str, family: str, decode: Callable[[bytes], T], most_bytes: int
    ) -> tuple[T | None, ReadResult]:
        """The newest generation of `name` that `decode` accepts; None if there is none.

        Invalid files are set aside if this process holds the lock. Does not raise: problems are in the notes.
        """
        found = ReadResult()
        if not _FINGERPRINT.fullmatch(family):  # no file name may contain it
            return None, found
        for path in (self.path / name, self.path / f"{name}{PREVIOUS}"):
            try:
                content = read_file(path, most_bytes)
                held = decode(content)
            except FileNotFoundError:
                continue
            except OSError as error:
                found.notes.append(f"{path.name} could not be read: {_reason(error)}.")
                continue
            except InvalidFileError as refusal:
                aside = self._set_aside(path) if self.holds(family) else "left alone"
                found.notes.append(f"{path.name} {refusal}; it was {aside}.")
                continue
            found.size_bytes = len(content)
            return held, found
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
                f"{target} could not be saved: {_reason(error)}.",
                "Free some disk space or make the folder writable. The last saved table is unchanged.",
            ) from error

    def restore_previous(self, name: str) -> None:
        """Makes the previous generation of `name` the newest. The lock must be held. Raises `TableError`."""
        try:
            os.replace(self.path / f"{name}{PREVIOUS}", self.path / name)
        except OSError as error:
            raise TableError(
                f"The previous generation of {name} cannot be restored: {_reason(error)}."
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
                        f"{self.path / name} could not be erased: {_reason(error)}.",
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
            return f"left alone ({_reason(error)})"
        return f"set aside as {name}"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
