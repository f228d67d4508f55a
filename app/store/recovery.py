"""Recovery: backups of the chat database, the number of chats, and chats that could not be saved.

A backup is made only of a database that was read to its end without damage, so every backup is intact and
damage never replaces a good copy. `BackupKeeper` makes one while nothing is saved, on its own thread and
connection; it also reports damage in chats that are not opened.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct

from app.session.chats.conversation import Conversation
from app.store.chat_files import from_json, to_json
from app.store.chat_store import ChatStore
from app.store.database import ChecksumError
from app.store.faults import StoreError, TransferError
from app.store.salvage import UNREADABLE
from core.system.files import replacing

# Backups kept. Three cover most of a day's work.
KEPT = 3
LEAST_AGE_S = 6 * 3600.0
_PAGES_A_STEP = 256
IDLE_S = 60.0
# Reading a large database holds the interpreter lock; the window comes first.
_PAUSE_S = 0.005
_KEEPER_CLOSE_S = 2.0
# A hanging disk also blocks this file, and a closing window does not wait for it.
_WRITE_S = 2.0


class _File(Struct, frozen=True):
    chats: int


class ChatCount:
    """The number of chats, stored beside their database, so that an emptied database is noticed.

    Invariant: the number never exceeds the chats in the database, however a process ends: it is lowered
    before a deletion is committed and raised after an insertion. Only the process with the lock writes it.
    """

    def __init__(self, database: Path) -> None:
        self._path = database.with_suffix(".count")

    def read(self) -> int | None:
        """Returns the number; None if it was never written or cannot be read."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_File).chats
        except (OSError, ValueError):
            return None

    def write(self, chats: int) -> None:
        """Stores `chats`. Raises `OSError`."""
        with replacing(self._path, durable=False) as file:
            file.write(msgspec.json.encode(_File(max(0, chats))))

    def add(self, chats: int) -> None:
        """Adds `chats`, which may be negative. Raises `OSError`."""
        if chats and (known := self.read()) is not None:
            self.write(known + chats)


class Fuller(Struct, frozen=True):
    """A backup with chats that are missing now, and their ids."""

    path: Path
    chats: tuple[str, ...]


class Backups:
    """The last `KEPT` copies of the database at `database`. `make()` may run on any thread."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.folder = database.parent / "backups"

    def paths(self) -> list[Path]:
        """Returns the backups, newest first."""
        return sorted(self.folder.glob(f"{self._database.stem}-*{self._database.suffix}"), reverse=True)

    def is_due(self, now_s: float) -> bool:
        """Returns whether the newest backup is old enough at the Unix time `now_s`, and out of date."""
        newest = next(iter(self.paths()), None)
        try:
            made_s = newest.stat().st_mtime if newest else 0.0
            wal = self._database.with_name(f"{self._database.name}-wal")
            changed_s = max(path.stat().st_mtime for path in (self._database, wal) if path.exists())
        except (OSError, ValueError):
            return False
        return now_s - made_s >= LEAST_AGE_S and changed_s > made_s

    def make(self, proceed: Callable[[], None] = lambda: None) -> Path:
        """Checks and copies the whole database, deletes all but the last `KEPT` copies; returns the copy.

        `proceed` is called every few milliseconds and may raise to stop. Raises `OSError`, and
        `sqlite3.Error` or `ChecksumError` if the database is damaged; then nothing has changed.
        """
        self.folder.mkdir(exist_ok=True)
        stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
        path = self.folder / f"{self._database.stem}-{stamp}{self._database.suffix}"
        fresh = path.with_suffix(".part")
        store = ChatStore(self._database, read_only=True)
        try:
            store.check(proceed)
            fresh.unlink(missing_ok=True)
            copy = sqlite3.connect(fresh)
            try:
                store.connection.backup(copy, pages=_PAGES_A_STEP, progress=lambda *_: proceed())
                copy.execute("PRAGMA journal_mode = DELETE")  # a single file
            finally:
                copy.close()
            os.replace(fresh, path)
        finally:
            store.close()
            fresh.unlink(missing_ok=True)
        now_s = time.time()
        os.utime(path, (now_s, now_s))
        for old in self.paths()[KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def fuller(self, known: frozenset[str]) -> Fuller | None:
        """Returns the newest backup with chats that are not in `known` and were not deleted."""
        for path in self.paths():
            try:
                store = ChatStore(path, read_only=True)
            except (StoreError, *UNREADABLE):
                continue
            try:
                gone = {each.id for each in store.projects() if each.deleted and each.with_chats}
                found = [
                    each.id
                    for each in store.summaries()
                    if each.turns and not each.deleted and each.project not in gone
                ]
            except UNREADABLE:
                continue
            finally:
                store.close()
            if missing := tuple(chat_id for chat_id in found if chat_id not in known):
                return Fuller(path, missing)
        return None


class _BusyError(Exception):
    """A chat is being saved, or Draftlight quits."""


class BackupKeeper:
    """Starts its thread, which calls `tell` with damage."""

    def __init__(
        self, backups: Backups, tell: Callable[[Exception], None], *, idle_s: float = IDLE_S
    ) -> None:
        self._backups = backups
        self._tell = tell
        self._idle_s = idle_s
        self._quiet_since_s = time.monotonic()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="draftlight-backups", daemon=True)
        self._thread.start()

    def busy(self) -> None:
        """Postpones the backup: a chat is being saved."""
        self._quiet_since_s = time.monotonic()

    def close(self) -> None:
        """Ends the thread and abandons a backup in progress."""
        self._closing.set()
        self._thread.join(_KEEPER_CLOSE_S)

    # ---- on the thread

    def _run(self) -> None:
        while not self._closing.wait(self._wait_s()):
            if self._wait_s() > 0 or not self._backups.is_due(time.time()):
                continue
            try:
                self._backups.make(self._proceed)
            except (_BusyError, OSError):
                pass  # later
            except (sqlite3.Error, ChecksumError) as error:
                self._tell(error)
                return

    def _wait_s(self) -> float:
        """Returns the seconds until nothing was saved for long enough, or until the next attempt."""
        left_s = self._quiet_since_s + self._idle_s - time.monotonic()
        if left_s <= 0 and not self._backups.is_due(time.time()):
            return self._idle_s
        return max(0.0, left_s)

    def _proceed(self) -> None:
        if self._closing.wait(_PAUSE_S) or time.monotonic() - self._quiet_since_s < self._idle_s:
            raise _BusyError


class Unsaved:
    """The file beside the database with chats that could not be saved when Draftlight closed.

    It is an ordinary chat file, so it can be imported by hand. It is renamed once its chats are in the
    database. Only the process that saves uses it.
    """

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.stem}-unsaved.json")
        self.set_aside: Path | None = None  # a damaged file's new path

    def write(self, chats: Iterable[Conversation], timeout_s: float = _WRITE_S) -> bool:
        """Adds `chats` to the file. False if that fails or takes longer than `timeout_s`."""
        written = threading.Event()
        chosen = tuple(chats)

        def run() -> None:
            try:
                self._write(chosen)
            except OSError:
                return
            written.set()

        thread = threading.Thread(target=run, name="draftlight-unsaved", daemon=True)
        thread.start()
        thread.join(timeout_s)
        return written.is_set()

    def read(self) -> tuple[Conversation, ...]:
        """Returns the chats of the file. A damaged file is renamed and returns none. Raises `OSError`."""
        try:
            return from_json(self.path.read_bytes())
        except FileNotFoundError:
            return ()
        except TransferError:
            self.set_aside = self._rename("damaged")
            return ()

    def taken(self) -> None:
        """Renames the file: its chats are in the database. Raises `OSError`."""
        if self.path.exists():
            self._rename("taken")

    def _write(self, chats: tuple[Conversation, ...]) -> None:
        found = {chat.id: chat for chat in (*self.read(), *chats)}
        with replacing(self.path) as file:
            file.write(to_json(found.values()))

    def _rename(self, why: str) -> Path:
        """Renames the file to a free name and returns it, so that two damaged files are both kept."""
        names = (f"{self.path.stem}-{why}{f'-{number}' if number else ''}.json" for number in count())
        free = next(path for name in names if not (path := self.path.with_name(name)).exists())
        os.replace(self.path, free)
        return free
