"""ChatStore: chats, projects and kept documents in one SQLite file: list, load, write, purge, search.

Invariant: after a record is written, reading returns an equal one or raises. Of a chat only changes are
written: a turn that is equal in `before` is in the database already, and of an answer in progress only
the new tokens are written, so that a flush costs as little at its end as at its beginning. One connection may
read while another one writes (write-ahead log).

Search matches words from their beginnings by FTS5 (`fog dep` finds "Fog departures"). Where that finds
nothing, it matches the words anywhere inside the texts: the middle of a word, and scripts without spaces
between words.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.archive import Hit, Summary, passage_of
from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.chats.projects import Project
from app.session.documents import DocumentHit, KeptDocument
from app.session.images import hashes_in, hashes_of_turn, in_draft
from app.store import schema, strings
from app.store.database import ChecksumError, Database, checked, checksum, like, prefix_query, text_of
from app.store.faults import UNREADABLE, EmptyStoreError, StoreError
from app.store.packing import (
    PackedAnswer,
    PackedTurn,
    TokenColumns,
    columns_of,
    pack,
    packed,
    packed_chat,
    tokens_of,
    unpack,
    unpacked,
    with_results,
    without_results,
)
from core.events import Token
from core.events.wire import well_formed, well_formed_record
from core.system.prepared import prepared

TABLES = ("projects", "documents", "chats")
# More than a person reads through.
_MOST_HITS = 100
_MOST_ROWS = 600
_UNSENT = -1  # the place of images that were not sent
# Limits of a pasted search text: SQLite limits the terms of a condition and the size of a pattern.
_MOST_WORDS, _LONGEST_WORD = 32, 200
# Characters of a document that are scanned for a word, and characters of the passage before and in all.
_LOOKED_THROUGH, _BEFORE, _SHOWN = 2_000_000, 60, 240
# Errors about a value; SQLite's other errors concern the file.
_ABOUT_A_VALUE = (sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
_CHAT = "id, title, name, changed, turns, deleted, state"
_DOCUMENT = "id, name, used, removed, state"
_FOUND_TURNS = (
    "SELECT turns.chat, turns.name, words.title, words.question, words.names, words.answer FROM words"
    " JOIN turns ON turns.id = words.rowid JOIN chats ON chats.id = turns.chat WHERE chats.deleted = 0 AND "
)
# FTS5's snippets take quadratic time in a word's occurrences: minutes for a long book.
_FOUND_TEXTS = (
    f"SELECT documents.id, substr(texts.text, max(1, instr(lower(substr(texts.text, 1, {_LOOKED_THROUGH})),"
    f" lower(?)) - {_BEFORE}), {_SHOWN}) FROM texts JOIN documents ON documents.row = texts.rowid"
    " WHERE documents.removed = 0 AND "
)


class Mark(Struct, frozen=True):
    """The number of transactions with changes, and the clock at the last one (see clock.py)."""

    changes: int = 0
    steady_s: float = 0.0
    wall_s: float = 0.0


class StoredDocument(Struct, frozen=True):
    """A kept document and its text; a `KeptDocument` alone is a change of the facts."""

    document: KeptDocument
    text: str


Record = Conversation | Project | KeptDocument | StoredDocument
# One of `TABLES`, or `texts` for a document with its text, and an id.
Key = tuple[str, str]
# The value written under a key: its newest state, None to delete it permanently.
Job = Record | None


def key_of(record: Record) -> Key:
    """Returns the key under which `record` waits to be written until a newer one replaces it.

    A document's text has a separate key, so that a change of the facts does not replace it.
    """
    if isinstance(record, Conversation):
        return "chats", record.id
    if isinstance(record, Project):
        return "projects", record.id
    if isinstance(record, KeptDocument):
        return "documents", record.id
    return "texts", record.document.id


class ChatStore(Database):
    """Opens or creates the file at `path`; in memory if it is None.

    `log` False: a single file without a write-ahead log, for copies. Raises `OtherStoreError`,
    `ChecksumError` or `sqlite3.Error`; for `read_only` also `EmptyStoreError`, if the file has no tables.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False, log: bool = True) -> None:
        super().__init__(path, read_only=read_only)
        try:
            with self.snapshot():  # another process or thread may be creating the tables
                ours = schema.require_ours(self.connection)
            if read_only and not ours:
                raise EmptyStoreError
            self.connection.execute("PRAGMA cache_size = -16000")
            if not read_only:
                # Write-ahead: readers never wait for writers, and a crash loses whole batches or nothing.
                self.connection.execute(f"PRAGMA journal_mode = {'WAL' if log else 'MEMORY'}")
                self.connection.execute("PRAGMA foreign_keys = ON")
                self.connection.execute("PRAGMA secure_delete = ON")
                with self.transaction():
                    if not schema.require_ours(self.connection):
                        schema.create(self.connection)
        except BaseException:
            self.connection.close()
            raise

    # ---- reading: damage raises one of `UNREADABLE`

    def heads(self, table: str) -> list[Any]:
        """Returns what the lists show of all records of a table, in no order.

        Each is found as `load` finds it: SQLite finds a table in order that has the pages of another one.
        """
        with self.snapshot():
            queries = map(self.connection.execute, _ways_to_ids(table))
            ids = {text_of(row_id) for rows in queries for (row_id,) in rows}
            try:
                return [self.head((table, row_id)) for row_id in ids]
            except KeyError as error:
                raise ChecksumError(f"a row of {table} is missing") from error

    def head(self, key: Key) -> Summary | Project | KeptDocument:
        """Returns what the lists show of a record. Raises `KeyError`."""
        columns, read = _HEADS[key[0]]
        return read(self._row(columns, *key))

    def get(self, key: Key) -> Record:
        """Returns a whole record; a document with its text under both its keys. Raises `KeyError`."""
        table, row_id = key
        head = self.head(("documents" if table == "texts" else table, row_id))
        if isinstance(head, Summary):
            return self.load(head.id)
        return StoredDocument(head, self.text(head.id)) if isinstance(head, KeptDocument) else head

    def load(self, chat_id: str) -> Conversation:
        """Returns a whole chat. Raises `KeyError`."""
        with self.snapshot():
            chat, summary = _chat(self._row(_CHAT, "chats", chat_id))
            rows = self.connection.execute(
                "SELECT chat, place, name, state, sum FROM turns WHERE chat = ? ORDER BY place", (chat_id,)
            ).fetchall()
            parts = self.connection.execute(
                "SELECT chat, turn, place, state, sum FROM parts WHERE chat = ? ORDER BY turn, place",
                (chat_id,),
            ).fetchall()
            query = "SELECT chat, turn, hash, data, sum FROM blobs WHERE chat = ?"
            blobs = {row[2]: checked(row)[3] for row in self.connection.execute(query, (chat_id,))}
        answers: list[Answer] = []
        tokens: list[list[Token]] = []
        for part in parts:
            _, turn, place, state = checked(part)
            if place == 0 and turn == len(answers):
                first = unpack(state, PackedAnswer)
                answers.append(with_results(first.answer, blobs))
                tokens.append(list(tokens_of(first.tokens)))
            elif turn == len(answers) - 1 and place == len(tokens[-1]):
                tokens[-1] += tokens_of(unpack(state, TokenColumns))
            else:
                raise ChecksumError("a part of an answer is missing")
        if not [place for _, place, *_ in rows] == list(range(summary.turns)) == list(range(len(answers))):
            raise ChecksumError("questions or answers of a chat are missing")
        turns = []
        for row, answer, own in zip(rows, answers, tokens):
            turn = unpacked(unpack(checked(row)[3], PackedTurn), blobs)
            turns.append(replace(turn, answer=replace(answer, tokens=tuple(own))))
        return replace(chat, turns=tuple(turns))

    def text(self, document_id: str) -> str:
        """Returns a document's text. Raises `KeyError`."""
        found = self.connection.execute(
            "SELECT texts.text, documents.text_sum FROM documents LEFT JOIN texts"
            " ON texts.rowid = documents.row WHERE documents.id = ?",
            (document_id,),
        ).fetchone()
        if found is None:
            raise KeyError(document_id)
        return text_of(checked(found)[0])

    def ids(self, table: str) -> set[str]:
        """Returns the ids in one of `TABLES`: of a damaged one those that are found.

        A chat of which only questions are left counts.
        """
        found: set[str] = set()
        for query in _ways_to_ids(table):
            with contextlib.suppress(*UNREADABLE):
                for (row_id,) in self.connection.execute(query):
                    if isinstance(row_id, str):
                        found.add(row_id)
        return found

    def keys(self) -> set[Key]:
        """Returns the keys of all rows of `TABLES`, readable or not."""
        return {(table, row_id) for table in TABLES for row_id in self.ids(table)}

    def image_hashes(self) -> set[str]:
        """Returns the hashes of the images of all chats."""
        return self._hashes("SELECT chat, place, hash, sum FROM images")

    def images_of(self, keys: Collection[Key]) -> set[str]:
        """Returns the hashes of the images of those chats among `keys`."""
        query = "SELECT chat, place, hash, sum FROM images WHERE chat = ?"
        return set[str]().union(*(self._hashes(query, row_id) for table, row_id in keys if table == "chats"))

    def _hashes(self, query: str, *values: str) -> set[str]:
        return {text_of(checked(row)[2]) for row in self.connection.execute(query, values)}

    def has_turns(self, count: int) -> bool:
        """Returns whether all chats together have at least `count` turns."""
        found = self.connection.execute("SELECT count(*) FROM (SELECT 1 FROM turns LIMIT ?)", (count,))
        return int(found.fetchone()[0]) == count

    def mark(self) -> Mark:
        found = self.connection.execute("SELECT value FROM facts WHERE name = 'mark'").fetchone()
        return msgspec.json.decode(found[0], type=prepared(Mark)) if found else Mark()

    def check(self, proceed: Callable[[], None] = lambda: None) -> None:
        """Reads everything. Raises `sqlite3.Error` or `ChecksumError` at the first damage.

        `proceed` is called between records and may raise to stop the check.
        """
        self.quick_check()
        try:
            self.image_hashes()
            for head in [head for table in TABLES for head in self.heads(table)]:
                proceed()
                with contextlib.suppress(KeyError):  # deleted meanwhile
                    if isinstance(head, Summary):
                        self.load(head.id)
                    elif isinstance(head, KeptDocument):
                        self.text(head.id)
        except (ValueError, TypeError, OverflowError) as error:
            raise ChecksumError(str(error)) from error

    def quick_check(self) -> None:
        """Raises `ChecksumError` if SQLite finds the file damaged, or a question without its chat."""
        verdict = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise ChecksumError(verdict)
        if self.connection.execute("PRAGMA foreign_key_check").fetchone():
            raise ChecksumError("a row without the one that it belongs to")

    def _row(self, columns: str, table: str, row_id: str) -> Sequence[Any]:
        query = f"SELECT {columns}, sum FROM {table} WHERE id = ?"
        found: Sequence[Any] | None = self.connection.execute(query, (row_id,)).fetchone()
        if found is None:
            raise KeyError(row_id)
        return found

    # ---- search

    def search(self, query: str) -> list[Hit]:
        """Returns the chats that have all words of `query`, best first, each once."""
        words = _words_of(query)
        if not words:
            return []
        titles = self.connection.execute(
            f"SELECT id FROM chats WHERE deleted = 0 AND turns > 0 AND {_anywhere(words, 'title')}"
            f" ORDER BY changed DESC LIMIT {_MOST_HITS}",
            [like(word) for word in words],
        )
        hits = {chat: Hit(text_of(chat)) for (chat,) in titles}
        match = prefix_query(words)
        by_rank = f"{_FOUND_TURNS} words MATCH ? ORDER BY words.rank LIMIT {_MOST_ROWS}"
        rows = self.connection.execute(by_rank, (match,)).fetchall() if match else []
        columns = ("words.title", "words.question", "words.names", "words.answer")
        for row in rows or self.connection.execute(
            f"{_FOUND_TURNS} {_anywhere(words, *columns)} ORDER BY chats.changed DESC LIMIT {_MOST_ROWS}",
            [like(word) for word in words for _ in columns],
        ):
            chat, turn, *texts = map(text_of, row)
            if chat not in hits and len(hits) < _MOST_HITS:
                best = max(texts, key=lambda text: sum(word.casefold() in text.casefold() for word in words))
                hits[chat] = Hit(chat, turn, *passage_of(best, words))
        return list(hits.values())

    def search_documents(self, query: str) -> list[DocumentHit]:
        """Returns the documents that have all words of `query`, best first, without removed ones."""
        words = _words_of(query)
        if not words:
            return []
        names = self.connection.execute(
            f"SELECT id FROM documents WHERE removed = 0 AND {_anywhere(words, 'name')} ORDER BY used DESC",
            [like(word) for word in words],
        )
        hits = [DocumentHit(text_of(document)) for (document,) in names]
        if match := prefix_query(words):
            shown = next(word for word in words if any(map(str.isalnum, word)))
            by_rank = "texts MATCH ? ORDER BY texts.rank"
            hits += self._texts(by_rank, [shown, match], words)
        if not hits:
            where = f"{_anywhere(words, 'texts.name', 'texts.text')} ORDER BY documents.used DESC"
            hits += self._texts(where, [words[0], *(like(word) for word in words for _ in range(2))], words)
        return list({hit.id: hit for hit in hits}.values())[:_MOST_HITS]

    def _texts(self, where: str, values: list[str], words: list[str]) -> Iterator[DocumentHit]:
        for document, near in self.connection.execute(
            f"{_FOUND_TEXTS} {where} LIMIT {_MOST_HITS}", values
        ).fetchall():
            passage, marks = passage_of(text_of(near), words)
            yield DocumentHit(document, passage if marks else "", marks)

    # ---- writing, inside a transaction

    def attempt(self, key: Key, job: Job, before: Job = None) -> Exception | None:
        """Carries out `job`, or changes nothing and returns the error if a value of it cannot be stored.

        `before` as in `write`. Raises other errors.
        """
        try:
            with self.part():
                self.do(key, job, before)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, _ABOUT_A_VALUE):
                raise
            return error
        return None

    def do(self, key: Key, job: Job, before: Job = None) -> None:
        """Carries out `job`, with U+FFFD for lone surrogates in it; `before` as in `write`."""
        try:
            self._do(key, job, before)
        except UnicodeEncodeError:  # an earlier check missed it
            self._do(key, well_formed_record(job), None)

    def _do(self, key: Key, job: Job, before: Job) -> None:
        table, row_id = key
        if job is None:
            self._delete("documents" if table == "texts" else table, row_id)
        elif isinstance(job, Conversation):
            self.write(job, before if isinstance(before, Conversation) else None)
        elif isinstance(job, Project):
            values = (job.id, pack(job))
            self.connection.execute(
                "INSERT OR REPLACE INTO projects (id, state, sum) VALUES (?, ?, ?)",
                (*values, checksum(*values)),
            )
        elif isinstance(job, StoredDocument):
            self._delete("documents", row_id)
            row = self.connection.execute(
                f"INSERT INTO documents ({_DOCUMENT}, sum, text_sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*_facts(job.document), checksum(job.text)),
            ).lastrowid
            self.connection.execute(
                "INSERT INTO texts (rowid, name, text) VALUES (?, ?, ?)", (row, job.document.name, job.text)
            )
        else:
            self.connection.execute(
                f"UPDATE documents SET ({_DOCUMENT}, sum) = (?, ?, ?, ?, ?, ?) WHERE id = ?",
                (*_facts(job), job.id),
            )

    def set_mark(self, mark: Mark) -> None:
        self.connection.execute(
            "INSERT OR REPLACE INTO facts VALUES ('mark', ?)", (msgspec.json.encode(mark).decode(),)
        )

    def forget_words(self) -> None:
        """Removes the words of deleted rows from the search indexes.

        FTS5 only marks them as deleted. Its option `secure-delete` needs SQLite 3.42.
        """
        for table in ("words", "texts"):
            self.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")

    def truncate_log(self) -> None:
        """Moves the log into the database and empties it, outside of a transaction.

        Raises `StoreError` if a reader prevents it.
        """
        busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreError(strings.STORE_BUSY)

    def write(self, chat: Conversation, before: Conversation | None = None) -> None:
        """Writes `chat`; `before` is its state in the database, if known."""
        state = pack(packed_chat(chat))
        head = (chat.id, chat.title, chat.name, chat.changed.isoformat(), len(chat.turns))
        values = (*head, int(chat.deleted is not None), state)
        self.connection.execute(
            f"INSERT INTO chats ({_CHAT}, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            f" ON CONFLICT (id) DO UPDATE SET ({_CHAT}, sum) = (excluded.id, excluded.title, excluded.name,"
            " excluded.changed, excluded.turns, excluded.deleted, excluded.state, excluded.sum)",
            (*values, checksum(*values)),
        )
        old = before.turns if before else ()
        kept = len(chat.turns) if before else 0
        self.connection.execute("DELETE FROM turns WHERE chat = ? AND place >= ?", (chat.id, kept))
        if before is None or len(old) > kept:
            self.connection.execute("DELETE FROM images WHERE chat = ? AND place >= ?", (chat.id, kept))
        unsent = hashes_in(in_draft(chat))
        if before is None or unsent != hashes_in(in_draft(before)):
            self._write_images((chat.id, _UNSENT), unsent)
        for place, turn in enumerate(chat.turns):
            known = old[place] if place < len(old) else None
            if known is None or replace(turn, answer=known.answer) != known:
                self._write_turn(chat, place, turn)
            elif turn.answer is not known.answer:
                self._write_answer((chat.id, place), turn.answer, known.answer)
                if turn.answer.calls != known.answer.calls:
                    self._write_images((chat.id, place), hashes_of_turn(turn))

    def _write_turn(self, chat: Conversation, place: int, turn: Turn) -> None:
        key, blobs = (chat.id, place), dict[str, bytes]()
        others = tuple(replace(each, answer=without_results(each.answer, blobs)) for each in turn.others)
        state = pack(packed(replace(turn, answer=Answer(), others=others)))
        self.connection.execute("DELETE FROM turns WHERE chat = ? AND place = ?", key)
        row = self.connection.execute(
            "INSERT INTO turns (chat, place, name, state, sum) VALUES (?, ?, ?, ?, ?)",
            (*key, turn.id, state, checksum(*key, turn.id, state)),
        ).lastrowid
        names = [each.name for each in turn.user.attachments]
        names += [each.name for each in turn.user.images]
        self.connection.execute(
            "INSERT INTO words (rowid, title, question, names, answer) VALUES (?, ?, ?, ?, '')",
            (row, chat.name if place == 0 else "", turn.user.content, "\n".join(names)),
        )
        self._write_images(key, hashes_of_turn(turn))
        self._write_blobs(key, blobs)
        self._write_answer(key, turn.answer)

    def _write_images(self, key: tuple[str, int], hashes: Iterable[str]) -> None:
        """Replaces the references of a turn, or of the messages that were not sent."""
        self.connection.execute("DELETE FROM images WHERE chat = ? AND place = ?", key)
        self.connection.executemany(
            "INSERT INTO images VALUES (?, ?, ?, ?)",
            [(*key, hash, checksum(*key, hash)) for hash in sorted(hashes)],
        )

    def _write_blobs(self, key: tuple[str, int], blobs: Mapping[str, bytes]) -> None:
        self.connection.executemany(
            "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?, ?)",
            [(*key, name, data, checksum(*key, name, data)) for name, data in blobs.items()],
        )

    def _write_answer(self, key: tuple[str, int], answer: Answer, before: Answer | None = None) -> None:
        """Writes the answer of a turn; of an answer in progress only the tokens since `before`."""
        if before and _only_adds_tokens(answer, before):
            count = len(before.tokens)
            state = pack(columns_of(answer.tokens[count:]))
        else:
            count, blobs = 0, dict[str, bytes]()
            stored = without_results(replace(answer, tokens=()), blobs)
            state = pack(PackedAnswer(stored, columns_of(answer.tokens)))
            self._write_blobs(key, blobs)
            self.connection.execute("DELETE FROM parts WHERE chat = ? AND turn = ?", key)
        self.connection.execute(
            "INSERT INTO parts VALUES (?, ?, ?, ?, ?)", (*key, count, state, checksum(*key, count, state))
        )
        if answer.over:  # it is indexed once, when it is complete: until then it changes with every flush
            self.connection.execute(
                "UPDATE words SET answer = ?"
                " WHERE rowid = (SELECT id FROM turns WHERE chat = ? AND place = ?)",
                (answer.searched, *key),
            )

    def _delete(self, table: str, row_id: str) -> None:
        if table == "chats":  # in a damaged database they may be without it
            self.connection.execute("DELETE FROM turns WHERE chat = ?", (row_id,))
            self.connection.execute("DELETE FROM images WHERE chat = ?", (row_id,))
        self.connection.execute(f"DELETE FROM {table} WHERE id = ?", (row_id,))


def _chat(row: Sequence[Any]) -> tuple[Conversation, Summary]:
    """Returns a chat without its turns, and its summary. Raises `ValueError` or `TypeError`."""
    _, title, _, changed, turns, _, state = checked(row)
    chat = unpack(state, Conversation)
    when, waiting = datetime.fromisoformat(changed), len(chat.queued)
    return chat, Summary(chat.id, title, when, turns, chat.pinned, chat.deleted, waiting, chat.project)


# The columns of each table of which `head` is made.
_HEADS: dict[str, tuple[str, Callable[[Sequence[Any]], Summary | Project | KeptDocument]]] = {
    "chats": (_CHAT, lambda row: _chat(row)[1]),
    "projects": ("id, state", lambda row: unpack(checked(row)[1], Project)),
    "documents": (_DOCUMENT, lambda row: unpack(checked(row)[4], KeptDocument)),
}


def _ways_to_ids(table: str) -> list[str]:
    """Returns queries that give the same ids unless the database is damaged."""
    ways = [f"SELECT id FROM {table} {how}" for how in ("NOT INDEXED", "ORDER BY id", "ORDER BY id DESC")]
    return [*ways, *["SELECT DISTINCT chat FROM turns NOT INDEXED"] * (table == "chats")]


def _facts(document: KeptDocument) -> tuple[Any, ...]:
    """Returns the values of a row of `documents`, with their checksum."""
    removed = int(document.removed is not None)
    values = (document.id, document.name, document.used.isoformat(), removed, pack(document))
    return (*values, checksum(*values))


def _words_of(query: str) -> list[str]:
    words = well_formed(query).replace("\0", " ").split()
    return list(dict.fromkeys(word[:_LONGEST_WORD] for word in words))[:_MOST_WORDS]


def _anywhere(words: Sequence[str], *columns: str) -> str:
    """Returns a condition for rows that have each word anywhere in one of `columns`."""
    anywhere = " OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column in columns)
    return " AND ".join([f"({anywhere})"] * len(words))


def _only_adds_tokens(answer: Answer, before: Answer) -> bool:
    """Returns whether `answer` is `before` with more tokens and still incomplete."""
    count = len(before.tokens)
    return (
        0 < count < len(answer.tokens)
        and not answer.over
        and replace(answer, tokens=()) == replace(before, tokens=())
        and answer.tokens[count - 1] is before.tokens[-1]
    )
