"""Library: the archive that lasts. Reads on the caller's thread, writes on its own, survives its file.

    whole      reading and saving
    missing    as whole, but there are fewer chats than there were; a backup may have them
    elsewhere  another Draftlight has the chats open: read, nothing saved, nothing repaired
    damaged    the file is damaged: a copy is made, what can be read is read, nothing saved
    unusable   the file cannot be opened or is newer: nothing read, nothing saved

In all but the first two, what is written in this run is kept in memory, and `repair()` of a damaged
file takes it along. One process at a time saves: a lock beside the file says who.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from msgspec import Struct

from app.session.chats.archive import Hit, MemoryArchive, Summary
from app.session.chats.conversation import Conversation
from app.store import strings
from app.store.chat_store import ChatStore
from app.store.documents.kept_documents import KeptDocuments
from app.store.recovery.backup_keeper import BackupKeeper
from app.store.recovery.backups import Backups
from app.store.recovery.chat_count import ChatCount
from app.store.recovery.damage import UNREADABLE, Salvage, back_up
from app.store.recovery.faults import StoreError, is_damage, saving_trouble
from app.store.recovery.unsaved import Unsaved
from app.store.writer import Writer

State = Literal["whole", "missing", "elsewhere", "damaged", "unusable"]
_FILE = "chats.db"


class Condition(Struct, frozen=True):
    """How the library is. `readable` and `lost` count chats and records of a damaged file.

    Of one with chats missing, `readable` are there, `lost` are gone, and `restorable` of those are in
    the backup `copy`.
    """

    state: State = "whole"
    reason: str = ""
    hint: str = ""
    copy: str = ""
    readable: int = 0
    lost: int = 0
    restorable: int = 0


class Library:
    """`folder` is made if it is not there.

    `tell` hears on any thread why saving fails, and None when it works again; damage that it is
    told of has to be given to `take_damage()` on the caller's thread.
    """

    def __init__(self, folder: Path, tell: Callable[[Exception | None], None] = lambda error: None) -> None:
        self._path = folder / _FILE
        self._tell = tell
        self._lock: FileLock | None = None
        self._reader: ChatStore | Salvage | None = None
        self._writer: Writer | None = None
        self._memory = MemoryArchive()
        self._purged: set[str] = set()
        self._count = ChatCount(self._path)
        self._backups = Backups(self._path)
        self._keeper: BackupKeeper | None = None
        self._unsaved = Unsaved(self._path)
        self.documents = KeptDocuments(
            lambda: self._reader, lambda: self._writer, lambda error: self._found_damage(error)
        )
        self.condition = Condition()
        self._open(folder)

    @property
    def full_text(self) -> bool:
        """Whether searching is by words of a full-text index, or slower by pieces."""
        return isinstance(self._reader, ChatStore) and self._reader.full_text

    @property
    def salvages(self) -> bool:
        """Whether what is read comes out of a copy of a damaged file."""
        return isinstance(self._reader, Salvage)

    @property
    def unsaved_set_aside(self) -> Path | None:
        """Where the file went that could not be saved when the last run closed, if it is damaged."""
        return self._unsaved.set_aside

    @property
    def writer(self) -> Writer | None:
        """Who saves; None where nothing is saved."""
        return self._writer

    # ---- the archive

    def summaries(self) -> Sequence[Summary]:
        found = {summary.id: summary for summary in (self._reader.summaries() if self._reader else ())}
        found.update((summary.id, summary) for summary in self._memory.summaries())
        return [summary for summary in found.values() if summary.id not in self._purged]

    def load(self, chat_id: str) -> Conversation:
        waiting, chat = self._writer.pending(chat_id) if self._writer else (False, None)
        if waiting and chat:
            return chat
        if waiting or chat_id in self._purged:
            raise KeyError(chat_id)
        try:
            return self._memory.load(chat_id)
        except KeyError:
            if self._reader is None:
                raise
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
            self._memory.save(chat)

    def purge(self, chat_id: str) -> None:
        if self._writer:
            self._writer.purge(chat_id)
        else:
            self._memory.purge(chat_id)
            self._purged.add(chat_id)

    def search(self, query: str) -> Sequence[Hit]:
        """What is on disk by now, and what is in memory only."""
        hits = {hit.chat_id: hit for hit in self._memory.search(query)}
        try:
            found = self._reader.search(query) if self._reader else []
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise StoreError(saving_trouble(error)) from None
            self.take_damage(error)
            self._tell(error)
            return self.search(query)
        others = (hit for hit in found if hit.chat_id not in hits and hit.chat_id not in self._purged)
        return [*hits.values(), *others]

    # ---- its life

    def listen(self, tell: Callable[[Exception | None], None]) -> None:
        """Tell `tell` from now on."""
        self._tell = tell

    def when_kept(self, told: Callable[[bool], None]) -> None:
        """`told` hears whether all that was saved so far is safe on the disk; see `Writer.when_kept`."""
        if self._writer:
            self._writer.when_kept(told)
        else:
            told(False)

    def flush(self) -> bool:
        """Wait until all is on disk; False if it is not."""
        return self._writer.flush() if self._writer else not self._memory.summaries()

    def close(self) -> bool:
        """Save what waits and let the file go. False if something could not be saved.

        That is in a file of its own then, if there is a disk to write it to, until the next start.
        """
        self._end_backups()
        saved = self._writer.close() if self._writer else True
        if self._writer and not saved:
            waiting = self._writer.unsaved().values()
            self._unsaved.write(chat for chat in waiting if isinstance(chat, Conversation))
        self._writer = None
        if self._reader:
            self._reader.close()
        self._reader = None
        if self._lock:
            self._lock.release()
        self._lock = None
        return saved

    def take_damage(self, error: Exception) -> None:
        """The file is damaged: copy it, and go on with what can be read of it."""
        if self.salvages:
            return
        self._end_backups()
        if self._writer:
            self._keep_unsaved(self._writer)
        if self._reader:
            self._reader.close()
        try:
            salvage = Salvage(back_up(self._path))
        except OSError as failed:
            self._reader = None
            self.condition = Condition("unusable", strings.DAMAGED, str(failed))
            return
        self._reader = salvage
        copy, readable = str(salvage.copy), len(salvage.summaries())
        if self._lock:
            self.condition = Condition("damaged", strings.DAMAGED, "", copy, readable, salvage.lost)
        else:  # whose process writes to it may repair it
            self.condition = Condition(
                "elsewhere", strings.ELSEWHERE, strings.DAMAGED_ELSEWHERE, copy, readable, salvage.lost
            )

    def repair(self) -> Condition:
        """Put everything readable, and what was written since, into a new file; the copy stays.

        Raises `StoreError` if that cannot be done; then everything is as before.
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
                    for document in self.documents.documents():
                        store.document_rows.add(document, self.documents.text(document.id))
            finally:
                store.close()
            _remove(self._path)
            os.replace(fresh, self._path)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(strings.NOT_REPAIRED, str(error)) from None
        if self._reader:
            self._reader.close()
        self._memory, self._purged = MemoryArchive(), set()
        self.documents.saved_anew()
        self._begin()
        if not self.condition.restorable:  # what is lost was said when the damage was
            self.accept_missing()
        return self.condition

    def restore(self) -> Condition:
        """Bring back the chats that are missing and that a backup has; the others stay as they are.

        Raises `StoreError` if the backup cannot be read; then everything is as before.
        """
        fuller = self._backups.fuller(self._known())
        if self.condition.state != "missing" or fuller is None:
            return self.condition
        try:
            store = ChatStore(fuller.path, read_only=True)
            try:
                chats = [store.load(chat_id) for chat_id in fuller.chats]
            finally:
                store.close()
        except UNREADABLE as error:
            raise StoreError(strings.NOT_RESTORED, str(error)) from None
        for chat in chats:
            self.save(chat)
        self.accept_missing()
        return self.condition

    def accept_missing(self) -> None:
        """What is there is all that there is meant to be."""
        if self.condition.state == "missing" and isinstance(self._reader, ChatStore) and self.flush():
            self.condition = Condition()
            with contextlib.suppress(OSError):  # then it is asked again at the next start
                self._count.write(self._reader.count())
            self._start_backups()

    # ---- inside

    def _found_damage(self, error: Exception) -> None:
        self.take_damage(error)
        self._tell(error)

    def _known(self) -> frozenset[str]:
        return frozenset(summary.id for summary in self.summaries())

    def _begin_count(self, reader: ChatStore) -> Condition:
        """How many chats are there, compared with how many there were."""
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
            reader.summaries()  # damage there would leave the sidebar empty: better known now
            condition = self._begin_count(reader)
        except BaseException:
            reader.close()
            raise
        self._reader = reader
        self._writer = Writer(self._open_for_writing, lambda error: self._tell(error))
        self.condition = condition
        if condition.state == "whole":  # else a backup would take the place of one that has more
            self._start_backups()

    def _take_unsaved(self, reader: ChatStore) -> None:
        """What could not be saved when the last run closed, unless the database has a later state."""
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
        """On the writer's thread. A file that is damaged anywhere is not written to."""
        store = ChatStore(self._path, counted=self._count)
        verdict = store.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            store.close()
            raise sqlite3.DatabaseError(verdict)
        return store

    def _keep_unsaved(self, writer: Writer) -> None:
        self._writer = None
        writer.close(write=False)
        for chat_id, chat in writer.unsaved().items():
            if chat is None:
                self._purged.add(chat_id)
            elif isinstance(chat, Conversation):
                self._memory.save(chat)
            else:
                self.documents.keep_unsaved((chat,))

    def _take_lock(self, folder: Path) -> bool:
        """Whether this process is the one that saves. Ends with the process, however it ends."""
        lock = FileLock(folder / "chats.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        self._lock = lock
        return True


def _remove(path: Path) -> None:
    for side in ("", "-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
