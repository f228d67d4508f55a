"""ChatStore: chats in one SQLite file: list, load, write, purge. One connection, one thread.

Invariant: after `write(chat)` a `load` gives an equal chat, or says that it cannot. Only what changed
is written: what is the same object as in `before` is on disk already, and of an answer that is being
written only the new tokens are, so that a flush costs as little at its end as at its beginning.
Reading and writing may happen on different connections at once (write-ahead log).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from app.session.chats.archive import Hit, Summary
from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.library.document import DocumentHit, KeptDocument
from app.store import packing, schema, search
from app.store.checksum import ChecksumError, Value, checksum
from app.store.documents.document_rows import DocumentRows
from app.store.recovery.chat_count import ChatCount
from app.store.recovery.faults import NewerStoreError
from app.store.rows import WRITE_HEAD, Rows, head_values, version_values
from core.events.text import well_formed, well_formed_record


class ChatStore:
    """Opens or makes the file at `path`.

    `full_text` None uses FTS5 if SQLite has it. `counted` is told of chats that come and go. Raises
    `NewerStoreError` or `sqlite3.Error`.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        full_text: bool | None = None,
        counted: ChatCount | None = None,
    ) -> None:
        self._counted = counted
        self._connection = schema.connect(path, read_only)
        try:
            self.full_text = schema.has_full_text(self._connection) if full_text is None else full_text
            if not read_only:
                schema.migrate(self._connection)
            elif schema.version_of(self._connection) > schema.VERSION:
                raise NewerStoreError(schema.version_of(self._connection), schema.VERSION)
            self._rows = Rows(self._connection)
            self.document_rows = DocumentRows(self._connection, self.full_text)
            if not read_only:
                self._ensure_words()
        except BaseException:
            self._connection.close()
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """For checks and repairs."""
        return self._connection

    def close(self) -> None:
        """Safe to call twice."""
        self._connection.close()

    # ---- reading

    def summaries(self) -> list[Summary]:
        """All chats, deleted ones marked, in no order. Raises `ValueError` if a row is damaged."""
        return [head.summary for head in self._rows.heads()]

    def count(self) -> int:
        """How many chats there are, deleted ones included."""
        return int(self._connection.execute("SELECT count(*) FROM chats").fetchone()[0])

    def load(self, chat_id: str) -> Conversation:
        """The whole chat. Raises `KeyError` if there is none, `ValueError` if a record is damaged."""
        with self._snapshot():
            head = self._rows.head(chat_id)
            if head is None:
                raise KeyError(chat_id)
            return self._rows.load(head)

    def check(self, proceed: Callable[[], None] = lambda: None) -> None:
        """Read all there is. Raises `sqlite3.Error` or `ChecksumError` at the first damage.

        `proceed` is called between chats and may raise to stop it.
        """
        verdict = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        try:
            for chat_id in [summary.id for summary in self.summaries()]:
                proceed()
                with contextlib.suppress(KeyError):  # deleted meanwhile
                    self.load(chat_id)
            for document in self.documents():
                proceed()
                with contextlib.suppress(KeyError):
                    self.document_text(document.id)
        except (ValueError, TypeError, OverflowError) as error:
            raise ChecksumError(str(error)) from error

    def search(self, query: str) -> list[Hit]:
        """Chats that match, best first, each once."""
        return search.search(self._connection, well_formed(query), self.full_text)

    def documents(self) -> list[KeptDocument]:
        """All kept documents, removed ones marked. Raises `ValueError` if a row is damaged."""
        return list(self.document_rows.all())

    def document_text(self, document_id: str) -> str:
        """Raises `KeyError` if there is none, `ValueError` if it is damaged."""
        return self.document_rows.text(document_id)

    def find_documents(self, query: str) -> list[DocumentHit]:
        """Kept documents that match, best first."""
        return self.document_rows.search(well_formed(query))

    # ---- writing

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """All or nothing of what is written inside. Raises `sqlite3.Error`.

        What was written outlives this process in any case; a `durable` transaction a loss of power, too.
        """
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            before = self.count() if self._counted else 0
            yield
            new = self.count() - before if self._counted else 0
            if self._counted and new < 0:
                self._counted.add(new)
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
                self._connection.execute("ROLLBACK")
            raise
        if self._counted and new > 0:
            self._counted.add(new)

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """All or nothing of a part of a transaction, which goes on if the part fails."""
        self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # the whole transaction was rolled back already
                self._connection.execute("ROLLBACK TO part")
                self._connection.execute("RELEASE part")
            raise
        self._connection.execute("RELEASE part")

    def write(self, chat: Conversation, before: Conversation | None = None) -> None:
        """Write `chat`; `before` is what is on disk of it, if that is known. Inside a transaction."""
        try:
            self._write(chat, before)
        except UnicodeEncodeError:  # half a character that nobody replaced on its way here
            self._write(well_formed_record(chat), None)

    def _write(self, chat: Conversation, before: Conversation | None) -> None:
        self._connection.execute(WRITE_HEAD, head_values(chat))
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
        """The chat and all of it, for good. Inside a transaction."""
        self._drop_turns(chat_id, 0)
        self._connection.execute("DELETE FROM chats WHERE id = ?", (chat_id,))

    def _write_turn(
        self, chat: Conversation, place: int, turn: Turn, known: Turn | None, renamed: bool
    ) -> None:
        new_question = known is None or known.user is not turn.user or known.id != turn.id
        if new_question or (known and known.asked != turn.asked):
            asked = turn.asked.isoformat() if turn.asked else None
            values = (chat.id, place, turn.id, asked, packing.pack_message(turn.user))
            self._connection.execute(
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
        # An answer's words are indexed once, when it is over: in mid-answer they change all the time.
        if (
            new_question
            or renamed
            or (known is not None and known.answer is not turn.answer and turn.answer.over)
        ):
            self._write_words(row, chat, place, turn)

    def _write_others(self, row: int, turn: Turn) -> None:
        """All versions that are not shown: they change when another one is, and that is rare."""
        self._connection.execute("DELETE FROM versions WHERE turn = ?", (row,))
        self._connection.execute("UPDATE turns SET versions = ? WHERE id = ?", (len(turn.others) + 1, row))
        for place, version in enumerate(turn.versions):
            if place != turn.place:
                self._connection.execute(
                    "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    version_values(row, place, version),
                )

    def _write_answer(self, row: int, answer: Answer, before: Answer | None) -> None:
        """Whole; or, while it is being written, only the tokens that are new since `before`."""
        if before is not None and _is_longer(answer, before):
            place = len(before.tokens)
            values: tuple[Value, ...] = (row, place, packing.pack_tokens(answer.tokens[place:]))
            self._connection.execute("INSERT INTO parts VALUES (?, ?, ?, ?)", (*values, checksum(*values)))
            return
        values = (row, packing.pack_answer(answer), packing.pack_tokens(answer.tokens))
        self._connection.execute("DELETE FROM parts WHERE turn = ?", (row,))
        self._connection.execute(
            "INSERT OR REPLACE INTO answers (turn, state, tokens, sum) VALUES (?, ?, ?, ?)",
            (*values, checksum(*values)),
        )

    def _row_id(self, chat_id: str, place: int) -> int:
        row = self._connection.execute(
            "SELECT id FROM turns WHERE chat = ? AND place = ?", (chat_id, place)
        ).fetchone()
        return int(row[0])

    def _write_words(self, row: int, chat: Conversation, place: int, turn: Turn) -> None:
        names = "\n".join(attachment.name for attachment in turn.user.attachments)
        answer = turn.answer.text if turn.answer.over else ""
        table = schema.words_table(self.full_text)
        self._connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        self._connection.execute(
            f"INSERT INTO {table} (rowid, title, question, names, answer) VALUES (?, ?, ?, ?, ?)",
            (row, chat.name if place == 0 else "", turn.user.content, names, answer),
        )

    def _drop_turns(self, chat_id: str, from_place: int) -> None:
        chosen = "SELECT id FROM turns WHERE chat = ? AND place >= ?"
        table = schema.words_table(self.full_text)
        self._connection.execute(f"DELETE FROM {table} WHERE rowid IN ({chosen})", (chat_id, from_place))
        for owned in ("answers", "parts", "versions"):
            self._connection.execute(f"DELETE FROM {owned} WHERE turn IN ({chosen})", (chat_id, from_place))
        self._connection.execute("DELETE FROM turns WHERE chat = ? AND place >= ?", (chat_id, from_place))

    def _ensure_words(self) -> None:
        """The table that is searched: made, and filled if another kind of it was in use before."""
        with self.transaction():
            schema.make_document_words(self._connection, self.full_text)
            if not schema.make_words(self._connection, self.full_text):
                return
            for summary in self.summaries():
                try:
                    chat = self.load(summary.id)
                except KeyError:
                    raise ChecksumError("a chat that is listed is not to be found") from None
                for place, turn in enumerate(chat.turns):
                    self._write_words(self._row_id(chat.id, place), chat, place, turn)

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[None]:
        """What is read inside is of one moment, whatever another connection writes."""
        if self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("COMMIT")


def _is_longer(answer: Answer, before: Answer) -> bool:
    """Whether `answer` is `before` with more tokens, and more to come."""
    count = len(before.tokens)
    if answer.over or len(answer.tokens) <= count or packing.state_of(answer) != packing.state_of(before):
        return False
    return count > 0 and answer.tokens[count - 1] is before.tokens[-1]
