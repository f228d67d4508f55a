"""DocumentJob: what the writer is to do about a kept document."""

from __future__ import annotations

from msgspec import Struct

from app.session.library.document import KeptDocument
from app.store.documents.document_rows import DocumentRows


class DocumentAdded(Struct, frozen=True):
    """A new one, and its text."""

    document: KeptDocument
    text: str


class DocumentChanged(Struct, frozen=True):
    """Other facts about one."""

    document: KeptDocument


class DocumentGone(Struct, frozen=True):
    """One goes for good."""

    id: str


DocumentJob = DocumentAdded | DocumentChanged | DocumentGone


def text_key(document_id: str) -> str:
    """Under which its text waits: by itself, so that it is written before what is said about it later."""
    return f"document text {document_id}"


def key_of(job: DocumentJob) -> str:
    """Under which `job` waits: a newer one of the same key stands for it. No chat has such an id."""
    if isinstance(job, DocumentAdded):
        return text_key(job.document.id)
    return f"document {job.id if isinstance(job, DocumentGone) else job.document.id}"


def carry_out(job: DocumentJob, rows: DocumentRows) -> None:
    """Inside a transaction."""
    if isinstance(job, DocumentAdded):
        rows.add(job.document, job.text)
    elif isinstance(job, DocumentChanged):
        rows.change(job.document)
    else:
        rows.purge(job.id)
