"""Copies of the chat database: backups, repaired and damaged ones, and changes that were not saved.

Every copy is written to a temporary name, synced and renamed, so that nothing under a final name is cut off.
A damaged database is only renamed, until a permanent deletion, which also rewrites or deletes it (`erase`).

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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from app.store.chat_store import TABLES, ChatStore, Key, Mark, Record, key_of
from app.store.database import Database, obstacle_at
from app.store.faults import UNREADABLE, EmptyStoreError, OtherStoreError, StoreError, is_damage
from app.store.salvage import read, salvage
from core.system.files import TEMPORARY, replacing, set_aside, sync_folder
from core.system.private import make_folder

# Backups kept. Three cover most of a day's work.
KEPT = 3
LEAST_AGE_S = 6 * 3600.0
_SIDES = ("-wal", "-journal")
_PAGES_A_STEP = 256


# ---- reading from several copies


@contextlib.contextmanager
def opened(paths: Sequence[Path]) -> Iterator[list[ChatStore]]:
    """Opens those of `paths` that can be opened, for reading."""
    with contextlib.ExitStack() as stack:
        stores = []
        for path in paths:
            with contextlib.suppress(StoreError, *UNREADABLE):
                stores.append(stack.enter_context(ChatStore(path, read_only=True)))
        yield stores


def keys_of(stores: Sequence[ChatStore]) -> set[Key]:
    """Returns the keys of all rows that any of `stores` has, readable or not."""
    return set[Key]().union(*(store.keys() for store in stores))


def newest(stores: Sequence[ChatStore], key: Key) -> Record | None:
    """Returns a record from the first of `stores` that has it whole; None if none has."""
    for store in stores:
        with contextlib.suppress(KeyError, *UNREADABLE):
            return store.get(key)
    return None


def gather(stores: Sequence[ChatStore], path: Path, without: Collection[Key] = ()) -> set[Key]:
    """Writes all records of `stores` but `without` to a new database at `path`.

    Each is read from the first store that has it whole. Returns the keys of those that none has whole.
    Raises `OSError` or `sqlite3.Error`.
    """
    lost = set()
    with ChatStore(path, log=False) as fresh:
        with fresh.transaction():
            for key in sorted(keys_of(stores).difference(without)):
                record = newest(stores, key)
                if record is None:
                    lost.add(key)
                else:
                    fresh.do(key, record)
            mark = mark_of(stores)
            fresh.set_mark(replace(mark, changes=mark.changes + 1))
        fresh.check()
    return lost


def mark_of(stores: Sequence[ChatStore]) -> Mark:
    """Returns the mark of the first store that has one."""
    for store in stores:
        with contextlib.suppress(*UNREADABLE):
            if (mark := store.mark()).changes:
                return mark
    return Mark()


# ---- repair


class IncompleteError(Exception):
    """A repaired database would have `lost` records fewer than the damaged one and its backups."""

    def __init__(self, lost: int) -> None:
        super().__init__()
        self.lost = lost


def repair(
    stores: Sequence[ChatStore], path: Path, waiting: Collection[Key], *, incomplete: bool
) -> set[Key]:
    """Makes `chats-repaired.db` in the folder of `path` from `stores`; returns the keys of lost records.

    Those that are `waiting` to be written whole are not lost. Raises `IncompleteError` if there are any,
    unless `incomplete`, and `OSError` or `sqlite3.Error`.
    """
    with replacing(_repaired(path)) as file:
        lost = gather(stores, Path(file.name)).difference(waiting)
        if lost and not incomplete:
            raise IncompleteError(len(lost))
    return lost


def finish_repair(path: Path) -> Path | None:
    """Replaces the database at `path` by `chats-repaired.db`, if it exists. Returns the old one's new path.

    A file with that name that `repair` did not complete is set aside. Raises `OSError`.
    """
    fresh = _repaired(path)
    if not fresh.exists():
        return None
    try:
        with ChatStore(fresh, read_only=True) as store:
            store.check()
            complete = store.mark().changes > 0  # as `gather` leaves it
    except (StoreError, *UNREADABLE):
        complete = False
    if not complete:
        set_database_aside(fresh, "damaged")
        return None
    # Also without a database: its log would be taken for one of the new file.
    old = set_database_aside(path, "damaged")
    os.replace(fresh, path)
    sync_folder(path.parent)
    return old


def remove_temporary(path: Path) -> None:
    """Removes what a killed process left of copies of the database at `path`. Ignores errors."""
    for folder in (path.parent, path.parent / "backups"):
        for left in folder.glob(f".{path.stem}*{TEMPORARY}*"):
            with contextlib.suppress(OSError):
                left.unlink()


def set_database_aside(path: Path, why: str) -> Path:
    """Renames a database and its log. Raises `OSError`."""
    return set_aside(path, why, _SIDES)


def _repaired(path: Path) -> Path:
    return path.with_name(f"{path.stem}-repaired{path.suffix}")


# ---- permanent deletion


def erase(path: Path, keys: Collection[Key]) -> set[str]:
    """Rewrites the database at `path` without `keys`, as one file, if it has the bytes of an id.

    Of a damaged database only complete records are kept. Returns the known images of its chats.
    Raises `OSError` or `sqlite3.Error`.
    """
    images: set[str] = set()
    content = _content(path)
    if not any(row_id.encode() in content for _, row_id in keys):
        return images
    try:
        with ChatStore(path, read_only=True) as store, replacing(path) as file:
            with contextlib.suppress(*UNREADABLE):
                images = store.images_of(keys)
            try:
                _copy(store, Path(file.name))
                _delete(Path(file.name), keys)
            except UNREADABLE as error:
                if not is_damage(error):
                    raise
                file.truncate(0)
                _gather_readable(path, [store], Path(file.name), keys)
            _remove_sides(path)  # first, because a log that is left would be applied to the new file
    except OtherStoreError:
        pass
    except (EmptyStoreError, *UNREADABLE) as error:
        if not is_damage(error):
            raise
        with replacing(path) as file:
            is_left = _gather_readable(path, [], Path(file.name), keys)
            _remove_sides(path)
        if not is_left:
            path.unlink()  # a row is in it, and nothing can be read
    return images


def _content(path: Path) -> bytes:
    """Returns the bytes of a database and its log. Raises `OSError`."""
    log = path.with_name(f"{path.name}-wal")
    return path.read_bytes() + (log.read_bytes() if log.exists() else b"")


def _gather_readable(
    damaged: Path, stores: Sequence[ChatStore], path: Path, without: Collection[Key]
) -> bool:
    """Writes what `stores` and the whole pages of `damaged` have; returns whether that is anything."""
    with salvage(read(damaged), []).store as salvaged:
        gather([*stores, salvaged], path, without)
        return bool(keys_of([*stores, salvaged]).difference(without))


def _remove_sides(path: Path) -> None:
    for side in (*_SIDES, "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)


def _delete(path: Path, keys: Collection[Key]) -> None:
    with ChatStore(path, log=False) as store:
        with store.transaction():
            for key in keys:
                store.do(key, None)
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
    """The last `KEPT` copies of the database at `database`. For the writer's thread."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.folder = database.parent / "backups"

    def paths(self) -> list[Path]:
        """Returns the backups, the newest first."""
        found = self.folder.glob(f"{self._database.stem}-*{self._database.suffix}")
        return sorted(found, key=_number, reverse=True)

    def is_due(self, steady_s: float) -> bool:
        """Returns whether something changed since the newest backup, which is old enough at this time."""
        with opened([self._database]) as stores, opened(self.paths()) as backups:
            made = mark_of(backups[:1])
            changed = bool(stores) and mark_of(stores).changes != made.changes
            return changed and not 0.0 <= steady_s - made.steady_s < LEAST_AGE_S

    def make(self, proceed: Callable[[], None] = lambda: None) -> Path:
        """Checks and copies the whole database, deletes copies older than the last `KEPT`; returns the copy.

        `proceed` is called every few milliseconds and may raise to stop. Raises `OSError`, and
        `sqlite3.Error` or `ChecksumError` if the database is damaged; then nothing has changed.
        """
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
                if keys_of(stores) == keys_of(stores[:1]):
                    old.unlink(missing_ok=True)

    def erase(self, keys: Collection[Key]) -> set[str]:
        """Deletes the rows with `keys` in all copies; returns the images of their chats.

        Raises `OSError` or `sqlite3.Error`.
        """
        return set[str]().union(*(erase(path, keys) for path in self._copies()))

    def without_images(self, hashes: set[str]) -> set[str]:
        """Returns those of `hashes` that no copy refers to. Raises `OSError` or `sqlite3.Error`.

        A damaged copy refers to each hash that occurs in its bytes: a reference is a row (chat, place, hash),
        too short to be divided among pages. Intact copies may have hashes in free pages, which don't count.
        """
        for path in self._copies() if hashes else ():
            try:
                with ChatStore(path, read_only=True) as store:
                    hashes = hashes - store.image_hashes()
            except (EmptyStoreError, OtherStoreError, *UNREADABLE) as error:
                if not isinstance(error, OtherStoreError) and not is_damage(error):
                    raise
                content = _content(path)
                hashes = {hash for hash in hashes if hash.encode() not in content}
        return hashes

    def _copies(self) -> Iterator[Path]:
        """Yields all copies. One that was set aside in place of a database may be a folder or a pipe."""
        for path in (*self.paths(), *self._database.parent.glob(f"{self._database.stem}-*.db")):
            if not obstacle_at(path):
                yield path


def _number(path: Path) -> tuple[int, str]:
    """Returns a key that sorts backups; names that are not ours are the oldest."""
    number = path.stem.rpartition("-")[2]
    return (int(number) if len(number) == 8 and number.isdecimal() else 0), path.name


# ---- changes that were not saved


class Unsaved:
    """The database, in the folder of `database`, with changes that could not be saved there."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.stem}-unsaved{database.suffix}")
        self._known = False  # the file's content

    def write(self, records: Iterable[Record]) -> bool:
        """Writes `records` in place of the earlier ones; False if not all of them could be written."""
        try:
            with (
                replacing(self.path) as file,
                ChatStore(Path(file.name), log=False) as store,
                store.transaction(),
            ):
                refused = [record for record in records if store.attempt(key_of(record), record)]
        except (OSError, sqlite3.Error):
            return False
        self._known = True
        return not refused

    def read(self) -> list[Record]:
        """Returns the changes; none without a file.

        Raises `OSError`, or `KeyError` or as `UNREADABLE` if it is damaged.
        """
        records = []
        if self.path.exists():
            with ChatStore(self.path, read_only=True) as store:
                for table in TABLES:
                    records += [store.get((table, row_id)) for row_id in sorted(store.ids(table))]
        self._known = True
        return records

    def remove(self) -> None:
        """Removes the file, unless it could not be read and not be set aside."""
        if self._known:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
