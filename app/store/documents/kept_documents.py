"""KeptDocuments: the library of documents that lasts, in the chat database and by the chats' writer.

Reads on the caller's thread; a text that the writer has not written yet comes from there. Where nothing is
saved, what is kept in this run lasts for this run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from app.session.library.document import DocumentHit, KeptDocument
from app.session.library.document_archive import MemoryDocuments
from app.store import strings
from app.store.documents.document_jobs import (
    DocumentAdded,
    DocumentChanged,
    DocumentGone,
    DocumentJob,
    text_key,
)
from app.store.recovery.faults import StoreError, is_damage, saving_trouble
from app.store.writer import Writer

_UNREADABLE = (sqlite3.Error, ValueError, TypeError, OverflowError)
_Value = TypeVar("_Value")


class DocumentReader(Protocol):
    """A database, or what was salvaged of one."""

    def documents(self) -> Sequence[KeptDocument]: ...

    def document_text(self, document_id: str) -> str: ...

    def find_documents(self, query: str) -> Sequence[DocumentHit]: ...


class KeptDocuments:
    """`reader` and `writer` are asked each time: of a damaged file a copy is read, and nothing written.

    `damaged` hears of damage and has seen to another reader when it returns.
    """

    def __init__(
        self,
        reader: Callable[[], DocumentReader | None],
        writer: Callable[[], Writer | None],
        damaged: Callable[[Exception], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._damaged = damaged
        self._memory = MemoryDocuments()
        self._purged: set[str] = set()

    # ---- the archive

    def documents(self) -> Sequence[KeptDocument]:
        found = {each.id: each for each in self._read(lambda reader: reader.documents())}
        found.update((each.id, each) for each in self._memory.documents())
        return [each for each in found.values() if each.id not in self._purged]

    def text(self, document_id: str) -> str:
        writer = self._writer()
        waiting = writer.pending_document(text_key(document_id)) if writer else None
        if isinstance(waiting, DocumentAdded):
            return waiting.text
        try:
            return self._memory.text(document_id)
        except KeyError:
            reader = self._reader()
            if reader is None or document_id in self._purged:
                raise
        try:
            return reader.document_text(document_id)
        except _UNREADABLE as error:
            self._tell(error)
            reason = saving_trouble(error) if isinstance(error, sqlite3.Error) else ""
            raise StoreError(strings.DOCUMENT_UNREADABLE, reason or strings.DOCUMENT_DAMAGED) from None

    def add(self, document: KeptDocument, text: str) -> None:
        if not self._write(DocumentAdded(document, text)):
            self._memory.add(document, text)

    def change(self, document: KeptDocument) -> None:
        if not self._write(DocumentChanged(document)):
            self._memory.change(document)

    def purge(self, document_id: str) -> None:
        if not self._write(DocumentGone(document_id)):
            self._memory.purge(document_id)
            self._purged.add(document_id)

    def search(self, query: str) -> Sequence[DocumentHit]:
        """What is on the disk by now, and what is in memory only."""
        here = list(self._memory.search(query))
        there = {hit.id for hit in here}
        found = self._read(lambda reader: reader.find_documents(query))
        return [*here, *(hit for hit in found if hit.id not in there and hit.id not in self._purged)]

    # ---- its life

    def keep_unsaved(self, jobs: Iterable[DocumentJob]) -> None:
        """Nothing is saved any more: what waited lasts for this run."""
        for job in jobs:
            if isinstance(job, DocumentAdded):
                self._memory.add(job.document, job.text)
            elif isinstance(job, DocumentChanged):
                self._memory.change(job.document)
            else:
                self._memory.purge(job.id)
                self._purged.add(job.id)

    def saved_anew(self) -> None:
        """All of it is in a new file."""
        self._memory, self._purged = MemoryDocuments(), set()

    # ---- inside

    def _write(self, job: DocumentJob) -> bool:
        writer = self._writer()
        if writer:
            writer.do_document(job)
        return writer is not None

    def _read(self, read: Callable[[DocumentReader], Sequence[_Value]]) -> Sequence[_Value]:
        """Nothing where nothing can be read."""
        reader = self._reader()
        if reader is None:
            return ()
        try:
            return read(reader)
        except _UNREADABLE as error:
            self._tell(error)
            return ()

    def _tell(self, error: Exception) -> None:
        if is_damage(error) or not isinstance(error, sqlite3.Error):
            self._damaged(error)
