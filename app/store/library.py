"""Library: the chats, projects and documents of one home.

Reads on the caller's thread, writes on the writer's thread, and what is not written yet is read from the
writer. So a full disk, a folder that is not writable and a file of another program have the same effect: what
exists is read, changes wait, and saving resumes when it becomes possible.

A damaged database is not written to any more. Each chat is then read from the newest copy that has it whole
(the database, then its backups), and `repair()` makes a new database of them. Chats that only a backup has
are reported as missing, and `restore()` saves them.

One process at a time saves: it holds a lock beside the file. Without a folder everything lasts for this run.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.archive import Hit, Summary, passage_of, summary_of
from app.session.chats.chats import includes, other_id
from app.session.chats.conversation import NOTHING_WRITTEN, Conversation
from app.session.chats.projects import Project
from app.session.documents import DocumentHit, KeptDocument
from app.store import strings
from app.store.chat_store import ChatStore, Job, Mark, MemoryStore, deleted_row
from app.store.clock import SteadyClock
from app.store.copies import (
    BackupKeeper,
    Backups,
    IncompleteError,
    RowIds,
    Unsaved,
    finish_repair,
    newest,
    opened,
    remove_temporary,
    repair,
    rows_of,
    set_database_aside,
)
from app.store.documents import DocumentAdded, DocumentChanged, DocumentGone, DocumentJob, key_of, text_key
from app.store.faults import (
    UNREADABLE,
    EmptyStoreError,
    OtherStoreError,
    StoreError,
    is_damage,
    saving_trouble,
)
from app.store.preferences import PreferencesFile
from app.store.rows import ProjectGone, ProjectJob
from app.store.rows import key_of as key_of_project
from app.store.writer import Writer
from core.system.files import write_atomic
from core.system.private import make_folder

_FILE = "chats.db"


class Problem(Struct, frozen=True):
    """What is wrong until `remedy` is carried out, or with no remedy until another start.

    `repair` and `restore` are methods of `Library`; `repair-incomplete` is `repair(incomplete=True)`.
    """

    reason: str
    hint: str = ""
    remedy: Literal["", "repair", "repair-incomplete", "restore"] = ""


_Row = TypeVar("_Row", Summary, Project, KeptDocument)
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
        self._preparing = threading.Lock()
        self._stores: list[ChatStore] = []
        self._outdated = False  # the database could not be read when the stores were opened, or was replaced
        self._checked = False
        self.elsewhere = self.damaged = False
        self.problem: Problem | None = None
        self.notices: list[Problem] = []
        self._writer: Writer | None = None
        self._backups = Backups(self._path)
        self._keeper: BackupKeeper | None = None
        self._unsaved = Unsaved(self._path)
        self.clock = SteadyClock(wall_s=wall_s)
        self.documents = KeptDocuments(self)
        if folder is None:
            self._stores = [MemoryStore()]
        else:
            self._open(wall_s)

    @property
    def full_text(self) -> bool:
        """Whether a full-text index is searched; without one a search scans all texts."""
        return all(store.full_text for store in self._stores)

    @property
    def writer(self) -> Writer | None:
        """The thread that saves; None without a folder."""
        return self._writer

    # ---- the archive

    def summaries(self) -> Sequence[Summary]:
        waiting = self.waiting_chats()  # before the rows: what is written meanwhile is in one of them
        found = self.rows("chats", ChatStore.summaries, ChatStore.summary)
        found.update((chat.id, summary_of(chat)) for chat in waiting)
        return list(found.values())

    def load(self, chat_id: str) -> Conversation:
        """Raises `KeyError` for an unknown id, `StoreError` if the chat cannot be read."""
        waiting = self.waiting()
        if chat_id in waiting:
            chat = waiting[chat_id]
            if isinstance(chat, Conversation):
                return chat
            raise KeyError(chat_id)
        chat = self.read(lambda store: store.load(chat_id), chat_id, strings.CHAT_UNREADABLE)
        if self._writer and not self.damaged:
            self._writer.note(chat)
        return chat

    def save(self, chat: Conversation) -> None:
        self.do(chat.id, chat)

    def purge(self, chat_id: str) -> None:
        self.do(chat_id, None)

    def search(self, query: str) -> Sequence[Hit]:
        words = query.split()
        waiting = self.waiting()
        chats = [job for job in waiting.values() if isinstance(job, Conversation)]
        hits = {hit.chat_id: hit for chat in chats if words and (hit := _found_in(chat, words))}
        for hit in self.find(lambda store: store.search(query)):
            if hit.chat_id not in waiting:
                hits.setdefault(hit.chat_id, hit)
        return list(hits.values())

    def projects(self) -> Sequence[Project]:
        waiting = self.waiting().values()
        found = self.rows(
            "projects",
            lambda store: store.project_rows.all(),
            lambda store, row_id: store.project_rows.load(row_id),
        )
        found.update((job.id, job) for job in waiting if isinstance(job, Project))
        return list(found.values())

    def save_project(self, project: Project) -> None:
        self.do_project(project)

    def purge_project(self, project_id: str) -> None:
        self.do_project(ProjectGone(project_id))

    def do_project(self, job: ProjectJob) -> None:
        self.do(key_of_project(job), job)

    def do(self, key: str, job: Job) -> None:
        """Lets the writer carry out `job`."""
        if self._keeper:
            self._keeper.busy()
        if self._writer:
            self._writer.add(key, job)
        else:
            (memory,) = self._stores
            assert isinstance(memory, MemoryStore)
            memory.keep(key, job)

    def now(self) -> datetime:
        """Returns the time for the ages of deleted chats; see `SteadyClock`."""
        return self.clock.now()

    # ---- what is not saved

    def waiting(self) -> dict[str, Job]:
        """Returns the changes that are not written yet."""
        return self._writer.waiting() if self._writer else {}

    def unsaved(self) -> dict[str, Job]:
        """Returns those of `waiting` that would be missed: no permanent deletions, no unused chats."""
        return {
            key: job
            for key, job in self.waiting().items()
            if not (deleted_row(key, job) or (isinstance(job, Conversation) and job.is_blank))
        }

    def keep_beside(self) -> bool:
        """Writes the unsaved changes to a file beside the database; False if that fails."""
        if self._lock is None:
            return False
        return self._unsaved.write({key: self._whole(job) for key, job in self.waiting().items()})

    def waiting_chats(self) -> list[Conversation]:
        return [job for job in self.waiting().values() if isinstance(job, Conversation)]

    def listen(self, tell: Callable[[Exception | None], None]) -> None:
        """Replaces `tell`, which gets the present failure, if any."""
        self._tell = tell
        if self.failure:
            tell(self.failure)

    def when_kept(self, done: Callable[[bool], None]) -> None:
        """Calls `done` with whether everything saved so far is durable; see `Writer.when_kept`."""
        if self._writer:
            self._writer.when_kept(done)
        else:
            done(False)

    def flush(self) -> bool:
        """Waits until everything is written; False if that fails."""
        return self._writer.flush() if self._writer else not self._stores[0].ids("chats")

    def close(self, *, discard: bool = False) -> bool:
        """Saves what waits and closes all files. False if something could not be saved.

        Unsaved changes go to a file beside the database, if the disk allows it, unless `discard`; the next
        library takes them.
        """
        self._end_backups()
        waiting: dict[str, Job] = {}
        self._close_stores()  # the last connection empties the log, which a reader cannot
        if self._writer:
            self._writer.close()
            waiting = self.unsaved()
            if waiting and not discard:
                self.keep_beside()
            elif self._lock:
                self._unsaved.remove()
        self._writer = None
        self._close_stores()
        if self._lock:
            self._lock.release()
        self._lock = None
        return not waiting

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
            lost = repair(self._readable(), self._path, incomplete=incomplete)
            chats = len(rows_of(self._stores).ids["chats"]) - len(lost.ids["chats"])
            self._close_stores()
            old = finish_repair(self._path)
        except IncompleteError as error:
            hint = strings.incomplete(len(error.lost))
            self.problem = Problem(strings.DAMAGED, hint, "repair-incomplete")
            raise StoreError(strings.NOT_REPAIRED, hint) from None
        except (OSError, *UNREADABLE) as error:
            raise StoreError(strings.NOT_REPAIRED, saving_trouble(error)) from None
        self.damaged, self.problem = False, None
        self._open_stores()
        self._replace_writer()
        self._start_backups()
        return strings.repaired(chats, len(lost), old.name if old else "")

    def restore(self) -> str:
        """Saves the missing rows, each from the newest backup that has it whole; returns a report."""
        restored = lost = 0
        if self.problem and self.problem.remedy == "restore":
            with opened(self._backups.paths()) as stores:
                for table, ids in self._missing(stores).ids.items():
                    for row_id in ids:
                        row = newest(stores, table, row_id)
                        lost += row is None
                        restored += row is not None
                        if isinstance(row, Conversation):
                            self.save(row)
                        elif isinstance(row, Project):
                            self.save_project(row)
                        elif row:
                            self.documents.add(row.document, row.text)
            self.problem = None
            self._start_backups()
        return strings.restored(restored, lost)

    # ---- inside

    def _open(self, wall_s: Callable[[], float]) -> None:
        with contextlib.suppress(OSError, StoreError):  # the writer reports it
            self._prepare()
        self._open_stores()
        self.summaries(), self.projects()  # damage there would leave the sidebar empty
        with opened(self._backups.paths()) as backups:
            self.clock = SteadyClock(_mark([*self._stores, *backups]), wall_s)
            unsaved = {} if self.elsewhere else self._take_unsaved()
            self._writer = self._new_writer(unsaved)
            if unsaved:
                self.when_kept(self._drop_unsaved)
            if self.problem is None and not self._outdated:
                self._look_for_missing(backups)
        self._start_backups()

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
        """Opens the database for reading; if it is damaged, also its backups."""
        self._close_stores()
        self._outdated = False
        try:
            self._stores = [ChatStore(self._path, read_only=True)]
        except EmptyStoreError:
            pass
        except StoreError as error:
            self._refuse(error)
        except UNREADABLE as error:
            if is_damage(error):
                self._set_damaged()
            else:
                self._outdated = self._path.exists()
        if self.damaged:
            for path in self._backups.paths():
                with contextlib.suppress(StoreError, *UNREADABLE):
                    self._stores.append(ChatStore(path, read_only=True))

    def _set_damaged(self) -> None:
        if self.damaged:
            return
        self.damaged = True
        self._end_backups()
        if self.elsewhere:  # only the process that writes to the file may repair it
            self.problem = Problem(strings.ELSEWHERE, strings.DAMAGED_ELSEWHERE)
        else:
            self.problem = Problem(strings.DAMAGED, strings.DAMAGED_HINT, "repair")
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
        if self._outdated or (not self._stores and self._folder):
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
        return store

    def _new_writer(self, jobs: dict[str, Job]) -> Writer:
        self.failure = None
        return Writer(
            self._open_for_writing,
            self._report,
            erase_copies=self._backups.erase,
            clock=self.clock,
            jobs=jobs,
        )

    def _replace_writer(self) -> None:
        """Starts a new writer with the waiting jobs of the old one."""
        if self._writer:
            self._writer.close(write=False)
            self._checked = False
            self._writer = self._new_writer(self._writer.waiting())

    def _report(self, error: Exception | None) -> None:
        """Passes on a failure of the writer or keeper. Any thread."""
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

    def _look_for_missing(self, backups: Sequence[ChatStore]) -> None:
        missing = self._missing(backups)
        if any(newest(backups, table, row_id) for table, ids in missing.ids.items() for row_id in ids):
            self.problem = Problem(strings.MISSING, strings.missing(len(missing)), "restore")

    def _missing(self, backups: Sequence[ChatStore]) -> RowIds:
        """Returns the rows of `backups` that the database does not have. Unused chats are not missed."""
        waiting = self.waiting()
        known = rows_of(self._readable()).ids
        found = rows_of(backups).ids
        return RowIds(
            {
                table: frozenset(
                    row_id
                    for row_id in ids - known[table]
                    if row_id not in waiting and not (table == "chats" and _is_unused(backups, row_id))
                )
                for table, ids in found.items()
            }
        )

    def _take_unsaved(self) -> dict[str, Job]:
        """Returns the changes that the last run could not save, and adds a notice that names them."""
        try:
            rows = self._unsaved.read()
        except OSError:
            return {}
        except (StoreError, *UNREADABLE):
            with contextlib.suppress(OSError):
                aside = set_database_aside(self._unsaved.path, "damaged")
                self.notices.append(Problem(strings.UNSAVED_DAMAGED, strings.set_aside(aside.name)))
            return {}
        jobs: dict[str, Job] = {}
        names = []
        for row in rows:
            if isinstance(row, Project):
                jobs[key_of_project(row)] = row
                names.append(row.name)
            elif isinstance(row, DocumentAdded):
                jobs[key_of(row)] = row
                names.append(row.document.name)
            elif chat := self._unsaved_chat(row):
                jobs[chat.id] = chat
                names.append(chat.title)
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

    def _whole(self, job: Job) -> Job:
        """Returns `job`; for a change of a document's facts the document with its text, if it can be read."""
        if isinstance(job, DocumentChanged):
            with contextlib.suppress(KeyError, StoreError):
                return DocumentAdded(job.document, self.documents.text(job.document.id))
        return job

    def _start_backups(self) -> None:
        if self._keeper is None and (self.problem is None or self.problem.remedy == "restore"):
            self._keeper = BackupKeeper(self._backups, self._report, lambda: self.clock.read()[0])

    def _end_backups(self) -> None:
        if self._keeper:
            self._keeper.close()
        self._keeper = None

    # ---- reading from the stores; also for `KeptDocuments`

    def read(self, read: Callable[[ChatStore], _Value], row_id: str, unreadable: str) -> _Value:
        """Returns the first result. Raises `KeyError` if no store has the row, else `StoreError`."""
        failed = False
        for store in self._readable():
            try:
                return read(store)
            except KeyError:
                continue
            except UNREADABLE as error:
                failed = True
                if self._found_damage(error):
                    return self.read(read, row_id, unreadable)
        if failed:
            raise StoreError(unreadable, strings.DAMAGED)
        raise KeyError(row_id)

    def rows(
        self, table: str, read: Callable[[ChatStore], Iterable[_Row]], one: Callable[[ChatStore, str], _Row]
    ) -> dict[str, _Row]:
        """Returns all rows of a table, without those that wait to be deleted."""
        found: dict[str, _Row] = {}
        waiting = self.waiting()
        for store in self._readable():
            if self.damaged:
                for row_id in store.ids(table) - found.keys():
                    with contextlib.suppress(KeyError, *UNREADABLE):
                        found[row_id] = one(store, row_id)
                continue
            try:
                found.update((each.id, each) for each in read(store))
            except UNREADABLE as error:
                self._outdated = not is_damage(error)  # the disk may be readable later
                if not self._outdated and self._found_damage(error):
                    return self.rows(table, read, one)
        for key, job in waiting.items():
            deleted = deleted_row(key, job)
            if deleted and deleted[0] == table:
                found.pop(deleted[1], None)
        return found

    def find(self, search: Callable[[ChatStore], Sequence[_Value]]) -> list[_Value]:
        """Returns the results of a search in all stores."""
        found: list[_Value] = []
        for store in self._readable():
            try:
                found += search(store)
            except UNREADABLE as error:
                if self._found_damage(error):
                    return self.find(search)
        return found

    def _found_damage(self, error: Exception) -> bool:
        """Returns whether `error` is the first damage, so that the stores were opened again.

        Raises `StoreError` if it is no damage.
        """
        if self.damaged:
            return False
        if not is_damage(error):
            raise StoreError(saving_trouble(error)) from None
        self.take_damage(error)
        self._tell(error)
        return True


def _mark(stores: Sequence[ChatStore]) -> Mark:
    """Returns the mark of the first store that has one."""
    for store in stores:
        with contextlib.suppress(*UNREADABLE):
            if (mark := store.mark()).changes:
                return mark
    return Mark()


def _is_unused(stores: Sequence[ChatStore], chat_id: str) -> bool:
    for store in stores:
        with contextlib.suppress(KeyError, *UNREADABLE):
            return store.summary(chat_id).turns == 0
    return False


def _found_in(chat: Conversation, words: Sequence[str]) -> Hit | None:
    """Returns where a chat that is not written yet has all of `words`."""
    if chat.deleted or not chat.turns:
        return None

    if all(word.casefold() in chat.title.casefold() for word in words):
        return Hit(chat.id)
    # As the full-text index finds it once it is written: at the beginnings of words.
    begins = [re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE) for word in words]
    for turn in chat.turns:
        texts = [turn.user.content, *(each.name for each in turn.user.attachments), turn.answer.text]
        if all(pattern.search("\n".join(texts)) for pattern in begins):
            best = max(texts, key=lambda text: sum(word.casefold() in text.casefold() for word in words))
            return Hit(chat.id, turn.id, *passage_of(best, words))
    return None


class KeptDocuments:
    """The kept documents of a library; they share its database and writer with the chats."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def documents(self) -> Sequence[KeptDocument]:
        waiting = self._library.waiting().values()
        found = self._library.rows(
            "documents",
            lambda store: store.document_rows.all(),
            lambda store, row_id: store.document_rows.load(row_id),
        )
        for kind in (DocumentAdded, DocumentChanged):  # a change is later
            found.update((job.document.id, job.document) for job in waiting if isinstance(job, kind))
        for job in waiting:
            if isinstance(job, DocumentGone):
                found.pop(job.id, None)
        return list(found.values())

    def text(self, document_id: str) -> str:
        waiting = self._library.waiting()
        added = waiting.get(text_key(document_id))
        if isinstance(waiting.get(key_of(DocumentGone(document_id))), DocumentGone):
            raise KeyError(document_id)
        if isinstance(added, DocumentAdded):
            return added.text
        return self._library.read(
            lambda store: store.document_rows.text(document_id), document_id, strings.DOCUMENT_UNREADABLE
        )

    def add(self, document: KeptDocument, text: str) -> None:
        self._do(DocumentAdded(document, text))

    def change(self, document: KeptDocument) -> None:
        self._do(DocumentChanged(document))

    def purge(self, document_id: str) -> None:
        self._do(DocumentGone(document_id))

    def search(self, query: str) -> Sequence[DocumentHit]:
        waiting = self._library.waiting().values()
        gone = {job.id for job in waiting if isinstance(job, DocumentGone)}
        words = query.casefold().split()
        hits: dict[str, DocumentHit] = {}
        for job in waiting:
            if isinstance(job, DocumentAdded) and words:
                text = f"{job.document.name}\n{job.text}".casefold()
                if all(word in text for word in words):
                    passage, marks = passage_of(job.text, query.split())
                    hits[job.document.id] = DocumentHit(job.document.id, passage if marks else "", marks)
        for hit in self._library.find(lambda store: store.document_rows.search(query)):
            if hit.id not in gone:
                hits.setdefault(hit.id, hit)
        return list(hits.values())

    def _do(self, job: DocumentJob) -> None:
        self._library.do(key_of(job), job)


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
