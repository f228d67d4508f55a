"""DocumentRows: kept documents as rows of the chat database: list, read, write, search.

    documents       one row a document; `sum` is the checksum of the facts, `text_sum` that of the text
    document_words  what is searched: FTS5 over the names and texts of `documents`, which it does not
                    copy; where SQLite has no FTS5, texts are looked through

The text is the last column: listing does not read it. Invariant: what is read is what was written, or
`ValueError` says that it is not. A database of an older version has no documents.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.session.chats.archive import passage_of
from app.session.library.document import DocumentHit, KeptDocument
from app.store import schema
from app.store.checksum import ChecksumError, Value, check, checksum

_FACTS = "id, name, digest, characters, added, used, counts, removed"
_MOST_HITS = 100
# So much of a text is looked through for where a word stands in it, and shown around it.
_LOOKED_THROUGH, _BEFORE, _SHOWN = 2_000_000, 60, 240
_NEAR = (
    f"substr(documents.text, max(1, instr(lower(substr(documents.text, 1, {_LOOKED_THROUGH})), lower(?))"
    f" - {_BEFORE}), {_SHOWN})"
)
_counts = msgspec.json.Decoder(dict[str, int])


class DocumentRows:
    """Over one connection. Writing belongs inside a transaction; all raise `sqlite3.Error`.

    `doubt` gets what is wrong with a row; where it does not raise, the row is read as it is.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        full_text: bool,
        doubt: Callable[[Exception], None] | None = None,
    ) -> None:
        self._connection = connection
        self._full_text = full_text
        self._doubt = doubt or _refuse
        self._there = schema.version_of(connection) >= schema.DOCUMENTS_VERSION

    # ---- reading

    def all(self) -> Iterator[KeptDocument]:
        """Every document, in no order."""
        if not self._there:
            return
        for *facts, found in self._connection.execute(f"SELECT {_FACTS}, sum FROM documents"):
            self._check(found, *facts)
            yield _document(facts)

    def text(self, document_id: str) -> str:
        """Raises `KeyError` if there is none."""
        found = (
            self._there
            and self._connection.execute(
                "SELECT text, text_sum FROM documents WHERE id = ?", (document_id,)
            ).fetchone()
        )
        if not found:
            raise KeyError(document_id)
        text, total = found
        self._check(total, text)
        if not isinstance(text, str):
            raise ChecksumError("a document's text is none")
        return text

    def search(self, query: str) -> list[DocumentHit]:
        """Documents that have all words, best first."""
        words = query.replace("\0", " ").split()
        if not words or not self._there:
            return []
        hits: dict[str, DocumentHit] = {}
        if self._full_text:
            hits = {hit.id: hit for hit in (*self._of_names(words), *self._by_words(words))}
        return list((hits or {hit.id: hit for hit in self._by_pieces(words)}).values())[:_MOST_HITS]

    # ---- writing

    def add(self, document: KeptDocument, text: str) -> None:
        """A new one."""
        facts = _facts(document)
        self._connection.execute("DELETE FROM documents WHERE id = ?", (document.id,))
        row = self._connection.execute(
            f"INSERT INTO documents ({_FACTS}, sum, text_sum, text) VALUES ({', '.join('?' * 11)})",
            (*facts, checksum(*facts), checksum(text), text),
        ).lastrowid
        self._index(row, document.name, text)

    def change(self, document: KeptDocument) -> None:
        """Other facts; nothing happens if it is not there."""
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
        """It and its text, for good."""
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
        return (DocumentHit(document) for (document,) in found)

    def _by_words(self, words: list[str]) -> Iterator[DocumentHit]:
        wanted = [word for word in words if any(character.isalnum() for character in word)]
        if not wanted:
            return
        match = " ".join('"{}"*'.format(word.replace('"', '""')) for word in wanted)
        # FTS5's own snippets take the square of a word's places: minutes for a common one in a long book.
        for document, near in self._connection.execute(
            f"SELECT documents.id, {_NEAR} FROM document_words"
            " JOIN documents ON documents.row = document_words.rowid"
            " WHERE document_words MATCH ? AND documents.removed IS NULL"
            f" ORDER BY document_words.rank LIMIT {_MOST_HITS}",
            (wanted[0], match),
        ):
            passage, marks = passage_of(near, words)
            yield DocumentHit(document, passage if marks else "", marks)

    def _by_pieces(self, words: list[str]) -> Iterator[DocumentHit]:
        """Words anywhere inside, as in scripts that put no spaces between them."""
        where = " AND ".join(["(name LIKE ? ESCAPE '\\' OR text LIKE ? ESCAPE '\\')"] * len(words))
        found = self._connection.execute(
            f"SELECT id, {_NEAR} FROM documents"
            f" WHERE removed IS NULL AND {where} ORDER BY used DESC LIMIT {_MOST_HITS}",
            [words[0], *(like(word) for word in words for _ in range(2))],
        )
        for document, near in found:
            passage, marks = passage_of(near, words)
            yield DocumentHit(document, passage if marks else "", marks)

    def _check(self, found: int | None, *values: Value) -> None:
        try:
            check(found, *values)
        except ChecksumError as error:
            self._doubt(error)


def like(word: str) -> str:
    """A pattern for `word` anywhere in a text."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


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


def _document(facts: list[Any]) -> KeptDocument:
    """Raises `ValueError` or `TypeError` for what was never written so."""
    document, name, digest, characters, added, used, counts, removed = facts
    if not all(isinstance(each, str) for each in (document, name, digest, counts)):
        raise TypeError("a document's facts are not texts")
    return KeptDocument(
        document,
        name,
        digest,
        int(characters),
        _time(added),
        _time(used),
        _counts.decode(counts),
        _time(removed) if removed is not None else None,
    )


def _time(value: str) -> datetime:
    when = datetime.fromisoformat(value)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _refuse(error: Exception) -> None:
    raise error
