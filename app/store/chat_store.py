"""ChatStore: chats, projects and kept documents in one SQLite file: list, load, write, purge, search.

Invariant: after `write(chat)`, `load` returns an equal chat or raises. Only changes are written: an object
that is identical in `before` is in the database already, and of an answer in progress only the new tokens
are written, so that a flush costs as little at its end as at its beginning. One connection may read while
another one writes (write-ahead log).

Search matches words from their beginnings by FTS5 (`fog dep` finds "Fog departures"). Where that finds
nothing, or SQLite has no FTS5, it matches the words anywhere inside the texts: the middle of a word, and
scripts without spaces between words.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from app.session.chats.archive import Hit, Summary, passage_of
from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.chats.projects import Project
from app.store import packing, schema
from app.store.database import (
    ChecksumError,
    Database,
    Value,
    checksum,
    has_full_text,
    like,
    prefix_query,
    text_of,
)
from app.store.documents import DocumentGone, DocumentJob, DocumentRows, carry_out
from app.store.faults import UNREADABLE, EmptyStoreError
from app.store.rows import WRITE_HEAD, ProjectGone, ProjectJob, ProjectRows, Rows, head_values, version_values
from core.events.wire import well_formed, well_formed_record

# More chats than a person reads through.
_MOST_CHATS = 100
_MOST_ROWS = 600
_TEXTS = ("title", "question", "names", "answer")


class Mark(Struct, frozen=True):
    """The number of transactions with changes, and the clock at the last one (see clock.py)."""

    changes: int = 0
    steady_s: float = 0.0
    wall_s: float = 0.0


# What is written under a key: a chat's newest state, None to delete it, or a change of a project or document.
Job = Conversation | ProjectJob | DocumentJob | None


def deleted_row(key: str, job: Job) -> tuple[str, str] | None:
    """Returns the table and id that `job` deletes permanently, if it does."""
    if job is None:
        return "chats", key
    if isinstance(job, ProjectGone):
        return "projects", job.id
    return ("documents", job.id) if isinstance(job, DocumentGone) else None


class ChatStore(Database):
    """Opens or creates the file at `path`; in memory if it is None.

    `full_text` None uses FTS5 if SQLite has it. `log` False: a single file without a write-ahead log, for
    copies. Raises `OtherStoreError` or `sqlite3.Error`; for `read_only` also `EmptyStoreError`, if the file
    has no tables.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        read_only: bool = False,
        full_text: bool | None = None,
        log: bool = True,
    ) -> None:
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
            self.full_text = has_full_text(self.connection) if full_text is None else full_text
            self._rows = Rows(self.connection)
            self.document_rows = DocumentRows(self.connection, self.full_text)
            self.project_rows = ProjectRows(self.connection)
            if not read_only:
                with self.transaction():
                    if not schema.require_ours(self.connection):
                        schema.create(self.connection)
                    self._ensure_words()
        except BaseException:
            self.connection.close()
            raise

    # ---- reading

    def summaries(self) -> list[Summary]:
        """Returns all chats, deleted ones marked, in no order. Raises `ValueError` if a row is damaged."""
        return [head.summary for head in self._rows.heads()]

    def summary(self, chat_id: str) -> Summary:
        """Raises `KeyError` if the chat does not exist, `ValueError` if its row is damaged."""
        head = self._rows.head(chat_id)
        if head is None:
            raise KeyError(chat_id)
        return head.summary

    def ids(self, table: str, *, orphans: bool = False) -> set[str]:
        """Returns the ids of `chats`, `projects` or `documents`: of a damaged table those that are found.

        `orphans`: also those of chats that have only questions.
        """
        queries = [
            f"SELECT id FROM {table} {how}" for how in ("NOT INDEXED", "ORDER BY id", "ORDER BY id DESC")
        ]
        if orphans and table == "chats":
            queries.append("SELECT chat FROM turns NOT INDEXED")
        found: set[str] = set()
        for query in queries:
            with contextlib.suppress(*UNREADABLE):
                for (row_id,) in self.connection.execute(query):
                    if isinstance(row_id, str):
                        found.add(row_id)
        return found

    def mark(self) -> Mark:
        """Raises `ValueError` if it is damaged."""
        found = self.connection.execute("SELECT value FROM facts WHERE name = 'mark'").fetchone()
        return msgspec.json.decode(found[0], type=Mark) if found else Mark()

    def load(self, chat_id: str) -> Conversation:
        """Returns the whole chat. Raises `KeyError` if it does not exist, `ValueError` if it is damaged."""
        with self.snapshot():
            head = self._rows.head(chat_id)
            if head is None:
                raise KeyError(chat_id)
            return self._rows.load(head)

    def check(self, proceed: Callable[[], None] = lambda: None) -> None:
        """Reads everything. Raises `sqlite3.Error` or `ChecksumError` at the first damage.

        `proceed` is called between chats and may raise to stop the check.
        """
        self.quick_check()
        try:
            for chat_id in [summary.id for summary in self.summaries()]:
                proceed()
                with contextlib.suppress(KeyError):  # deleted meanwhile
                    self.load(chat_id)
            for document in self.document_rows.all():
                proceed()
                with contextlib.suppress(KeyError):
                    self.document_rows.text(document.id)
            list(self.project_rows.all())
        except (ValueError, TypeError, OverflowError) as error:
            raise ChecksumError(str(error)) from error

    def quick_check(self) -> None:
        """Raises `sqlite3.DatabaseError` if SQLite finds the file damaged, or a question has no chat."""
        verdict = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        if self.connection.execute("SELECT chat FROM turns EXCEPT SELECT id FROM chats LIMIT 1").fetchone():
            raise sqlite3.DatabaseError("a question has no chat")

    def search(self, query: str) -> list[Hit]:
        """Returns the chats that have all words of `query`, best first, each once."""
        words = well_formed(query).replace("\0", " ").split()
        if not words:
            return []
        hits = self._by_title(words)
        rows = list(self._by_prefixes(words)) if self.full_text else []
        for row in rows or self._by_substrings(words):
            chat, turn, *texts = map(text_of, row)
            if len(hits) >= _MOST_CHATS:
                break
            if chat not in hits:
                best = max(texts, key=lambda text: sum(word.casefold() in text.casefold() for word in words))
                hits[chat] = Hit(chat, turn, *passage_of(best, words))
        return list(hits.values())

    def _by_title(self, words: list[str]) -> dict[str, Hit]:
        """Chats whose titles have all words anywhere, the latest first."""
        where = " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(words))
        rows = self.connection.execute(
            f"SELECT id FROM chats WHERE deleted IS NULL AND turns > 0 AND {where}"
            f" ORDER BY changed DESC LIMIT {_MOST_CHATS}",
            [like(word) for word in words],
        )
        return {chat: Hit(text_of(chat)) for (chat,) in rows}

    def _by_prefixes(self, words: list[str]) -> Iterator[tuple[str, ...]]:
        """Rows by FTS5, best first."""
        query = prefix_query(words)
        if not query:
            return iter(())
        return self.connection.execute(
            "SELECT turns.chat, turns.name, words.title, words.question, words.names, words.answer FROM words"
            " JOIN turns ON turns.id = words.rowid JOIN chats ON chats.id = turns.chat"
            f" WHERE words MATCH ? AND chats.deleted IS NULL ORDER BY words.rank LIMIT {_MOST_ROWS}",
            (query,),
        )

    def _by_substrings(self, words: list[str]) -> Iterator[tuple[str, ...]]:
        """Rows that have the words anywhere in their texts, the latest chat first."""
        anywhere = " OR ".join(f"words.{text} LIKE ? ESCAPE '\\'" for text in _TEXTS)
        where = " AND ".join([f"({anywhere})"] * len(words))
        table = schema.words_table(self.full_text)
        return self.connection.execute(
            "SELECT turns.chat, turns.name, words.title, words.question, words.names, words.answer"
            f" FROM {table} AS words JOIN turns ON turns.id = words.rowid JOIN chats ON chats.id = turns.chat"
            f" WHERE chats.deleted IS NULL AND {where} ORDER BY chats.changed DESC LIMIT {_MOST_ROWS}",
            [like(word) for word in words for _ in _TEXTS],
        )

    # ---- writing

    def do(self, key: str, job: Job, before: Conversation | None = None) -> None:
        """Carries out `job` inside a transaction; `before` as in `write`."""
        if job is None:
            self.purge(key)
        elif isinstance(job, Conversation):
            self.write(job, before)
        elif isinstance(job, Project | ProjectGone):
            self.project_rows.do(job)
        else:
            carry_out(job, self.document_rows)

    def delete(self, table: str, row_id: str) -> None:
        """Deletes a row of `chats`, `projects` or `documents` permanently, inside a transaction."""
        if table == "chats":
            self.purge(row_id)
        elif table == "projects":
            self.project_rows.do(ProjectGone(row_id))
        else:
            self.document_rows.purge(row_id)

    def set_mark(self, mark: Mark) -> None:
        """Writes the mark inside a transaction."""
        self.connection.execute(
            "INSERT OR REPLACE INTO facts VALUES ('mark', ?)", (msgspec.json.encode(mark).decode(),)
        )

    def forget_words(self) -> None:
        """Removes the words of deleted rows from the search indexes, inside a transaction.

        FTS5 only marks them as deleted. Its option `secure-delete` needs SQLite 3.42.
        """
        for table in ("words", "document_words") if self.full_text else ():
            self.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")

    def truncate_log(self) -> None:
        """Moves the log into the database and empties it. Raises `sqlite3.Error` if a reader prevents it."""
        busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("database is locked by a reader")

    def write(self, chat: Conversation, before: Conversation | None = None) -> None:
        """Writes `chat` inside a transaction; `before` is its state in the database, if known."""
        try:
            self._write(chat, before)
        except UnicodeEncodeError:  # a lone surrogate that an earlier check missed
            self._write(well_formed_record(chat), None)

    def _write(self, chat: Conversation, before: Conversation | None) -> None:
        self.connection.execute(WRITE_HEAD, head_values(chat))
        old = before.turns if before else ()
        if before is None:
            self._drop_turns(chat.id, 0)
        elif len(chat.turns) < len(old):
            self._drop_turns(chat.id, len(chat.turns))
        renamed = before is None or before.name != chat.name
        for place, turn in enumerate(chat.turns):
            known = old[place] if place < len(old) else None
            if known is not turn:
                self._write_turn(chat, place, turn, known, renamed and place == 0)
            elif renamed and place == 0:
                self._write_words(self._row_id(chat.id, 0), chat, 0, turn)

    def purge(self, chat_id: str) -> None:
        """Deletes a chat permanently, inside a transaction."""
        self._drop_turns(chat_id, 0)
        self.connection.execute("DELETE FROM chats WHERE id = ?", (chat_id,))

    def _write_turn(
        self, chat: Conversation, place: int, turn: Turn, known: Turn | None, renamed: bool
    ) -> None:
        new_question = known is None or known.user is not turn.user or known.id != turn.id
        if new_question or (known and known.asked != turn.asked):
            asked = turn.asked.isoformat() if turn.asked else None
            values = (chat.id, place, turn.id, asked, packing.pack(turn.user))
            self.connection.execute(
                "INSERT INTO turns (chat, place, name, asked, question, sum) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (chat, place) DO UPDATE SET name = excluded.name, asked = excluded.asked,"
                " question = excluded.question, sum = excluded.sum",
                (*values, checksum(*values)),
            )
        row = self._row_id(chat.id, place)
        if known is None or known.answer is not turn.answer:
            self._write_answer(row, turn.answer, known.answer if known and known.id == turn.id else None)
        if known is None or known.others is not turn.others or known.place != turn.place:
            self._write_others(row, turn)
        # An answer is indexed once, when it is complete: until then its text changes with every flush.
        if (
            new_question
            or renamed
            or (known is not None and known.answer is not turn.answer and turn.answer.over)
        ):
            self._write_words(row, chat, place, turn)

    def _write_others(self, row: int, turn: Turn) -> None:
        """Rewrites all versions that are not shown; they change only when the person switches versions."""
        self.connection.execute("DELETE FROM versions WHERE turn = ?", (row,))
        self.connection.execute("UPDATE turns SET versions = ? WHERE id = ?", (len(turn.others) + 1, row))
        for place, version in enumerate(turn.versions):
            if place != turn.place:
                self.connection.execute(
                    "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    version_values(row, place, version),
                )

    def _write_answer(self, row: int, answer: Answer, before: Answer | None) -> None:
        """Writes the whole answer or, during generation, only the tokens added since `before`."""
        if before is not None and _is_longer(answer, before):
            place = len(before.tokens)
            values: tuple[Value, ...] = (row, place, packing.pack_tokens(answer.tokens[place:]))
            self.connection.execute("INSERT INTO parts VALUES (?, ?, ?, ?)", (*values, checksum(*values)))
            return
        values = (row, packing.pack_answer(answer), packing.pack_tokens(answer.tokens))
        self.connection.execute("DELETE FROM parts WHERE turn = ?", (row,))
        self.connection.execute(
            "INSERT OR REPLACE INTO answers (turn, state, tokens, sum) VALUES (?, ?, ?, ?)",
            (*values, checksum(*values)),
        )

    def _row_id(self, chat_id: str, place: int) -> int:
        row = self.connection.execute(
            "SELECT id FROM turns WHERE chat = ? AND place = ?", (chat_id, place)
        ).fetchone()
        return int(row[0])

    def _write_words(self, row: int, chat: Conversation, place: int, turn: Turn) -> None:
        names = "\n".join(attachment.name for attachment in turn.user.attachments)
        answer = turn.answer.text if turn.answer.over else ""
        table = schema.words_table(self.full_text)
        self.connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        self.connection.execute(
            f"INSERT INTO {table} (rowid, title, question, names, answer) VALUES (?, ?, ?, ?, ?)",
            (row, chat.name if place == 0 else "", turn.user.content, names, answer),
        )

    def _drop_turns(self, chat_id: str, from_place: int) -> None:
        chosen = "SELECT id FROM turns WHERE chat = ? AND place >= ?"
        table = schema.words_table(self.full_text)
        self.connection.execute(f"DELETE FROM {table} WHERE rowid IN ({chosen})", (chat_id, from_place))
        for owned in ("answers", "parts", "versions"):
            self.connection.execute(f"DELETE FROM {owned} WHERE turn IN ({chosen})", (chat_id, from_place))
        self.connection.execute("DELETE FROM turns WHERE chat = ? AND place >= ?", (chat_id, from_place))

    def _ensure_words(self) -> None:
        """Creates the search table, inside a transaction, and fills it if another one was in use before."""
        schema.make_document_words(self.connection, self.full_text)
        if not schema.make_words(self.connection, self.full_text):
            return
        for chat_id in [summary.id for summary in self.summaries()]:
            head = self._rows.head(chat_id)
            if head is None:
                raise ChecksumError("a listed chat does not exist")
            chat = self._rows.load(head)
            for place, turn in enumerate(chat.turns):
                self._write_words(self._row_id(chat.id, place), chat, place, turn)


class MemoryStore(ChatStore):
    """Chats, projects and documents that last for this run only. Each call is one transaction."""

    def __init__(self) -> None:
        super().__init__(None)
        self._saved: dict[str, Conversation] = {}

    def keep(self, key: str, job: Job) -> None:
        """Carries out `job`; of a chat only what changed is written after the first time."""
        with self.transaction():
            self.do(key, job, self._saved.get(key))
        self._saved = {key: job} if isinstance(job, Conversation) else {}  # one answer is written at a time


def _is_longer(answer: Answer, before: Answer) -> bool:
    """Returns whether `answer` continues `before` with more tokens and is still incomplete."""
    count = len(before.tokens)
    if answer.over or len(answer.tokens) <= count or packing.state_of(answer) != packing.state_of(before):
        return False
    return count > 0 and answer.tokens[count - 1] is before.tokens[-1]
