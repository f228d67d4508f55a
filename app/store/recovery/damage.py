"""Damage: a copy of a damaged chat database, and reading from the copy whatever can be read.

The damaged file itself is never written to. What cannot be read is left out and counted, never
guessed: a chat whose head is lost comes back from its turns, a turn without its answer has none. What
can be read though its checksum is wrong is shown, and counted too.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from app.session.chats.archive import Hit, Summary, find_in, summary_of
from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.session.library.document import DocumentHit, KeptDocument
from app.session.library.document_archive import MemoryDocuments
from app.store import schema
from app.store.documents.document_rows import DocumentRows
from app.store.rows import ChatPlace, Rows, with_others
from core.events import Token

# Everything that reading a damaged record raises.
UNREADABLE = (sqlite3.Error, msgspec.MsgspecError, ValueError, TypeError, OverflowError)
_SIDES = ("", "-wal")
_Value = TypeVar("_Value")


def back_up(path: Path) -> Path:
    """Copy the database beside itself, once per state of it; where the copy is. Raises `OSError`."""
    stamp = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    copy = path.with_name(f"{path.stem}-damaged-{stamp:%Y%m%d-%H%M%S}{path.suffix}")
    if not copy.exists():
        for side in _SIDES:
            source = path.with_name(path.name + side)
            if source.exists():
                shutil.copy2(source, copy.with_name(copy.name + side))
    return copy


class Salvage:
    """A copy of a damaged database, read with patience. `lost` counts records that were there once."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        self.lost = 0
        self._connection: sqlite3.Connection | None = None
        self._chats: dict[str, Conversation] = {}
        self._documents = MemoryDocuments()
        try:
            self._connection = schema.connect(copy, read_only=True)
            rows = Rows(self._connection, self._doubt)
        except UNREADABLE:
            self.lost += 1
            return
        self._chats = {chat.id: chat for chat in self._read_all(self._connection, rows)}
        self._read_documents(self._connection)

    def close(self) -> None:
        if self._connection:
            self._connection.close()

    def summaries(self) -> list[Summary]:
        return [summary_of(chat) for chat in self._chats.values()]

    def load(self, chat_id: str) -> Conversation:
        """Raises `KeyError`."""
        return self._chats[chat_id]

    def search(self, query: str) -> list[Hit]:
        words = query.split()
        found = (find_in(chat, words) for chat in self._chats.values() if not chat.deleted)
        return [hit for hit in found if hit] if words else []

    def documents(self) -> list[KeptDocument]:
        return list(self._documents.documents())

    def document_text(self, document_id: str) -> str:
        """Raises `KeyError`."""
        return self._documents.text(document_id)

    def find_documents(self, query: str) -> list[DocumentHit]:
        return list(self._documents.search(query))

    def _read_documents(self, connection: sqlite3.Connection) -> None:
        """Facts whose text is lost are no document; a text is kept whatever its checksum."""
        rows = DocumentRows(connection, False, self._doubt)
        found: list[KeptDocument] = []
        # One by one, so that those before a damaged row are there.
        self._try(lambda: found.extend(rows.all()), None)
        for document in found:
            text = self._try(lambda: rows.text(document.id), None)  # noqa: B023
            if text is not None:
                self._documents.add(document, text)

    def _read_all(self, connection: sqlite3.Connection, rows: Rows) -> Iterator[Conversation]:
        heads = self._select(connection, "SELECT id FROM chats")
        owners = self._select(connection, "SELECT chat FROM turns GROUP BY chat")
        for chat_id in dict.fromkeys(each for each in (*heads, *owners) if isinstance(each, str)):
            chat = self._chat(rows, chat_id)
            if chat.turns or chat.queued or chat.draft.content or chat.draft.attachments:
                yield chat

    def _chat(self, rows: Rows, chat_id: str) -> Conversation:
        nowhere: list[ChatPlace] = []
        places = self._try(lambda: rows.places(chat_id), nowhere)
        turns = tuple(turn for turn in (self._turn(rows, each.row) for each in places) if turn)
        head = self._try(lambda: rows.head(chat_id), None)
        if head is not None:
            self.lost += max(0, head.turns - len(places))
            return replace(head.chat, turns=turns)
        times = [turn.asked for turn in turns if turn.asked]
        return Conversation(chat_id, min(times, default=datetime.now(UTC)), turns)

    def _turn(self, rows: Rows, row: int) -> Turn | None:
        turn = self._try(lambda: rows.question(row), None)
        if turn is None:
            return None
        nothing: tuple[Token, ...] = ()
        before = self.lost
        state = self._try(lambda: rows.state(row), None)
        if state is None:
            self.lost += 1
            state = Answer(status="cut_off")
        tokens = self._try(lambda: rows.tokens(row), nothing)
        self.lost = min(self.lost, before + 1)
        return self._with_others(rows, row, replace(turn, answer=replace(state, tokens=tokens)))

    def _with_others(self, rows: Rows, row: int, turn: Turn) -> Turn:
        nowhere: list[int] = []
        found: dict[int, Version] = {}
        for place in self._try(lambda: rows.other_places(row), nowhere):
            self._try(lambda: found.update({place: rows.version(row, place)}), None)  # noqa: B023
        return with_others(turn, list(found), tuple(found.values())) if found else turn

    def _select(self, connection: sqlite3.Connection, query: str) -> list[Any]:
        """The first column of the rows up to where the file is damaged."""
        found: list[Any] = []
        try:
            for row in connection.execute(query):
                found.append(row[0])
        except UNREADABLE:
            self.lost += 1
        return found

    def _doubt(self, error: Exception) -> None:
        """A letter that became another one is no reason to leave out all others."""
        self.lost += 1

    def _try(self, read: Callable[[], _Value], otherwise: _Value) -> _Value:
        """Counts one record, whatever is wrong with it."""
        before = self.lost
        try:
            return read()
        except UNREADABLE:
            self.lost += 1
            return otherwise
        finally:
            self.lost = min(self.lost, before + 1)
