"""Backups: the last three whole copies of the chat database, in a folder beside it.

A copy is made only of a database that was read to its end without damage, so a backup is always whole;
a damaged database never takes the place of a good copy.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from app.store.chat_store import ChatStore
from app.store.recovery.damage import UNREADABLE
from app.store.recovery.faults import StoreError

KEPT = 3
# Three of them reach back over most of a day's work.
LEAST_AGE_S = 6 * 3600.0
_PAGES_A_STEP = 256


class Fuller(Struct, frozen=True):
    """A backup that has chats which are missing now, and their ids."""

    path: Path
    chats: tuple[str, ...]


class Backups:
    """Of the database at `database`. `make()` may run on any thread; one process at a time."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.folder = database.parent / "backups"

    def paths(self) -> list[Path]:
        """Newest first."""
        return sorted(self.folder.glob(f"{self._database.stem}-*{self._database.suffix}"), reverse=True)

    def is_due(self, now_s: float) -> bool:
        """Whether the newest is old enough (`now_s` since 1970), and older than the database."""
        newest = next(iter(self.paths()), None)
        try:
            made_s = newest.stat().st_mtime if newest else 0.0
            wal = self._database.with_name(f"{self._database.name}-wal")
            changed_s = max(path.stat().st_mtime for path in (self._database, wal) if path.exists())
        except (OSError, ValueError):
            return False
        return now_s - made_s >= LEAST_AGE_S and changed_s > made_s

    def make(self, proceed: Callable[[], None] = lambda: None) -> Path:
        """Read the whole database, copy it, and drop all but the last `KEPT`; where the copy is.

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
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, that can be read anywhere
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
        """The newest backup with chats that are not among `known` and were not deleted."""
        for path in self.paths():
            try:
                store = ChatStore(path, read_only=True)
            except (StoreError, *UNREADABLE):
                continue
            try:
                found = [each.id for each in store.summaries() if each.turns and not each.deleted]
            except UNREADABLE:
                continue
            finally:
                store.close()
            if missing := tuple(chat_id for chat_id in found if chat_id not in known):
                return Fuller(path, missing)
        return None
