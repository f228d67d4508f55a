"""Library: the chats, projects and documents of one home.

Reads on the caller's thread, writes on the writer's thread, and reads unwritten records from the writer. So a
full disk, a folder that is not writable and a file of another program have the same effect: existing data is
read, changes wait, and saving resumes when it becomes possible.

A damaged database is not written to any more. Each record is then read from the newest copy that has it whole
(the database as SQLite reads it, then from its whole pages, then its backups), and `repair()` makes a new
database of them. Records that only a backup has are reported as missing, and `restore()` saves them.

One process at a time saves: it holds a lock next to the file. Without a folder nothing is written: all
changes wait until this run ends.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.archive import Hit, Summary, summary_of
from app.session.chats.chats import includes, other_id
from app.session.chats.conversation import NOTHING_WRITTEN, Conversation
from app.session.chats.projects import Project
from app.session.documents import DocumentHit, KeptDocument
from app.session.images import hashes_of, with_paths
from app.store import strings
from app.store.chat_store import ChatStore, Job, Key, Mark, Record, StoredDocument, key_of
from app.store.clock import SteadyClock
from app.store.copies import (
    Backups,
    IncompleteError,
    Unsaved,
    finish_repair,
    keys_of,
    mark_of,
    newest,
    opened,
    remove_temporary,
    repair,
    set_database_aside,
)
from app.store.database import obstacle_at
from app.store.faults import (
    UNREADABLE,
    EmptyStoreError,
    OtherStoreError,
    StoreError,
    is_damage,
    saving_trouble,
)
from app.store.images import ImageFolder
from app.store.preferences import PreferencesFile
from app.store.salvage import Found, Salvaged, read, salvage
from app.store.writer import Writer
from core.system.files import write_atomic
from core.system.private import make_folder

_FILE, _IMAGES = "chats.db", "images"
# The first backup is made after this number of turns, at once; later ones while nothing is saved.
_FIRST_BACKUP_TURNS = 10


class Problem(Struct, frozen=True):
    """A problem that lasts until `remedy` is carried out, or with no remedy until another start.

    `repair` and `restore` are methods of `Library`; `repair-incomplete` is `repair(incomplete=True)`.
    """

    reason: str
    hint: str = ""
    remedy: Literal["", "repair", "repair-incomplete", "restore"] = ""


_Value = TypeVar("_Value")


class Library:
    """Creates `folder` if needed; None keeps everything in memory.

    Calls `tell` on any thread with the reason why saving fails, and with None when it works again. The
    listener passes damage on to `take_damage()` on the caller's thread. `wall_s` is the system's Unix time.
    """

    def __init__(
        self,
        folder: Path | None,
        tell: Callable[[Exception | None], None] = lambda error: None,
        *,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._tell = tell
        self.failure: Exception | None = None  # why the last attempt to save failed
        self._folder = folder
        self._path = (folder or Path()) / _FILE
        self._lock: FileLock | None = None
        self._preparing, self._referring = threading.Lock(), threading.Lock()
        self._stores: list[ChatStore] = []
        self._outdated = False  # the database could not be read when the stores were opened, or was replaced
        self._partial: frozenset[str] = frozenset()  # chats of a damaged database with missing turns
        self._checked = False
        self._has_backup = self.swept = False
        self.elsewhere = self.damaged = False
        self.problem: Problem | None = None
        self.notices: list[Problem] = []
        self._writer: Writer | None = None
        self._memory: dict[Key, Job] = {}  # without a folder
        self._backups = Backups(self._path)
        self._unsaved = Unsaved(self._path)
        self.clock = SteadyClock(wall_s=wall_s)
        self.documents = KeptDocuments(self)
        self.images = ImageFolder(folder and folder / _IMAGES)
        if folder is not None:
            self._open(wall_s)

    @property
    def writer(self) -> Writer | None:
        """The thread that saves; None without a folder."""
        return self._writer

    # ---- the archive

    def summaries(self) -> Sequence[Summary]:
        return self.heads("chats")

    def load(self, chat_id: str) -> Conversation:
        """Raises `KeyError` for an unknown id, `StoreError` if the chat cannot be read."""
        chat = self.get(("chats", chat_id), strings.CHAT_UNREADABLE)
        assert isinstance(chat, Conversation)
        if self._writer and not self.damaged:
            self._writer.note(chat)
        return chat

    def save(self, chat: Conversation) -> None:
        self.do({("chats", chat.id): chat})

    def rewrite(self, chat: Conversation, before: Conversation) -> None:
        self.images.hold(hashes_of(before) - hashes_of(chat))
        if self._writer:
            self._writer.erase_earlier([("chats", chat.id)])
        self.save(chat)

    def purge(self, chat_id: str) -> None:
        self.do({("chats", chat_id): None})

    def search(self, query: str) -> Sequence[Hit]:
        return self.find("chats", lambda store: {hit.chat_id: hit for hit in store.search(query)})

    def projects(self) -> Sequence[Project]:
        return self.heads("projects")

    def save_project(self, project: Project) -> None:
        self.do({("projects", project.id): project})

    def purge_project(self, project_id: str) -> None:
        self.do({("projects", project_id): None})

    def do(self, jobs: Mapping[Key, Job]) -> None:
        """Lets the writer carry out `jobs`."""
        with self._referring:  # an image is unsaved, waits or is stored at any time
            if self._writer:
                self._writer.add(jobs)
            else:
                self._memory.update(jobs)
            for job in jobs.values() if self.images.unsaved or self.images.held else ():  # not at each token
                if isinstance(job, Conversation):
                    self.images.saved(hashes_of(job))

    def now(self) -> datetime:
        """Returns the time for the ages of deleted chats; see `SteadyClock`."""
        return self.clock.now()

    # ---- unsaved changes

    def waiting(self) -> dict[Key, Job]:
        """Returns the changes that are not written yet."""
        return self._writer.waiting() if self._writer else dict(self._memory)

    def unsaved(self) -> dict[Key, Record]:
        """Returns those of `waiting` that would be missed: no permanent deletions, no unused chats."""
        waiting = self._writer.waiting() if self._writer else {}
        return {
            key: job
            for key, job in waiting.items()
            if job is not None and not (isinstance(job, Conversation) and job.is_blank)
        }

    def keep_beside(self) -> bool:
        """Writes the unsaved changes to a file in the database's folder; False if that fails."""
        if self._lock is None:
            return False
        return self._unsaved.write([self._whole(job) for job in self.waiting().values() if job is not None])

    def listen(self, tell: Callable[[Exception | None], None]) -> None:
        """Replaces `tell`, which receives the current failure, if any."""
        self._tell = tell
        if self.failure:
            tell(self.failure)

    def when_kept(self, done: Callable[[bool], None]) -> None:
        """Calls `done` with whether all earlier changes are durable; see `Writer.when_kept`."""
        if self._writer:
            self._writer.when_kept(done)
        else:
            done(False)

    def flush(self) -> bool:
        """Waits until everything is written; False if that fails."""
        return self._writer.flush() if self._writer else not self._memory

    def close(self, *, discard: bool = False) -> bool:
        """Saves what waits and closes all files. False if something could not be saved.

        Unsaved changes go to a file in the database's folder, if the disk allows it, unless `discard`; the
        next library takes them.
        """
        unsaved: dict[Key, Record] = {}
        self._close_stores()  # the last connection empties the log, which a reader cannot
        try:
            if self._writer:
                self._writer.close()
                unsaved = self.unsaved()
                if unsaved and not discard:
                    self.keep_beside()
                elif self._lock:
                    self._unsaved.remove()
        finally:
            self._writer = None
            self._close_stores()
            if self._lock:
                self._lock.release()
            self._lock = None
            self.images.close()
        return not unsaved

    # ---- damage

    def take_damage(self, error: Exception) -> None:
        """Stops writing to the database, and reads its backups, too."""
        if not self.damaged and self._folder:
            self._set_damaged()
            self._open_stores()

    def repair(self, *, incomplete: bool = False) -> str:
        """Replaces a damaged database by a new one with every row that it or a backup has; returns a report.

        Raises `StoreError` with nothing changed: if the disk does not allow it, or, unless `incomplete`, if
        some row cannot be read whole from any copy.
        """
        if not self.damaged or self.elsewhere:
            return ""
        try:
            self._prepare()
            whole = [key for key in self.waiting() if key[0] != "documents"]  # of those only the facts
            lost = repair(self._readable(), self._path, whole, incomplete=incomplete)
            chats, partial = sum(table == "chats" for table, _ in keys_of(self._stores) - lost), self._partial
            self._close_stores()
            old = finish_repair(self._path)
        except IncompleteError as error:
            hint = strings.incomplete(error.lost)
            self.problem = Problem(strings.DAMAGED, hint, "repair-incomplete")
            raise StoreError(strings.NOT_REPAIRED, hint) from None
        except (OSError, *UNREADABLE) as error:
            raise StoreError(strings.NOT_REPAIRED, saving_trouble(error)) from None
        self.damaged, self.problem = False, None
        self._open_stores()
        self._replace_writer()
        return strings.repaired(chats, len(partial), len(lost), old.name if old else "")

    def restore(self) -> str:
        """Saves the missing rows, each from the newest backup that has it whole; returns a report."""
        records: list[Record | None] = []
        if self.problem and self.problem.remedy == "restore":
            with opened(self._backups.paths()) as backups:
                records = [newest(backups, key) for key in self._missing(backups)]
            self.do({key_of(record): record for record in records if record is not None})
            self.problem = None
        lost = records.count(None)
        return strings.restored(len(records) - lost, lost)

    # ---- inside

    def _open(self, wall_s: Callable[[], float]) -> None:
        with contextlib.suppress(OSError, StoreError):  # the writer reports it
            self._prepare()
        self._open_stores()
        unreadable = self._outdated
        self.summaries(), self.projects()  # damage there would leave the sidebar empty
        with opened(self._backups.paths()) as backups:
            self.clock = SteadyClock(mark_of([*self._stores, *backups]), wall_s)
            unsaved = {} if self.elsewhere else self._take_unsaved()
            self._writer = self._new_writer(unsaved)
            if unsaved:
                self.when_kept(self._drop_unsaved)
            if self.problem is None and not unreadable:
                missing = self._missing(backups)
                if any(newest(backups, key) for key in missing):
                    self.problem = Problem(strings.MISSING, strings.missing(len(missing)), "restore")

    def _prepare(self) -> None:
        """Takes the lock and finishes a killed repair. Raises `OSError`, `StoreError`. Any thread."""
        assert self._folder
        with self._preparing:
            if not self._lock:
                make_folder(self._folder)
                lock = FileLock(self._folder / "chats.lock", mode=0o600, thread_local=False)
                try:
                    lock.acquire(blocking=False)
                except Timeout:
                    self.elsewhere = True
                    self.problem = Problem(strings.ELSEWHERE, strings.ELSEWHERE_HINT)
                    raise StoreError(strings.ELSEWHERE, strings.ELSEWHERE_HINT) from None
                self._lock = lock
                remove_temporary(self._path)
            if finish_repair(self._path):
                self._outdated = True

    def _open_stores(self) -> None:
        """Opens the database for reading; if it is damaged, also its whole pages and its backups."""
        self._close_stores()
        self._outdated, found = False, None
        try:
            if obstacle := obstacle_at(self._path):
                self._set_damaged(obstacle)
            else:
                self._stores = [ChatStore(self._path, read_only=True)]
        except StoreError as error:
            # The same can be the work of a damaged schema.
            if isinstance(error, EmptyStoreError) or error.message == strings.FOREIGN:
                found = read(self._path)
            if found and found.has_any():
                self._set_damaged()
            elif not isinstance(error, EmptyStoreError):
                self._refuse(error)
        except UNREADABLE as error:
            if is_damage(error):
                self._set_damaged()
            else:
                self._outdated = self._path.exists()
        if self.damaged:
            self._open_copies(found)

    def _open_copies(self, found: Found | None) -> None:
        """Opens what the chats of a damaged database are read from, and says how many of them can be."""
        backups: list[ChatStore] = []
        for path in self._backups.paths():
            with contextlib.suppress(StoreError, *UNREADABLE):
                backups.append(ChatStore(path, read_only=True))
        found = found or (read(self._path) if self._path.is_file() else Found())
        if self._path.is_file() and not (self._stores or found.has_any()):
            self._set_damaged(strings.no_database(_FILE))
        salvaged = salvage(found, backups)
        self._partial = salvaged.partial
        self._stores += [salvaged.store, *backups]
        if self.problem and self.problem.remedy == "repair":
            hint = f"{self._readable_chats(salvaged, backups)} {strings.DAMAGED_HINT}"
            self.problem = replace(self.problem, hint=hint)

    def _readable_chats(self, salvaged: Salvaged, backups: Sequence[ChatStore]) -> str:
        known = {key for key in keys_of(self._stores) if key[0] == "chats"}
        whole = salvaged.store.keys()
        lost = [key for key in known - whole if newest(self._stores, key) is None]
        in_backup = len(backups[0].ids("chats")) if backups else None
        return strings.readable(len(known) - len(lost), len(salvaged.partial), len(known), in_backup)

    def _set_damaged(self, reason: str = strings.DAMAGED) -> None:
        if self.damaged and (reason == strings.DAMAGED or self.elsewhere):
            return
        was_damaged, self.damaged = self.damaged, True
        if self.elsewhere:  # only the process that writes to the file may repair it
            self.problem = Problem(strings.ELSEWHERE, strings.DAMAGED_ELSEWHERE)
        else:
            self.problem = Problem(reason, strings.DAMAGED_HINT, "repair")
        if not was_damaged:
            self._replace_writer()

    def _refuse(self, error: StoreError) -> None:
        """A file of another program or version: an older one is set aside."""
        if isinstance(error, OtherStoreError) and error.older and self._lock:
            with contextlib.suppress(OSError):
                aside = set_database_aside(self._path, "older")
                self.notices.append(Problem(error.message, strings.set_aside(aside.name)))
                return
        self.problem = Problem(error.message, error.hint)

    def _close_stores(self) -> None:
        for store in self._stores:
            store.close()
        self._stores = []

    def _readable(self) -> list[ChatStore]:
        """The stores to read from. The database may not have existed before, or not been readable."""
        if self._folder and (self._outdated or not self._stores):
            self._open_stores()
        return self._stores

    def _open_for_writing(self) -> ChatStore:
        """Opens the file on the writer's thread. Raises `OSError`, `StoreError`, `sqlite3.Error`."""
        if self.problem and self.problem.remedy != "restore":
            raise StoreError(self.problem.reason, self.problem.hint)
        self._prepare()
        store = ChatStore(self._path)
        try:
            if not self._checked:
                store.quick_check()
                self._checked = True
            with store.transaction():  # a start counts for the clock, also if nothing is saved
                store.set_mark(Mark(store.mark().changes, *self.clock.read()))
        except BaseException:
            store.close()
            raise
        self._outdated = True  # the stores may read a copy in memory, which a full disk made necessary
        return store

    def _new_writer(self, jobs: Mapping[Key, Job]) -> Writer:
        self.failure = None
        return Writer(
            self._open_for_writing,
            self._report,
            erase_copies=self._backups.erase,
            erase_images=self._erase_images,
            back_up=self._back_up,
            written=self._after_a_batch,
            clock=self.clock,
            jobs=jobs,
        )

    def _replace_writer(self) -> None:
        """Starts a new writer with the waiting jobs of the old one."""
        if self._writer:
            self._writer.close(write=False)
            self._checked = False
            self._writer = self._new_writer(self._writer.waiting())

    def _erase_images(self, store: ChatStore, hashes: set[str]) -> None:
        """Erases those of `hashes` without a reference, on the writer's thread.

        Raises `OSError`, `sqlite3.Error`, `ChecksumError`.
        """
        left = self._backups.without_images(hashes - store.image_hashes())
        with self._referring:
            for job in self.waiting().values() if left else ():
                left -= hashes_of(job) if isinstance(job, Conversation) else set()
            self.images.erase(left)

    def _sweep_images(self, store: ChatStore, proceed: Callable[[], None]) -> None:
        """Erases images without a reference, once a run, on the writer's thread.

        Raises as `_back_up`. What fails is tried again at the next start.
        """
        if self.swept:
            return
        proceed()
        self.swept = True
        self.images.remove_temporary()
        try:
            self._erase_images(store, {each.hash for each in self.images.listed()})
        except (OSError, *UNREADABLE) as error:
            if is_damage(error):
                raise

    def _back_up(self, proceed: Callable[[], None]) -> None:
        """Makes a backup if one is due, on the writer's thread. Raises only damage."""
        if not self.swept:
            with opened([self._path]) as stores:
                for store in stores:
                    self._sweep_images(store, proceed)
        try:
            if self._backups.is_due(self.clock.read()[0]):
                self._backups.make(proceed)
        except OSError:
            pass  # later
        except sqlite3.Error as error:
            if is_damage(error):
                raise

    def _after_a_batch(self, store: ChatStore, proceed: Callable[[], None]) -> None:
        """Sweeps the images once, and makes the first backup once the chats have ten turns, on the writer's
        thread. Raises as `_back_up`.

        If something else has to be written first, or the disk is full, the next batch tries again.
        """
        self._sweep_images(store, proceed)
        if not self._has_backup and store.has_turns(_FIRST_BACKUP_TURNS):
            if not self._backups.paths():
                self._back_up(proceed)
            self._has_backup = bool(self._backups.paths())

    def _report(self, error: Exception | None) -> None:
        """Passes on a failure of the writer. Any thread."""
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            error = self._cause(error)
        self.failure = error
        if error is None:
            self._outdated = True
            self.when_kept(self._drop_unsaved)
        self._tell(error)

    def _cause(self, error: Exception) -> Exception:
        """Returns the system's error for a small file, because SQLite's often has no reason."""
        probe = self._path.with_suffix(".probe")
        try:
            write_atomic(probe, bytes(4096), durable=False)
            probe.unlink()
        except OSError as cause:
            return cause
        return error

    def _missing(self, backups: Sequence[ChatStore]) -> list[Key]:
        """Returns the rows of `backups` that the database does not have. Unused chats are not missed."""
        waiting = self.waiting()
        return [
            key
            for key in keys_of(backups) - keys_of(self._readable())
            if key not in waiting and not _is_unused(backups, key)
        ]

    def _take_unsaved(self) -> dict[Key, Job]:
        """Returns the changes that the last run could not save, and adds a notice that names them."""
        try:
            records = self._unsaved.read()
        except OSError:
            return {}
        except (KeyError, StoreError, *UNREADABLE):
            with contextlib.suppress(OSError):
                aside = set_database_aside(self._unsaved.path, "damaged")
                self.notices.append(Problem(strings.UNSAVED_DAMAGED, strings.set_aside(aside.name)))
            return {}
        jobs: dict[Key, Job] = {}
        names = []
        for record in records:
            taken = self._unsaved_chat(record) if isinstance(record, Conversation) else record
            if taken is not None:
                jobs[key_of(taken)] = taken
                names.append(_name_of(taken))
        if jobs:
            self.notices.append(Problem(strings.UNSAVED_TAKEN, strings.unsaved_taken(names)))
        return jobs

    def _drop_unsaved(self, kept: bool) -> None:
        """Removes the file of unsaved changes, which are `kept` in the database or were replaced there."""
        if kept:
            self._unsaved.remove()

    def _unsaved_chat(self, chat: Conversation) -> Conversation | None:
        """Returns what to save of an unsaved chat; another chat if the database has something else.

        Times decide nothing.
        """
        chat = with_paths(chat, self.images.path)
        try:
            known = self.load(chat.id)
        except (KeyError, StoreError):
            return None if chat.is_blank else chat
        if chat == known:
            return None
        if includes(chat, known):
            return chat
        if includes(known, chat) and chat.draft in (NOTHING_WRITTEN, known.draft):
            return None
        return replace(chat, id=other_id(chat))

    def _whole(self, record: Record) -> Record:
        """Returns `record`; for a change of a document's facts the document with its text, if readable."""
        if isinstance(record, KeptDocument):
            with contextlib.suppress(KeyError, StoreError):
                return StoredDocument(record, self.documents.text(record.id))
        return record

    # ---- reading from the stores; also for `KeptDocuments`

    def get(self, key: Key, unreadable: str) -> Record:
        """Returns the newest state. Raises `KeyError` without one, `StoreError` if it is `unreadable`."""
        waiting, failed = self.waiting(), False
        found = waiting.get(key)
        if key not in waiting:
            stored, failed = self._from_each(lambda store: store.get(key))
            found = next(iter(stored), None)
        if isinstance(found, Conversation):
            found = with_paths(found, self.images.path)
        if found is not None:
            return found
        if failed:
            raise StoreError(unreadable, strings.DAMAGED)
        raise KeyError(key[1])

    def heads(self, table: str) -> list[Any]:
        """Returns the heads of all records of a table, the newest state of each."""
        newer = self._newer(table)  # before the rows: a change written meanwhile is in one of them
        stored: list[dict[str, Any]] = []
        try:
            stored, _ = self._from_each(lambda store: self._heads_of(store, table))
        except StoreError:
            self._outdated = True  # the disk may be readable later
        found: dict[str, Any] = {}
        for each in reversed(stored):
            found |= each
        found |= {row_id: _head_of(job) for row_id, job in newer.items() if job is not None}
        return [head for row_id, head in found.items() if newer.get(row_id, head) is not None]

    def find(self, table: str, search: Callable[[ChatStore], dict[str, _Value]]) -> list[_Value]:
        """Returns the results of a search, by the ids of records; unwritten ones first. Of a damaged database
        they are of the records as they are read now, while a store may have found another state.
        """
        newer = self._newer(table)
        found = dict(
            hit for hits in self._from_each(search)[0] for hit in hits.items() if hit[0] not in newer
        )
        records = [self._whole(job) for job in newer.values() if job is not None]
        if self.damaged:
            heads, chats = [head for head in self.heads(table) if head.id in found], table == "chats"
            read = [newest(self._stores, (table, head.id)) if chats else self._whole(head) for head in heads]
            records, found = records + [each for each in read if each], {}
        if records:
            with ChatStore(None) as read_now:
                for record in records:
                    read_now.attempt(key_of(record), record)
                found = search(read_now) | found
        return list(found.values())

    def _newer(self, table: str) -> dict[str, Job]:
        """Returns the waiting changes of a table, by the ids of records."""
        waiting = self.waiting()
        kinds = ("texts", "documents") if table == "documents" else (table,)  # changed facts are later
        return {row_id: job for kind in kinds for (of, row_id), job in waiting.items() if of == kind}

    def _heads_of(self, store: ChatStore, table: str) -> dict[str, Any]:
        """Returns the heads in one store by their ids; in a damaged one those that can be read."""
        if not self.damaged:
            return {head.id: head for head in store.heads(table)}
        found = {}
        for row_id in store.ids(table):
            with contextlib.suppress(KeyError, *UNREADABLE):
                found[row_id] = store.head((table, row_id))
        return found

    def _from_each(self, read: Callable[[ChatStore], _Value]) -> tuple[list[_Value], bool]:
        """Returns what each store has, the newest first, and whether some has it damaged.

        The first damage opens the backups, and all are read again. Raises `StoreError` for another failure.
        """
        found: list[_Value] = []
        failed = False
        for store in self._readable():
            try:
                found.append(read(store))
            except KeyError:
                continue
            except UNREADABLE as error:
                failed = True
                if self.damaged:
                    continue
                if not is_damage(error):
                    raise StoreError(saving_trouble(error)) from None
                self.take_damage(error)
                self._tell(error)
                return self._from_each(read)
        return found, failed


def _is_unused(stores: Sequence[ChatStore], key: Key) -> bool:
    for store in stores:
        with contextlib.suppress(KeyError, *UNREADABLE):
            head = store.head(key)
            return isinstance(head, Summary) and head.turns == 0
    return False


def _head_of(record: Record | None) -> Any:
    if isinstance(record, Conversation):
        return summary_of(record)
    return record.document if isinstance(record, StoredDocument) else record


def _name_of(record: Record) -> str:
    return record.title if isinstance(record, Conversation) else str(_head_of(record).name)


class KeptDocuments:
    """The kept documents of a library; they share its database and writer with the chats."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def documents(self) -> Sequence[KeptDocument]:
        return self._library.heads("documents")

    def text(self, document_id: str) -> str:
        stored = self._library.get(("texts", document_id), strings.DOCUMENT_UNREADABLE)
        assert isinstance(stored, StoredDocument)
        return stored.text

    def add(self, document: KeptDocument, text: str) -> None:
        self._library.do({("texts", document.id): StoredDocument(document, text)})

    def change(self, document: KeptDocument) -> None:
        self._library.do({("documents", document.id): document})

    def purge(self, document_id: str) -> None:
        self._library.do({("texts", document_id): None, ("documents", document_id): None})

    def search(self, query: str) -> Sequence[DocumentHit]:
        return self._library.find(
            "documents", lambda store: {hit.id: hit for hit in store.search_documents(query)}
        )


class Home:
    """The chats, documents and preferences of one window.

    Without a `folder` everything lasts for this run only: smoke tests and screenshots leave no files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.library = Library(folder)
        self.preferences = PreferencesFile(folder)

    def close(self, *, discard: bool = False) -> bool:
        """Saves what waits, as `Library.close`. False if something could not be saved."""
        return all([self.library.close(discard=discard), self.preferences.close()])
