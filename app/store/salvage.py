"""Salvage: the readable records of a damaged chat database, from a copy of it.

The damaged file itself is never written to. Unreadable records are left out and counted, never guessed: a
chat without its head is rebuilt from its turns, a turn without its answer has an empty one. A record with a
wrong checksum is used, and counted too.
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

from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.session.chats.projects import Project
from app.session.documents import KeptDocument
from app.store.chat_store import MemoryStore
from app.store.database import Database
from app.store.documents import DocumentAdded, DocumentRows
from app.store.projects import ProjectRows
from app.store.rows import ChatPlace, Rows, with_others
from app.store.schema import refuse_foreign
from core.events import Token

# Everything that reading a damaged record raises.
UNREADABLE = (sqlite3.Error, msgspec.MsgspecError, ValueError, TypeError, OverflowError)
_SIDES = ("", "-wal")
_Value = TypeVar("_Value")


def copy_beside(path: Path) -> Path:
    """Copies the database beside itself, once per modification time. Returns the copy. Raises `OSError`."""
    stamp = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    copy = path.with_name(f"{path.stem}-damaged-{stamp:%Y%m%d-%H%M%S}{path.suffix}")
    if not copy.exists():
        for side in _SIDES:
            source = path.with_name(path.name + side)
            if source.exists():
                shutil.copy2(source, copy.with_name(copy.name + side))
    return copy


class Salvage(MemoryStore):
    """The readable content of the damaged database `copy`; `lost` counts the unreadable records."""

    def __init__(self, copy: Path) -> None:
        super().__init__()
        self.copy = copy
        self.lost = 0
        try:
            database = Database(copy, read_only=True)
        except UNREADABLE:
            self.lost += 1
            return
        try:
            refuse_foreign(database.connection)
            rows = Rows(database.connection, self._note)
            for chat in self._read_all(database.connection, rows):
                self._try(lambda: self.save(chat), None)  # noqa: B023
            self._read_documents(database.connection)
            self._read_projects(database.connection)
        except UNREADABLE:
            self.lost += 1
        finally:
            database.close()

    def _read_documents(self, connection: sqlite3.Connection) -> None:
        """A document without a readable text is left out; a text with a wrong checksum is used."""
        rows = DocumentRows(connection, False, self._note)
        found: list[KeptDocument] = []
        # Extended one by one, so that documents before a damaged row are kept.
        self._try(lambda: found.extend(rows.all()), None)
        for document in found:
            text = self._try(lambda: rows.text(document.id), None)  # noqa: B023
            if text is not None:
                self.do_document(DocumentAdded(document, text))

    def _read_projects(self, connection: sqlite3.Connection) -> None:
        rows = ProjectRows(connection, self._note)
        found: list[Project] = []
        self._try(lambda: found.extend(rows.all()), None)
        for project in found:
            self._try(lambda: self.do_project(project), None)  # noqa: B023

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
        """Returns the first column of the rows before the damage."""
        found: list[Any] = []
        try:
            for row in connection.execute(query):
                found.append(row[0])
        except UNREADABLE:
            self.lost += 1
        return found

    def _note(self, error: Exception) -> None:
        """Counts a record that is used in spite of a wrong checksum."""
        self.lost += 1

    def _try(self, read: Callable[[], _Value], otherwise: _Value) -> _Value:
        """Returns `otherwise` if `read` fails. Counts at most one record."""
        before = self.lost
        try:
            return read()
        except UNREADABLE:
            self.lost += 1
            return otherwise
        finally:
            self.lost = min(self.lost, before + 1)
