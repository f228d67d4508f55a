"""ChatStore: chats in one SQLite file: list, load, write, purge. One connection, one thread.

Invariant: after `write(chat)` a `load` gives an equal chat. Only what changed is written: what
is the same object as in `before` is on disk already, so a flush in mid-answer costs one answer.
Reading and writing may happen on different connections at once (write-ahead log).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from app.session.conversation import Answer, Conversation, Turn
from app.session.shelf import Hit, Summary
from app.store import packing, schema, search
from app.store.faults import NewerStoreError
from core.text import well_formed, well_formed_record


class ChatStore:
    """Opens or makes the file at `path`.

    `full_text` None uses FTS5 if SQLite has it. Raises `NewerStoreError` or `sqlite3.Error`.
    """

    def __init__(self, path: Path, *, read_only: bool = False, full_text: bool | None = None) -> None:
        self._connection = schema.connect(path, read_only)
        try:
            self.full_text = schema.has_full_text(self._connection) if full_text is None else full_text
            if not read_only:
                schema.migrate(self._connection)
                self._ensure_words()
            elif schema.version_of(self._connection) > schema.VERSION:
                raise NewerStoreError(schema.version_of(self._connection), schema.VERSION)
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
        """All chats, deleted ones marked, in no order."""
        rows = self._connection.execute("SELECT id, title, changed, turns, pinned, deleted FROM chats")
        return [
            Summary(chat, title, datetime.fromisoformat(changed), turns, bool(pinned), deleted is not None)
            for chat, title, changed, turns, pinned, deleted in rows
        ]

    def load(self, chat_id: str) -> Conversation:
        """The whole chat. Raises `KeyError` if there is none, `ValueError` if a record is damaged."""
        row = self._connection.execute(
            "SELECT id, created, context_used_tokens, name, pinned, overrides, draft, deleted"
            " FROM chats WHERE id = ?",
            (chat_id,),
        ).fetchone()
        if row is None:
            raise KeyError(chat_id)
        chat, created, context, name, pinned, overrides, draft, deleted = row
        return Conversation(
            chat,
            datetime.fromisoformat(created),
            tuple(self._turns(chat_id)),
            context,
            name,
            bool(pinned),
            packing.unpack_overrides(overrides),
            packing.unpack_message(draft),
            datetime.fromisoformat(deleted) if deleted else None,
        )

    def _turns(self, chat_id: str) -> Iterator[Turn]:
        rows = self._connection.execute(
            "SELECT name, asked, question, state, tokens FROM turns"
            " LEFT JOIN answers ON answers.turn = turns.id WHERE chat = ? ORDER BY place",
            (chat_id,),
        )
        for name, asked, question, state, tokens in rows:
            answer = packing.unpack_answer(state) if state is not None else Answer()
            if tokens:
                answer = replace(answer, tokens=packing.unpack_tokens(tokens))
            when = datetime.fromisoformat(asked) if asked else None
            yield Turn(name, packing.unpack_message(question), answer, when)

    def search(self, query: str) -> list[Hit]:
        """Chats that match, best first, each once."""
        return search.search(self._connection, well_formed(query), self.full_text)

    # ---- writing

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing of what is written inside. Raises `sqlite3.Error`."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
                self._connection.execute("ROLLBACK")
            raise

    def set_durable(self, durable: bool) -> None:
        """Whether a transaction ends only when the disk confirms it. Outside of a transaction."""
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")

    def write(self, chat: Conversation, before: Conversation | None = None) -> None:
        """Write `chat`; `before` is what is on disk of it, if that is known. Inside a transaction."""
        try:
            self._write(chat, before)
        except UnicodeEncodeError:  # half a character that nobody replaced on its way here
            self._write(well_formed_record(chat), None)

    def _write(self, chat: Conversation, before: Conversation | None) -> None:
        self._write_head(chat)
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

    def _write_head(self, chat: Conversation) -> None:
        values = (
            chat.id,
            chat.created.isoformat(),
            chat.changed.isoformat(),
            chat.title,
            chat.name,
            len(chat.turns),
            chat.pinned,
            chat.context_used_tokens,
            packing.pack_overrides(chat.overrides),
            packing.pack_message(chat.draft),
            chat.deleted.isoformat() if chat.deleted else None,
        )
        self._connection.execute(
            "INSERT INTO chats VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " created = excluded.created, changed = excluded.changed, title = excluded.title,"
            " name = excluded.name, turns = excluded.turns, pinned = excluded.pinned,"
            " context_used_tokens = excluded.context_used_tokens, overrides = excluded.overrides,"
            " draft = excluded.draft, deleted = excluded.deleted",
            values,
        )

    def _write_turn(
        self, chat: Conversation, place: int, turn: Turn, known: Turn | None, renamed: bool
    ) -> None:
        new_question = known is None or known.user is not turn.user or known.id != turn.id
        if new_question or (known and known.asked != turn.asked):
            asked = turn.asked.isoformat() if turn.asked else None
            self._connection.execute(
                "INSERT INTO turns (chat, place, name, asked, question) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (chat, place) DO UPDATE SET"
                " name = excluded.name, asked = excluded.asked, question = excluded.question",
                (chat.id, place, turn.id, asked, packing.pack_message(turn.user)),
            )
        row = self._row_id(chat.id, place)
        if known is None or known.answer is not turn.answer:
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)",
                (row, packing.pack_answer(turn.answer), packing.pack_tokens(turn.answer.tokens)),
            )
        # An answer's words are indexed once, when it is over: in mid-answer they change all the time.
        if (
            new_question
            or renamed
            or (known is not None and known.answer is not turn.answer and turn.answer.over)
        ):
            self._write_words(row, chat, place, turn)

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
        self._connection.execute(f"DELETE FROM answers WHERE turn IN ({chosen})", (chat_id, from_place))
        self._connection.execute("DELETE FROM turns WHERE chat = ? AND place >= ?", (chat_id, from_place))

    def _ensure_words(self) -> None:
        """The table that is searched: made, and filled if another kind of it was in use before."""
        with self.transaction():
            if not schema.make_words(self._connection, self.full_text):
                return
            for summary in self.summaries():
                chat = self.load(summary.id)
                for place, turn in enumerate(chat.turns):
                    self._write_words(self._row_id(chat.id, place), chat, place, turn)
