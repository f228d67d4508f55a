"""Recovery: backups of the chat database, the number of chats, chats that could not be saved, and salvage.

A backup is made only of a database that was read to its end without damage, so every backup is intact and
damage never replaces a good copy. `BackupKeeper` makes one while nothing is saved, on its own thread and
connection; it also reports damage in chats that are not opened.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.session.chats.projects import Project
from app.session.documents import KeptDocument
from app.store.chat_files import from_json, to_json
from app.store.chat_store import ChatStore, MemoryStore
from app.store.database import ChecksumError, Database
from app.store.documents import DocumentAdded, DocumentRows
from app.store.faults import StoreError, TransferError
from app.store.rows import ChatPlace, ProjectRows, Rows, with_others
from app.store.schema import refuse_foreign
from core.events import Token
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


# Everything that reading a damaged record raises.
UNREADABLE = (sqlite3.Error, msgspec.MsgspecError, ValueError, TypeError, OverflowError)
_SIDES = ("", "-wal")
_Value = TypeVar("_Value")


def copy_beside(path: Path) -> Path:
    """Copies the database beside itself, once per modification time. Returns the copy. Raises `OSError`."""
    stamp = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    copy = path.with_name(f"{path.stem}-damaged-{stamp:%Y%m%d-%H%M%S}{path.suffix}")
    if not copy.exists():
        for side in _SIDES:
            source = path.with_name(path.name + side)
            if source.exists():
                shutil.copy2(source, copy.with_name(copy.name + side))
    return copy


class Salvage(MemoryStore):
    """The readable content of the damaged database `copy`; `lost` counts the unreadable records.

    The damaged file itself is never written to. Unreadable records are left out and counted, never guessed: a
    chat without its head is rebuilt from its turns, a turn without its answer has an empty one. A record with
    a wrong checksum is used, and counted too.
    """

    def __init__(self, copy: Path) -> None:
        super().__init__()
        self.copy = copy
        self.lost = 0
        try:
            database = Database(copy, read_only=True)
        except UNREADABLE:
            self.lost += 1
            return
        try:
            refuse_foreign(database.connection)
            rows = Rows(database.connection, self._note)
            for chat in self._read_all(database.connection, rows):
                self._try(lambda: self.save(chat), None)  # noqa: B023
            self._read_documents(database.connection)
            self._read_projects(database.connection)
        except UNREADABLE:
            self.lost += 1
        finally:
            database.close()

    def _read_documents(self, connection: sqlite3.Connection) -> None:
        """A document without a readable text is left out; a text with a wrong checksum is used."""
        rows = DocumentRows(connection, False, self._note)
        found: list[KeptDocument] = []
        # Extended one by one, so that documents before a damaged row are kept.
        self._try(lambda: found.extend(rows.all()), None)
        for document in found:
            text = self._try(lambda: rows.text(document.id), None)  # noqa: B023
            if text is not None:
                self.do_document(DocumentAdded(document, text))

    def _read_projects(self, connection: sqlite3.Connection) -> None:
        rows = ProjectRows(connection, self._note)
        found: list[Project] = []
        self._try(lambda: found.extend(rows.all()), None)
        for project in found:
            self._try(lambda: self.do_project(project), None)  # noqa: B023

    def _read_all(self, connection: sqlite3.Connection, rows: Rows) -> Iterator[Conversation]:
        heads = self._select(connection, "SELECT id FROM chats")
        owners = self._select(connection, "SELECT chat FROM turns GROUP BY chat")
        for chat_id in dict.fromkeys(each for each in (*heads, *owners) if isinstance(each, str)):
            chat = self._chat(rows, chat_id)
            if chat.turns or chat.queued or chat.draft.content or chat.draft.attachments:
                yield chat

    def _chat(self, rows: Rows, chat_id: str) -> Conversation:
        nowhere: list[ChatPlace] = []
        places = self._try(lambda: rows.places(chat_id), nowhere)
        turns = tuple(turn for turn in (self._turn(rows, each.row) for each in places) if turn)
        head = self._try(lambda: rows.head(chat_id), None)
        if head is not None:
            self.lost += max(0, head.turns - len(places))
            return replace(head.chat, turns=turns)
        times = [turn.asked for turn in turns if turn.asked]
        return Conversation(chat_id, min(times, default=datetime.now(UTC)), turns)

    def _turn(self, rows: Rows, row: int) -> Turn | None:
        turn = self._try(lambda: rows.question(row), None)
        if turn is None:
            return None
        nothing: tuple[Token, ...] = ()
        before = self.lost
        state = self._try(lambda: rows.state(row), None)
        if state is None:
            self.lost += 1
            state = Answer(status="cut_off")
        tokens = self._try(lambda: rows.tokens(row), nothing)
        self.lost = min(self.lost, before + 1)
        return self._with_others(rows, row, replace(turn, answer=replace(state, tokens=tokens)))

    def _with_others(self, rows: Rows, row: int, turn: Turn) -> Turn:
        nowhere: list[int] = []
        found: dict[int, Version] = {}
        for place in self._try(lambda: rows.other_places(row), nowhere):
            self._try(lambda: found.update({place: rows.version(row, place)}), None)  # noqa: B023
        return with_others(turn, list(found), tuple(found.values())) if found else turn

    def _select(self, connection: sqlite3.Connection, query: str) -> list[Any]:
        """Returns the first column of the rows before the damage."""
        found: list[Any] = []
        try:
            for row in connection.execute(query):
                found.append(row[0])
        except UNREADABLE:
            self.lost += 1
        return found

    def _note(self, error: Exception) -> None:
        """Counts a record that is used in spite of a wrong checksum."""
        self.lost += 1

    def _try(self, read: Callable[[], _Value], otherwise: _Value) -> _Value:
        """Returns `otherwise` if `read` fails. Counts at most one record."""
        before = self.lost
        try:
            return read()
        except UNREADABLE:
            self.lost += 1
            return otherwise
        finally:
            self.lost = min(self.lost, before + 1)
