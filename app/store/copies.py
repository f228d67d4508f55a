"""Copies of the chat database: backups, repaired and damaged ones, and changes that were not saved.

Every copy is written to a temporary name, synced and renamed, so that nothing under a final name is cut off.
A damaged database is never deleted, only renamed.

    chats.db                the database
    backups/chats-N.db      backups; the largest N is the newest, whatever the clock says
    chats-damaged.db        damaged databases, with their logs; chats-older.db: of another version
    chats-repaired.db       complete, and about to replace the database; see `finish_repair`
    chats-unsaved.db        changes that could not be saved when Draftlight closed
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from app.session.chats.conversation import Conversation
from app.session.chats.projects import Project
from app.store.chat_store import ChatStore, Job, Mark, deleted_row
from app.store.database import ChecksumError, Database
from app.store.documents import DocumentAdded
from app.store.faults import (
    UNREADABLE,
    EmptyStoreError,
    OtherStoreError,
    StoreError,
    is_damage,
)
from core.system.files import TEMPORARY, replacing, set_aside, sync_folder
from core.system.private import make_folder

# Backups kept. Three cover most of a day's work.
KEPT = 3
LEAST_AGE_S = 6 * 3600.0
IDLE_S = 60.0
TABLES = ("projects", "documents", "chats")
_SIDES = ("-wal", "-journal")
_PAGES_A_STEP = 256
# Reading a large database holds the interpreter lock; the window comes first.
_PAUSE_S = 0.005
_KEEPER_CLOSE_S = 2.0


# ---- reading from several copies


class RowIds(Struct, frozen=True):
    """Ids of rows by table. `len` counts them."""

    ids: Mapping[str, frozenset[str]]

    def __len__(self) -> int:
        return sum(map(len, self.ids.values()))


def rows_of(stores: Sequence[ChatStore]) -> RowIds:
    """Returns all rows that any of `stores` has, readable or not."""
    return RowIds({table: frozenset().union(*(each.ids(table) for each in stores)) for table in TABLES})


def job_of(store: ChatStore, table: str, row_id: str) -> Conversation | Project | DocumentAdded:
    """Reads a row as the job that writes it. Raises `KeyError`, or of `UNREADABLE` if it is damaged."""
    if table == "chats":
        return store.load(row_id)
    if table == "projects":
        return store.project_rows.load(row_id)
    return DocumentAdded(store.document_rows.load(row_id), store.document_rows.text(row_id))


def newest(
    stores: Sequence[ChatStore], table: str, row_id: str
) -> Conversation | Project | DocumentAdded | None:
    """Returns a row from the first of `stores` that has it whole; None if none has."""
    for store in stores:
        with contextlib.suppress(KeyError, *UNREADABLE):
            return job_of(store, table, row_id)
    return None


def gather(stores: Sequence[ChatStore], path: Path, without: Collection[tuple[str, str]] = ()) -> RowIds:
    """Writes all rows of `stores` but `without` to a new database at `path`.

    Each is read from the first store that has it whole. Returns the rows that none has whole. Raises
    `OSError` or `sqlite3.Error`.
    """
    lost: dict[str, frozenset[str]] = {}
    with ChatStore(path, log=False) as fresh:
        with fresh.transaction():
            for table in TABLES:
                missing = set()
                for row_id in sorted(set().union(*(each.ids(table, orphans=True) for each in stores))):
                    if (table, row_id) in without:
                        continue
                    job = newest(stores, table, row_id)
                    if job is None:
                        missing.add(row_id)
                    else:
                        fresh.do(row_id, job)
                lost[table] = frozenset(missing)
            for store in reversed(stores):
                with contextlib.suppress(*UNREADABLE):
                    fresh.set_mark(store.mark())
        fresh.check()
    return RowIds(lost)


@contextlib.contextmanager
def opened(paths: Sequence[Path]) -> Iterator[list[ChatStore]]:
    """Opens those of `paths` that can be opened, for reading."""
    with contextlib.ExitStack() as stack:
        stores = []
        for path in paths:
            with contextlib.suppress(StoreError, *UNREADABLE):
                stores.append(stack.enter_context(ChatStore(path, read_only=True)))
        yield stores


# ---- repair


def repair(stores: Sequence[ChatStore], path: Path, *, incomplete: bool) -> RowIds:
    """Makes `chats-repaired.db` beside `path` from `stores`.

    Raises `IncompleteError` if rows are lost, unless `incomplete`. Returns the lost rows. Raises `OSError`
    or `sqlite3.Error`.
    """
    with replacing(_repaired(path)) as file:
        temporary = Path(file.name)
        lost = gather(stores, temporary)
        if lost and not incomplete:
            raise IncompleteError(lost)
        with ChatStore(temporary, log=False) as store, store.transaction():
            store.connection.execute("INSERT OR REPLACE INTO facts VALUES ('repaired', 'complete')")
    return lost


class IncompleteError(Exception):
    """A repaired database would have fewer rows than the damaged one and its backups."""

    def __init__(self, lost: RowIds) -> None:
        super().__init__()
        self.lost = lost


def remove_temporary(path: Path) -> None:
    """Removes what a killed process left of copies of the database at `path`. Ignores errors."""
    for folder in (path.parent, path.parent / "backups"):
        for left in folder.glob(f".{path.stem}*{TEMPORARY}*"):
            with contextlib.suppress(OSError):
                left.unlink()


def finish_repair(path: Path) -> Path | None:
    """Replaces the database at `path` by `chats-repaired.db`, if it exists. Returns the old one's new path.

    A file of that name that was not completed by `repair` is set aside. Raises `OSError`.
    """
    fresh = _repaired(path)
    if not fresh.exists():
        return None
    try:
        with ChatStore(fresh, read_only=True) as store:
            store.check()
            complete = store.connection.execute("SELECT 1 FROM facts WHERE name = 'repaired'").fetchone()
    except (StoreError, *UNREADABLE):
        complete = None
    if not complete:
        set_aside(fresh, "damaged", _SIDES)
        return None
    # Also without a database: its log would be taken for one of the new file.
    old = set_aside(path, "damaged", _SIDES)
    os.replace(fresh, path)
    sync_folder(path.parent)
    return old


def set_database_aside(path: Path, why: str) -> Path:
    """Renames a database and its log. Raises `OSError`."""
    return set_aside(path, why, _SIDES)


def _repaired(path: Path) -> Path:
    return path.with_name(f"{path.stem}-repaired{path.suffix}")


# ---- permanent deletion


def erase(path: Path, rows: Collection[tuple[str, str]]) -> None:
    """Rewrites the database at `path` without `rows`, pairs of table and id, if it has the bytes of an id.

    Of a damaged database only what can be read whole is kept. Raises `OSError` or `sqlite3.Error`.
    """
    log = path.with_name(f"{path.name}-wal")
    content = path.read_bytes() + (log.read_bytes() if log.exists() else b"")
    if not any(row_id.encode() in content for _, row_id in rows):
        return
    try:
        with ChatStore(path, read_only=True) as store:
            _absorb_log(store, path)
            with replacing(path) as file:
                try:
                    _copy(store, Path(file.name))
                    _delete(Path(file.name), rows)
                except UNREADABLE as error:
                    if not is_damage(error):
                        raise
                    file.truncate(0)
                    gather([store], Path(file.name), rows)
    except OtherStoreError:
        return
    except (EmptyStoreError, *UNREADABLE) as error:
        if not is_damage(error):
            raise
        path.unlink()  # a row is in it, and nothing can be read
    _remove_sides(path)


def _absorb_log(store: ChatStore, path: Path) -> None:
    """Replaces the file of `store` by one with the transactions of its log, and removes the log.

    Applied to that file once more, after a crash, the log changes nothing. Applied to a rewritten file, it
    would damage it.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        with replacing(path) as file:
            _copy(store, Path(file.name))
        _remove_sides(path)


def _remove_sides(path: Path) -> None:
    for side in (*_SIDES, "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)


def _delete(path: Path, rows: Collection[tuple[str, str]]) -> None:
    with ChatStore(path, log=False) as store:
        with store.transaction():
            for table, row_id in rows:
                store.delete(table, row_id)
            store.forget_words()
        store.quick_check()
        store.connection.execute("VACUUM")  # pages may have older contents between their rows


def _copy(store: ChatStore, path: Path, proceed: Callable[[], None] = lambda: None) -> None:
    """Copies a database to an empty file, as a single file without a log."""
    with Database(path) as copy:
        store.connection.backup(copy.connection, pages=_PAGES_A_STEP, progress=lambda *_: proceed())
        copy.connection.execute("PRAGMA journal_mode = DELETE")


# ---- backups


class Backups:
    """The last `KEPT` copies of the database at `database`. For any thread."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.folder = database.parent / "backups"
        # A backup in progress must not have what is being deleted.
        self._lock = threading.Lock()

    def paths(self) -> list[Path]:
        """Returns the backups, the newest first."""
        found = self.folder.glob(f"{self._database.stem}-*{self._database.suffix}")
        return sorted(found, key=_number, reverse=True)

    def is_due(self, steady_s: float) -> bool:
        """Returns whether something changed since the newest backup, which is old enough at this time."""
        try:
            with ChatStore(self._database, read_only=True) as store:
                changes = store.mark().changes
        except (StoreError, *UNREADABLE):
            return False
        made = self._made()
        return changes != made.changes and not 0.0 <= steady_s - made.steady_s < LEAST_AGE_S

    def make(self, proceed: Callable[[], None] = lambda: None) -> Path:
        """Checks and copies the whole database, deletes copies older than the last `KEPT`; returns the copy.

        `proceed` is called every few milliseconds and may raise to stop. Raises `OSError`, and
        `sqlite3.Error` or `ChecksumError` if the database is damaged; then nothing has changed.
        """
        with self._lock:
            make_folder(self.folder)
            number = max(map(_number, self.paths()), default=(0, ""))[0] + 1
            path = self.folder / f"{self._database.stem}-{number:08}{self._database.suffix}"
            with ChatStore(self._database, read_only=True) as store, replacing(path) as file:
                store.check(proceed)
                _copy(store, Path(file.name), proceed)
            self._rotate(path)
        return path

    def _rotate(self, newest: Path) -> None:
        """Deletes all but the last `KEPT`, except those with a row that the newest does not have."""
        for old in self.paths()[KEPT:]:
            with opened([newest, old]) as stores:
                if len(rows_of(stores)) == len(rows_of(stores[:1])):
                    old.unlink(missing_ok=True)

    def erase(self, jobs: Mapping[str, Job]) -> None:
        """Carries out the deletions of `jobs` in all copies. Raises `OSError` or `sqlite3.Error`."""
        rows = [row for key, job in jobs.items() if (row := deleted_row(key, job))]
        with self._lock:
            for path in (*self.paths(), *self._database.parent.glob(f"{self._database.stem}-*.db")):
                erase(path, rows)

    def _made(self) -> Mark:
        for path in self.paths():
            with contextlib.suppress(StoreError, *UNREADABLE), ChatStore(path, read_only=True) as store:
                return store.mark()
        return Mark(-1)


def _number(path: Path) -> tuple[int, str]:
    """Returns a key that sorts backups; names that are not ours are the oldest."""
    number = path.stem.rpartition("-")[2]
    return (int(number) if len(number) == 8 and number.isdecimal() else 0), path.name


class _BusyError(Exception):
    """A chat is being saved, or Draftlight quits."""


class BackupKeeper:
    """Makes backups while nothing is saved, on its own thread, which calls `tell` with damage.

    `steady_s` returns the time of `SteadyClock`.
    """

    def __init__(
        self,
        backups: Backups,
        tell: Callable[[Exception], None],
        steady_s: Callable[[], float],
        *,
        idle_s: float = IDLE_S,
    ) -> None:
        self._backups = backups
        self._tell = tell
        self._steady_s = steady_s
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
        wait_s = self._idle_s
        while not self._closing.wait(wait_s):
            wait_s = self._quiet_since_s + self._idle_s - time.monotonic()
            if wait_s > 0:
                continue
            wait_s = self._idle_s
            try:
                if self._backups.is_due(self._steady_s()):
                    self._backups.make(self._proceed)
            except (_BusyError, OSError):
                pass  # later
            except (sqlite3.Error, ChecksumError) as error:
                if is_damage(error):
                    self._tell(error)
                    return

    def _proceed(self) -> None:
        if self._closing.wait(_PAUSE_S) or time.monotonic() - self._quiet_since_s < self._idle_s:
            raise _BusyError


# ---- changes that were not saved


class Unsaved:
    """The database beside the one at `database` with changes that could not be saved there."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.stem}-unsaved{database.suffix}")
        self._known = False  # what is in the file

    def write(self, jobs: Mapping[str, Job]) -> bool:
        """Writes the changes, but not the permanent deletions; False if the disk does not allow it."""
        try:
            with (
                replacing(self.path) as file,
                ChatStore(Path(file.name), log=False) as store,
                store.transaction(),
            ):
                for key, job in jobs.items():
                    if not deleted_row(key, job):
                        store.do(key, job)
        except (OSError, sqlite3.Error):
            return False
        self._known = True
        return True

    def read(self) -> list[Conversation | Project | DocumentAdded]:
        """Returns the changes; none without a file. Raises `OSError`, or as `UNREADABLE` if it is damaged."""
        jobs = []
        if self.path.exists():
            with ChatStore(self.path, read_only=True) as store:
                jobs = [
                    job_of(store, table, row_id) for table in TABLES for row_id in sorted(store.ids(table))
                ]
        self._known = True
        return jobs

    def remove(self) -> None:
        """Removes the file, unless it could not be read and not be set aside."""
        if self._known:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
