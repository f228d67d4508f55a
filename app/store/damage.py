"""Damage: a copy of a damaged chat database, and reading from the copy whatever can be read.

The damaged file itself is never written to. What cannot be read is left out and counted, never
guessed: a chat whose head is lost comes back from its turns, a turn without its answer has none.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from app.session.conversation import Answer, Conversation, Turn
from app.session.shelf import Hit, Summary, find_in, summary_of
from app.store import packing, schema
from app.store.packing import unpack_overrides

# Everything that reading a damaged record raises.
UNREADABLE = (sqlite3.Error, msgspec.MsgspecError, ValueError, TypeError, OverflowError)
_SIDES = ("", "-wal")
_Value = TypeVar("_Value")
_Default = TypeVar("_Default")


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
        with contextlib.suppress(*UNREADABLE):
            self._connection = schema.connect(copy, read_only=True)
        self._chats = {chat.id: chat for chat in self._read_all()}

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

    def _read_all(self) -> Iterator[Conversation]:
        heads = [str(chat) for (chat,) in self._rows("SELECT id FROM chats")]
        owners = [str(chat) for (chat,) in self._rows("SELECT chat FROM turns GROUP BY chat")]
        for chat_id in dict.fromkeys(heads + owners):
            chat = self._chat(chat_id)
            if chat.turns or chat.draft.content or chat.draft.attachments:
                yield chat

    def _chat(self, chat_id: str) -> Conversation:
        turns = tuple(self._turns(chat_id))
        times = [turn.asked for turn in turns if turn.asked]
        chat = Conversation(chat_id, min(times, default=datetime.now(UTC)), turns)
        heads = self._rows(
            "SELECT created, context_used_tokens, name, pinned, overrides, draft, deleted FROM chats"
            " WHERE id = ?",
            chat_id,
        )
        for created, context, name, pinned, overrides, draft, deleted in heads:
            return replace(
                chat,
                created=self._value(datetime.fromisoformat, created, chat.created),
                context_used_tokens=self._value(int, context, 0),
                name=str(name),
                pinned=bool(pinned),
                overrides=self._value(unpack_overrides, overrides, ()),
                draft=self._value(packing.unpack_message, draft, chat.draft),
                deleted=self._value(datetime.fromisoformat, deleted, None) if deleted else None,
            )
        return chat

    def _turns(self, chat_id: str) -> Iterator[Turn]:
        places = "SELECT id, name FROM turns WHERE chat = ? ORDER BY place"
        for row, name in list(self._rows(places, chat_id)):
            for asked, question in self._rows("SELECT asked, question FROM turns WHERE id = ?", row):
                user = self._value(packing.unpack_message, question, None)
                if user is not None:
                    when = self._value(datetime.fromisoformat, asked, None) if asked else None
                    yield Turn(str(name), user, self._answer(row), when)

    def _answer(self, row: int) -> Answer:
        for state, tokens in self._rows("SELECT state, tokens FROM answers WHERE turn = ?", row):
            answer = self._value(packing.unpack_answer, state, Answer(status="cut_off"))
            return replace(answer, tokens=self._value(packing.unpack_tokens, tokens, ()))
        return Answer(status="cut_off")

    def _rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows up to where the file is damaged."""
        try:
            if self._connection:
                yield from self._connection.execute(query, values)
        except UNREADABLE:
            self.lost += 1

    def _value(self, read: Callable[[Any], _Value], raw: Any, otherwise: _Default) -> _Value | _Default:
        try:
            return read(raw)
        except UNREADABLE:
            self.lost += 1
            return otherwise
