"""Kept documents as rows of the chat database, and the jobs that change them.

    documents       one row a document; `sum` is the checksum of the facts, `text_sum` that of the text
    document_words  the search index: FTS5 over the names and texts of `documents` without a copy of them;
                    where SQLite has no FTS5, a search scans the texts

Invariant: a value that is read equals the one written, or `ValueError` is raised.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from app.session.chats.archive import passage_of
from app.session.documents import DocumentHit, KeptDocument
from app.store.database import (
    Value,
    check,
    checksum,
    like,
    prefix_query,
    text_of,
)
from core.events.wire import well_formed

_FACTS = "id, name, digest, characters, added, used, counts, removed"
_MOST_HITS = 100
# Characters of a text that are scanned for a word, and characters of the passage before and in all.
_LOOKED_THROUGH, _BEFORE, _SHOWN = 2_000_000, 60, 240
_NEAR = (
    f"substr(documents.text, max(1, instr(lower(substr(documents.text, 1, {_LOOKED_THROUGH})), lower(?))"
    f" - {_BEFORE}), {_SHOWN})"
)
_counts = msgspec.json.Decoder(dict[str, int])


class DocumentRows:
    """Reads and writes over one connection; writing needs a transaction. Raises `sqlite3.Error`."""

    def __init__(self, connection: sqlite3.Connection, full_text: bool) -> None:
        self._connection = connection
        self._full_text = full_text

    # ---- reading

    def all(self) -> Iterator[KeptDocument]:
        """Yields every document, in no order."""
        return map(_document, self._connection.execute(f"SELECT {_FACTS}, sum FROM documents"))

    def load(self, document_id: str) -> KeptDocument:
        """Raises `KeyError` if the document does not exist."""
        query = f"SELECT {_FACTS}, sum FROM documents WHERE id = ?"
        found = self._connection.execute(query, (document_id,)).fetchone()
        if found is None:
            raise KeyError(document_id)
        return _document(found)

    def text(self, document_id: str) -> str:
        """Raises `KeyError` if the document does not exist."""
        query = "SELECT text, text_sum FROM documents WHERE id = ?"
        found = self._connection.execute(query, (document_id,)).fetchone()
        if found is None:
            raise KeyError(document_id)
        text, total = found
        check(total, text)
        return text_of(text)

    def search(self, query: str) -> list[DocumentHit]:
        """Returns the documents that have all words of `query`, best first."""
        words = well_formed(query).replace("\0", " ").split()
        if not words:
            return []
        hits: dict[str, DocumentHit] = {}
        if self._full_text:
            hits = {hit.id: hit for hit in (*self._of_names(words), *self._by_words(words))}
        return list((hits or {hit.id: hit for hit in self._by_pieces(words)}).values())[:_MOST_HITS]

    # ---- writing

    def add(self, document: KeptDocument, text: str) -> None:
        facts = _facts(document)
        self._connection.execute("DELETE FROM documents WHERE id = ?", (document.id,))
        row = self._connection.execute(
            f"INSERT INTO documents ({_FACTS}, sum, text_sum, text) VALUES ({', '.join('?' * 11)})",
            (*facts, checksum(*facts), checksum(text), text),
        ).lastrowid
        self._index(row, document.name, text)

    def change(self, document: KeptDocument) -> None:
        facts = _facts(document)
        old = self._connection.execute(
            "SELECT row, name FROM documents WHERE id = ?", (document.id,)
        ).fetchone()
        if old is None:
            return
        row, name = old
        renamed = name != document.name
        text = self.text(document.id) if renamed else ""
        if renamed:
            self._unindex(row, name, text)
        setters = ", ".join(f"{each} = ?" for each in _FACTS.split(", "))
        self._connection.execute(
            f"UPDATE documents SET {setters}, sum = ? WHERE row = ?", (*facts, checksum(*facts), row)
        )
        if renamed:
            self._index(row, document.name, text)

    def purge(self, document_id: str) -> None:
        """Deletes a document and its text permanently."""
        old = self._connection.execute(
            "SELECT row, name, text FROM documents WHERE id = ?", (document_id,)
        ).fetchone()
        if old:
            self._unindex(*old)
            self._connection.execute("DELETE FROM documents WHERE id = ?", (document_id,))

    # ---- inside

    def _index(self, row: int | None, name: str, text: str) -> None:
        if self._full_text:
            self._connection.execute(
                "INSERT INTO document_words (rowid, name, text) VALUES (?, ?, ?)", (row, name, text)
            )

    def _unindex(self, row: int, name: str, text: str) -> None:
        if self._full_text:
            self._connection.execute(
                "INSERT INTO document_words (document_words, rowid, name, text) VALUES ('delete', ?, ?, ?)",
                (row, name, text),
            )

    def _of_names(self, words: list[str]) -> Iterator[DocumentHit]:
        where = " AND ".join(["name LIKE ? ESCAPE '\\'"] * len(words))
        found = self._connection.execute(
            f"SELECT id FROM documents WHERE removed IS NULL AND {where} ORDER BY used DESC",
            [like(word) for word in words],
        )
        return (DocumentHit(text_of(document)) for (document,) in found)

    def _by_words(self, words: list[str]) -> Iterator[DocumentHit]:
        match = prefix_query(words)
        if not match:
            return
        # FTS5's snippets take quadratic time in a word's occurrences: minutes for a long book.
        for document, near in self._connection.execute(
            f"SELECT documents.id, {_NEAR} FROM document_words"
            " JOIN documents ON documents.row = document_words.rowid"
            " WHERE document_words MATCH ? AND documents.removed IS NULL"
            f" ORDER BY document_words.rank LIMIT {_MOST_HITS}",
            (next(word for word in words if any(map(str.isalnum, word))), match),
        ):
            passage, marks = passage_of(text_of(near), words)
            yield DocumentHit(document, passage if marks else "", marks)

    def _by_pieces(self, words: list[str]) -> Iterator[DocumentHit]:
        """Matches words anywhere in a text, as in scripts without spaces between words."""
        where = " AND ".join(["(name LIKE ? ESCAPE '\\' OR text LIKE ? ESCAPE '\\')"] * len(words))
        found = self._connection.execute(
            f"SELECT id, {_NEAR} FROM documents"
            f" WHERE removed IS NULL AND {where} ORDER BY used DESC LIMIT {_MOST_HITS}",
            [words[0], *(like(word) for word in words for _ in range(2))],
        )
        for document, near in found:
            passage, marks = passage_of(text_of(near), words)
            yield DocumentHit(document, passage if marks else "", marks)


class DocumentAdded(Struct, frozen=True):
    """A new document and its text."""

    document: KeptDocument
    text: str


class DocumentChanged(Struct, frozen=True):
    """New facts about a document."""

    document: KeptDocument


class DocumentGone(Struct, frozen=True):
    """A document is deleted permanently."""

    id: str


DocumentJob = DocumentAdded | DocumentChanged | DocumentGone


def text_key(document_id: str) -> str:
    """Returns the key of a new document's text, so that it is written before later changes of its facts."""
    return f"document text {document_id}"


def key_of(job: DocumentJob) -> str:
    """Returns the key under which `job` waits until a newer job replaces it. No chat has such an id."""
    if isinstance(job, DocumentAdded):
        return text_key(job.document.id)
    return f"document {job.id if isinstance(job, DocumentGone) else job.document.id}"


def carry_out(job: DocumentJob, rows: DocumentRows) -> None:
    """Carries out `job` inside a transaction."""
    if isinstance(job, DocumentAdded):
        rows.add(job.document, job.text)
    elif isinstance(job, DocumentChanged):
        rows.change(job.document)
    else:
        rows.purge(job.id)


def _facts(document: KeptDocument) -> tuple[Value, ...]:
    return (
        document.id,
        document.name,
        document.digest,
        document.characters,
        document.added.isoformat(),
        document.used.isoformat(),
        msgspec.json.encode(document.counts, order="sorted").decode(),
        document.removed.isoformat() if document.removed else None,
    )


def _document(row: tuple[Any, ...]) -> KeptDocument:
    """Raises `ValueError` or `TypeError` for a damaged row."""
    *facts, total = row
    check(total, *facts)
    document, name, digest, characters, added, used, counts, removed = facts
    return KeptDocument(
        text_of(document),
        text_of(name),
        text_of(digest),
        int(characters),
        _time(added),
        _time(used),
        _counts.decode(text_of(counts)),
        _time(removed) if removed is not None else None,
    )


def _time(value: str) -> datetime:
    when = datetime.fromisoformat(value)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
