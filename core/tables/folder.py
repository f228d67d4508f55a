"""TableFolder: the tables' files on disk: names, generations, locks, what is set aside.

    <family>-n<n>-<slots>.safetensors             a table; <family> is 16 digits of the fingerprint
    <family>-auto.safetensors                     what auto learned about its guesses
    <either>.previous                             the generation before
    <any>.refused-<time>                          set aside: could not be used, never deleted
    <family>.lock                                 held by the process that writes this family

Invariant: whenever a process dies, the file or its previous generation is there and whole. A file
is written under another name, synced, and takes the name in one rename. Files can be read by their
owner only. Only who holds a family's lock writes its files, and that includes setting aside.

Every error of the disk is a `TableError` that says what to do. Any one thread at a time.
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
from core.system.paths import shown
from core.tables.container import Refused, read_file, write_whole

_FINGERPRINT = re.compile(r"[0-9a-z]{1,64}")
PREVIOUS = ".previous"
_TABLE_NAME = re.compile(r"([0-9a-f]{16})-n(\d{1,2})-(\d{4,7})\.safetensors(?:\.previous)?")
_REFUSED = ".refused-"

T = TypeVar("T")


class TableKey(Struct, frozen=True, order=True):
    """Which table. `family` is the whole fingerprint, or its first 16 digits where only a name is known."""

    family: str
    n: int
    slots: int

    @property
    def file(self) -> str:
        return f"{self.family[:16]}-n{self.n}-{self.slots}.safetensors"


class Found(Struct):
    """What was read: the file's size, and a sentence for each file that could not be used."""

    size_bytes: int = 0
    notes: list[str] = []


class TableFolder:
    """`path` need not exist; it is made when something is first written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._locks: dict[str, FileLock] = {}

    # ---- who writes

    def lock(self, family: str) -> str:
        """Take the family's lock for this process. Returns why not, in words; empty if it is held."""
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
        self._sweep(name)
        return ""

    def unlock(self, family: str) -> None:
        """Give the lock back, if it is held."""
        lock = self._locks.pop(family[:16], None)
        if lock is not None:
            lock.release()

    @contextlib.contextmanager
    def writing(self, family: str) -> Iterator[None]:
        """Hold the lock for a moment, or longer if it was held already. Raises `TableError` if it cannot,
        and for what is no fingerprint: files are called by it.
        """
        if not _FINGERPRINT.fullmatch(family):
            raise TableError(
                f"“{shown(family)}” is no tokenizer family.",
                "`draftlight tables list` names those there are.",
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
        """The tables that have a file, of one family or of all, as named there."""
        keys = set()
        for name in self._names():
            match = _TABLE_NAME.fullmatch(name)
            if match and (family is None or match[1] == family[:16]):
                keys.add(TableKey(match[1], int(match[2]), int(match[3])))
        return sorted(keys)

    def read(
        self, name: str, family: str, decode: Callable[[bytes], T], most_bytes: int
    ) -> tuple[T | None, Found]:
        """The newest generation of `name` that `decode` does not refuse; None if there is none.

        What is refused is set aside if this process holds the lock. Raises nothing: what is wrong
        with the files is in the notes.
        """
        found = Found()
        for path in (self.path / name, self.path / f"{name}{PREVIOUS}"):
            try:
                content = read_file(path, most_bytes)
                held = decode(content)
            except FileNotFoundError:
                continue
            except OSError as error:
                found.notes.append(f"{path.name} could not be read: {_reason(error)}.")
                continue
            except Refused as refusal:
                aside = self._set_aside(path) if self.holds(family) else "left alone"
                found.notes.append(f"{path.name} {refusal}; it was {aside}.")
                continue
            found.size_bytes = len(content)
            return held, found
        return None, found

    def has_previous(self, name: str) -> bool:
        """Whether there is an older generation of `name`."""
        return (self.path / f"{name}{PREVIOUS}").is_file()

    def set_aside(self) -> tuple[str, ...]:
        """Names of the files that could not be used."""
        return tuple(sorted(name for name in self._names() if _REFUSED in name))

    # ---- writing

    def write(self, name: str, content: bytes) -> None:
        """Make `content` the newest generation of `name`, and the one before the previous.

        The lock must be held. Raises `TableError`; then the newest generation is what it was.
        """
        target = self.path / name
        try:
            write_whole(target, content, keep=self.path / f"{name}{PREVIOUS}")
        except OSError as error:
            raise TableError(
                f"{target} could not be saved: {_reason(error)}.",
                "Make room or make the folder writable. Until then the last saved table stays as it is.",
            ) from error

    def go_back(self, name: str) -> None:
        """Make the previous generation of `name` the newest. The lock must be held. Raises `TableError`."""
        try:
            os.replace(self.path / f"{name}{PREVIOUS}", self.path / name)
        except OSError as error:
            raise TableError(f"{name} has no previous generation to use: {_reason(error)}.") from error

    def erase(self, family: str) -> int:
        """Delete every file of the family but its lock, set aside and unfinished ones too; how many.

        The lock must be held. Raises `TableError` that names the first file that stays.
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

    def _sweep(self, name: str) -> None:
        """Remove what a process that died while saving left unfinished."""
        for unfinished in self._names():
            if unfinished.startswith(f".{name}-") and unfinished.endswith(".tmp"):
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
