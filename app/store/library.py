"""Library: the chats, projects and documents of one home.

Reads on the caller's thread, writes on the writer's thread.

    whole      reads and saves
    missing    as whole, but some chats are missing; a backup may have them
    elsewhere  another Draftlight has the chats open: reads, does not save or repair
    damaged    the file is damaged: reads what a copy of it yields, does not save
    unusable   the file cannot be opened or is newer: neither reads nor saves

In the last three states changes last for this run, in memory; `repair()` of a damaged file saves them too.
Without a folder everything lasts for this run. One process at a time saves: it holds a lock beside the file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from filelock import FileLock, Timeout
from msgspec import Struct

from app.session.chats.archive import Hit, Summary
from app.session.chats.conversation import Conversation
from app.session.chats.projects import Project
from app.session.documents import DocumentHit, KeptDocument
from app.store import strings
from app.store.chat_store import ChatStore, MemoryStore
from app.store.documents import DocumentAdded, DocumentChanged, DocumentGone, DocumentJob, text_key
from app.store.faults import StoreError, is_damage, saving_trouble
from app.store.preferences import PreferencesFile
from app.store.recovery import UNREADABLE, BackupKeeper, Backups, ChatCount, Salvage, Unsaved, copy_beside
from app.store.rows import ProjectGone, ProjectJob
from app.store.writer import Writer

State = Literal["whole", "missing", "elsewhere", "damaged", "unusable"]
_FILE = "chats.db"
_Document = TypeVar("_Document", KeptDocument, DocumentHit)


class Condition(Struct, frozen=True):
    """The library's state. `readable` counts chats and `lost` records of a damaged file.

    With chats missing, `readable` and `lost` count present and missing chats; the backup `copy` has
    `restorable` of those.
    """

    state: State = "whole"
    reason: str = ""
    hint: str = ""
    copy: str = ""
    readable: int = 0
    lost: int = 0
    restorable: int = 0


class Library:
    """Creates `folder` if needed; None keeps everything in memory.

    Calls `tell` on any thread with the reason why saving fails, and with None when it works again. The
    listener passes damage on to `take_damage()` on the caller's thread.
    """

    def __init__(
        self, folder: Path | None, tell: Callable[[Exception | None], None] = lambda error: None
    ) -> None:
        self._tell = tell
        self._lock: FileLock | None = None
        self._reader: ChatStore | None = None
        self._writer: Writer | None = None
        # Changes that are not saved, and the ids of deleted chats and documents that the reader still has.
        self._memory: MemoryStore | None = None
        self.purged: set[str] = set()
        self._keeper: BackupKeeper | None = None
        self.documents = KeptDocuments(self)
        self.condition = Condition()
        # Without a folder none of these files is used.
        self._path = (folder or Path()) / _FILE
        self._count = ChatCount(self._path)
        self._backups = Backups(self._path)
        self._unsaved = Unsaved(self._path)
        if folder:
            self._open(folder)

    @property
    def full_text(self) -> bool:
        """Whether a full-text index is searched; without one a search scans all texts."""
        return (self._reader or self.memory).full_text

    @property
    def salvages(self) -> bool:
        """Whether the chats come from a copy of a damaged file."""
        return isinstance(self._reader, Salvage)

    @property
    def unsaved_set_aside(self) -> Path | None:
        """The new path of a damaged file of chats that the last run could not save."""
        return self._unsaved.set_aside

    @property
    def writer(self) -> Writer | None:
        """The thread that saves; None where nothing is saved."""
        return self._writer

    @property
    def stores(self) -> tuple[ChatStore, ...]:
        """The stores that are read, the unsaved changes first."""
        return tuple(store for store in (self._memory, self._reader) if store)

    @property
    def memory(self) -> MemoryStore:
        """The changes that last for this run only."""
        if self._memory is None:
            self._memory = MemoryStore()
        return self._memory

    # ---- the archive

    def summaries(self) -> Sequence[Summary]:
        found = {summary.id: summary for summary in (self._reader.summaries() if self._reader else ())}
        if self._memory:
            found.update((summary.id, summary) for summary in self._memory.summaries())
        return [summary for summary in found.values() if summary.id not in self.purged]

    def load(self, chat_id: str) -> Conversation:
        waiting, chat = self._writer.pending(chat_id) if self._writer else (False, None)
        if waiting and chat:
            return chat
        if waiting or chat_id in self.purged:
            raise KeyError(chat_id)
        if self._memory:
            with contextlib.suppress(KeyError):
                return self._memory.load(chat_id)
        if self._reader is None:
            raise KeyError(chat_id)
        try:
            chat = self._reader.load(chat_id)
        except UNREADABLE as error:
            if isinstance(error, sqlite3.Error) and not is_damage(error):
                raise StoreError(saving_trouble(error)) from None
            self.take_damage(error)
            self._tell(error)
            return self.load(chat_id)
        if self._writer:
            self._writer.note(chat)
        return chat

    def save(self, chat: Conversation) -> None:
        if self._keeper:
            self._keeper.busy()
        if self._writer:
            self._writer.save(chat)
        else:
            self.memory.save(chat)

    def purge(self, chat_id: str) -> None:
        if self._writer:
            self._writer.purge(chat_id)
        else:
            self.memory.purge(chat_id)
            self.purged.add(chat_id)

    def search(self, query: str) -> Sequence[Hit]:
        """Searches the database and the unsaved changes, but not what the writer has not written yet."""
        hits = {hit.chat_id: hit for hit in (self._memory.search(query) if self._memory else ())}
        try:
            found = self._reader.search(query) if self._reader else []
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise StoreError(saving_trouble(error)) from None
            self.take_damage(error)
            self._tell(error)
            return self.search(query)
        others = (hit for hit in found if hit.chat_id not in hits and hit.chat_id not in self.purged)
        return [*hits.values(), *others]

    def projects(self) -> Sequence[Project]:
        found: dict[str, Project] = {}
        for store in reversed(self.stores):  # the unsaved changes replace those of the file
            try:
                found.update((each.id, each) for each in store.projects())
            except UNREADABLE as error:
                if isinstance(error, sqlite3.Error) and not is_damage(error):
                    continue
                self.found_damage(error)
                return self.projects()
        return [each for each in found.values() if each.id not in self.purged]

    def save_project(self, project: Project) -> None:
        self._do_project(project)

    def purge_project(self, project_id: str) -> None:
        self._do_project(ProjectGone(project_id))

    # ---- life cycle

    def listen(self, tell: Callable[[Exception | None], None]) -> None:
        self._tell = tell

    def when_kept(self, done: Callable[[bool], None]) -> None:
        """Calls `done` with whether everything saved so far is durable; see `Writer.when_kept`."""
        if self._writer:
            self._writer.when_kept(done)
        else:
            done(False)

    def flush(self) -> bool:
        """Waits until everything is written; False if that fails."""
        if self._writer:
            return self._writer.flush()
        return self._memory is None or not self._memory.summaries()

    def close(self) -> bool:
        """Saves what waits and closes the file. False if something could not be saved.

        Unsaved chats go to a separate file, if the disk allows it, and are read at the next start.
        """
        self._end_backups()
        saved = self._writer.close() if self._writer else True
        if self._writer and not saved:
            waiting = self._writer.unsaved().values()
            self._unsaved.write(chat for chat in waiting if isinstance(chat, Conversation))
        self._writer = None
        for store in self.stores:
            store.close()
        self._reader = self._memory = None
        if self._lock:
            self._lock.release()
        self._lock = None
        return saved

    def take_damage(self, error: Exception) -> None:
        """Copies the damaged file and replaces the reader by what the copy yields."""
        if self.salvages:
            return
        self._end_backups()
        if self._writer:
            self._keep_unsaved(self._writer)
        if self._reader:
            self._reader.close()
        try:
            salvage = Salvage(copy_beside(self._path))
        except OSError as failed:
            self._reader = None
            self.condition = Condition("unusable", strings.DAMAGED, str(failed))
            return
        self._reader = salvage
        copy, readable = str(salvage.copy), len(salvage.summaries())
        if self._lock:
            self.condition = Condition("damaged", strings.DAMAGED, "", copy, readable, salvage.lost)
        else:  # only the process that writes to the file may repair it
            self.condition = Condition(
                "elsewhere", strings.ELSEWHERE, strings.DAMAGED_ELSEWHERE, copy, readable, salvage.lost
            )

    def repair(self) -> Condition:
        """Writes everything readable, and later changes, to a new file; the copy stays.

        Raises `StoreError` with nothing changed.
        """
        if self.condition.state != "damaged":
            return self.condition
        fresh = self._path.with_name(f"{self._path.stem}-repaired{self._path.suffix}")
        try:
            _remove(fresh)
            store = ChatStore(fresh)
            try:
                with store.transaction():
                    for summary in self.summaries():
                        store.write(self.load(summary.id))
                    for project in self.projects():
                        store.project_rows.do(project)
                    for document in self.documents.documents():
                        store.document_rows.add(document, self.documents.text(document.id))
            finally:
                store.close()
            _remove(self._path)
            os.replace(fresh, self._path)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(strings.NOT_REPAIRED, str(error)) from None
        for each in self.stores:
            each.close()
        self._memory, self.purged = None, set()
        self._begin()
        if not self.condition.restorable:  # the losses were reported with the damage
            self.accept_missing()
        return self.condition

    def restore(self) -> Condition:
        """Restores the missing chats that a backup has; the others stay as they are.

        Raises `StoreError` with nothing changed if the backup cannot be read.
        """
        fuller = self._backups.fuller(self._known())
        if self.condition.state != "missing" or fuller is None:
            return self.condition
        try:
            store = ChatStore(fuller.path, read_only=True)
            try:
                chats = [store.load(chat_id) for chat_id in fuller.chats]
                projects = store.projects()
            finally:
                store.close()
        except UNREADABLE as error:
            raise StoreError(strings.NOT_RESTORED, str(error)) from None
        known = {each.id for each in self.projects()}
        for project in projects:
            if project.id not in known:
                self.save_project(project)
        for chat in chats:
            self.save(chat)
        self.accept_missing()
        return self.condition

    def accept_missing(self) -> None:
        """Accepts the present chats as complete."""
        if self.condition.state == "missing" and self._reader and self.flush():
            self.condition = Condition()
            with contextlib.suppress(OSError):  # the next start asks again
                self._count.write(self._reader.count())
            self._start_backups()

    def found_damage(self, error: Exception) -> None:
        """Takes the damage and reports it."""
        self.take_damage(error)
        self._tell(error)

    # ---- inside

    def _do_project(self, job: ProjectJob) -> None:
        if self._writer:
            self._writer.do_project(job)
            return
        self.memory.do_project(job)
        if isinstance(job, ProjectGone):
            self.purged.add(job.id)

    def _known(self) -> frozenset[str]:
        return frozenset(summary.id for summary in self.summaries())

    def _begin_count(self, reader: ChatStore) -> Condition:
        """Compares the number of chats with the remembered one."""
        found, known = reader.count(), self._count.read()
        if known is None or found > known:
            self._count.write(found)
        if known is None or found >= known:
            return Condition()
        fuller = self._backups.fuller(frozenset(each.id for each in reader.summaries()))
        return Condition(
            "missing",
            strings.MISSING,
            copy=str(fuller.path) if fuller else "",
            readable=found,
            lost=known - found,
            restorable=len(fuller.chats) if fuller else 0,
        )

    def _start_backups(self) -> None:
        if self._keeper is None:
            self._keeper = BackupKeeper(self._backups, lambda error: self._tell(error))

    def _end_backups(self) -> None:
        if self._keeper:
            self._keeper.close()
        self._keeper = None

    def _open(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not self._take_lock(folder):
                self._reader = ChatStore(self._path, read_only=True)
                self.condition = Condition("elsewhere", strings.ELSEWHERE, strings.ELSEWHERE_HINT)
                return
            self._begin()
        except StoreError as error:
            self.condition = Condition("unusable", error.message, error.hint)
        except (OSError, *UNREADABLE) as error:
            passing = isinstance(error, sqlite3.Error) and not is_damage(error)
            if self._path.is_file() and not isinstance(error, OSError) and not passing:
                self.take_damage(error)
            else:
                said = error.strerror if isinstance(error, OSError) and error.strerror else ""
                hint = strings.not_opened(said) if said else saving_trouble(error)
                self.condition = Condition("unusable", strings.UNUSABLE, hint)

    def _begin(self) -> None:
        reader = ChatStore(self._path)
        try:
            self._take_unsaved(reader)
            reader.summaries(), reader.projects()  # damage there would leave the sidebar empty
            condition = self._begin_count(reader)
        except BaseException:
            reader.close()
            raise
        self._reader = reader
        self._writer = Writer(self._open_for_writing, lambda error: self._tell(error))
        self.condition = condition
        if condition.state == "whole":  # otherwise a backup would replace one with more chats
            self._start_backups()

    def _take_unsaved(self, reader: ChatStore) -> None:
        """Saves the chats that the last run could not save, unless the database has a later state."""
        chats = self._unsaved.read()
        if not chats:
            return
        changed_s = {summary.id: summary.when.timestamp() for summary in reader.summaries()}
        store = self._open_for_writing()
        try:
            with store.transaction(durable=True):
                for chat in chats:
                    if chat.id not in changed_s or changed_s[chat.id] <= chat.changed.timestamp():
                        store.write(chat)
        finally:
            store.close()
        self._unsaved.taken()

    def _open_for_writing(self) -> ChatStore:
        """Opens the file on the writer's thread. Raises `sqlite3.DatabaseError` if it is damaged."""
        store = ChatStore(self._path, counted=self._count.add)
        try:
            store.quick_check()
        except sqlite3.Error:
            store.close()
            raise
        return store

    def _keep_unsaved(self, writer: Writer) -> None:
        self._writer = None
        writer.close(write=False)
        for chat_id, chat in writer.unsaved().items():
            if chat is None:
                self.purged.add(chat_id)
            elif isinstance(chat, Conversation):
                self.memory.save(chat)
            elif isinstance(chat, Project | ProjectGone):
                self._do_project(chat)
            else:
                self.documents.keep_unsaved(chat)

    def _take_lock(self, folder: Path) -> bool:
        """Returns whether this process may save. The lock ends with the process."""
        lock = FileLock(folder / "chats.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        self._lock = lock
        return True


class KeptDocuments:
    """The kept documents of a library; they share its database, writer and memory with the chats."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def documents(self) -> Sequence[KeptDocument]:
        return list(self._read(lambda store: store.documents()).values())

    def text(self, document_id: str) -> str:
        library = self._library
        waiting = library.writer.pending_document(text_key(document_id)) if library.writer else None
        if isinstance(waiting, DocumentAdded):
            return waiting.text
        if document_id not in library.purged:
            for store in library.stores:
                try:
                    return store.document_text(document_id)
                except KeyError:
                    continue
                except UNREADABLE as error:
                    self._take(error)
                    reason = saving_trouble(error) if isinstance(error, sqlite3.Error) else ""
                    raise StoreError(
                        strings.DOCUMENT_UNREADABLE, reason or strings.DOCUMENT_DAMAGED
                    ) from None
        raise KeyError(document_id)

    def add(self, document: KeptDocument, text: str) -> None:
        self._do(DocumentAdded(document, text))

    def change(self, document: KeptDocument) -> None:
        self._do(DocumentChanged(document))

    def purge(self, document_id: str) -> None:
        self._do(DocumentGone(document_id))

    def search(self, query: str) -> Sequence[DocumentHit]:
        """Searches the database and the unsaved changes, but not what the writer has not written yet."""
        return list(self._read(lambda store: store.find_documents(query)).values())

    def keep_unsaved(self, job: DocumentJob) -> None:
        """Carries out `job` in memory."""
        library = self._library
        if isinstance(job, DocumentGone):
            library.purged.add(job.id)
        elif isinstance(job, DocumentChanged):
            with contextlib.suppress(KeyError, StoreError):
                job = DocumentAdded(job.document, self.text(job.document.id))
        library.memory.do_document(job)

    def _do(self, job: DocumentJob) -> None:
        if self._library.writer:
            self._library.writer.do_document(job)
        else:
            self.keep_unsaved(job)

    def _read(self, read: Callable[[ChatStore], Sequence[_Document]]) -> dict[str, _Document]:
        """Returns the results of all stores by id, those in memory first; none of a store that fails."""
        found: dict[str, _Document] = {}
        for store in self._library.stores:
            try:
                for each in read(store):
                    if each.id not in self._library.purged:
                        found.setdefault(each.id, each)
            except UNREADABLE as error:
                self._take(error)
        return found

    def _take(self, error: Exception) -> None:
        if is_damage(error) or not isinstance(error, sqlite3.Error):
            self._library.found_damage(error)


def _remove(path: Path) -> None:
    for side in ("", "-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)


class Home:
    """The chats, documents and preferences of one window.

    Without a `folder` everything lasts for this run only: smoke tests and screenshots leave no files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.library = Library(folder)
        self.preferences = PreferencesFile(folder)

    def close(self) -> bool:
        """Saves what waits. False if something could not be saved."""
        return all([self.library.close(), self.preferences.flush()])
