"""Rows: converts a chat's head, turns and answers, and projects, to database rows with checksums, and back.

Invariant: a value that is read equals the one written, or `ValueError` or `TypeError` is raised. Databases
of older versions, without checksums, parts or archive, are read as well.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.archive import Summary
from app.session.chats.conversation import NOTHING_WRITTEN, Answer, Conversation, Turn, Version
from app.session.chats.projects import Project
from app.store import packing, schema
from app.store.database import ChecksumError, Value, check, checksum, version_of
from app.store.packing import forgiving
from core.events import Token

_HEAD = (
    "id, created, changed, title, name, turns, pinned, context_used_tokens, overrides, draft, deleted,"
    " archived, preset, queued, project"
)
_HEAD_FIELDS = _HEAD.split(", ")
WRITE_HEAD = (
    f"INSERT INTO chats ({_HEAD}, sum) VALUES ({', '.join('?' * (len(_HEAD_FIELDS) + 1))})"
    " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*_HEAD_FIELDS[1:], "sum"))
)

_Value = TypeVar("_Value")


class ChatHead(Struct, frozen=True):
    """The row of a chat: everything but its turns, and their number."""

    chat: Conversation
    title: str
    changed: datetime
    turns: int

    @property
    def summary(self) -> Summary:
        chat = self.chat
        return Summary(
            chat.id,
            self.title,
            self.changed,
            self.turns,
            chat.pinned,
            chat.deleted,
            len(chat.queued),
            chat.project,
        )


class ChatPlace(Struct, frozen=True):
    """A row of `turns`: its number, and its place in the chat."""

    row: int
    place: int


class Rows:
    """Reads rows of one database. All methods raise `sqlite3.Error`; for damage `ValueError` or `TypeError`.

    `doubt` gets the damage of a row; if it does not raise, the row is read as it is.
    """

    def __init__(
        self, connection: sqlite3.Connection, doubt: Callable[[Exception], None] | None = None
    ) -> None:
        self._connection = connection
        self._doubt = doubt or _refuse
        checked = version_of(connection) >= schema.CHECKED_VERSION
        self._sum = "sum" if checked else "NULL"
        self._has_parts = checked
        self._head_list = ", ".join(schema.head_of(version_of(connection), _HEAD_FIELDS))
        self._has_versions = version_of(connection) >= schema.VERSIONS_VERSION

    def heads(self) -> Iterator[ChatHead]:
        """Yields all chats, in no order."""
        for row in self._connection.execute(f"SELECT {self._head_list}, {self._sum} FROM chats"):
            self._check(row[-1], *row[:-1])
            yield self._head(row[:-1])

    def head(self, chat_id: str) -> ChatHead | None:
        """Returns one chat; None if the id is unknown."""
        found = self._connection.execute(
            f"SELECT {self._head_list}, {self._sum} FROM chats WHERE id = ?", (chat_id,)
        ).fetchone()
        if found is None:
            return None
        self._check(found[-1], *found[:-1])
        return self._head(found[:-1])

    def places(self, chat_id: str) -> list[ChatPlace]:
        """Returns the turns of a chat, in order."""
        found = self._connection.execute(
            "SELECT id, place FROM turns WHERE chat = ? ORDER BY place", (chat_id,)
        )
        return [ChatPlace(row, place) for row, place in found]

    def question(self, row: int) -> Turn:
        """Returns the turn of a row, without its answer."""
        chat, place, name, asked, question, found = self._connection.execute(
            f"SELECT chat, place, name, asked, question, {self._sum} FROM turns WHERE id = ?", (row,)
        ).fetchone()
        self._check(found, chat, place, name, asked, question)
        return Turn(_text(name), packing.unpack_message(question), asked=_time(asked))

    def state(self, row: int) -> Answer | None:
        """Returns the answer of a turn without its tokens; None if it has no row."""
        found = self._answer(row, "state")
        return packing.unpack_answer(found[0]) if found else None

    def tokens(self, row: int) -> tuple[Token, ...]:
        """Returns the tokens of a turn's answer, including those of `parts`."""
        found = self._answer(row, "tokens")
        tokens = packing.unpack_tokens(found[0]) if found and found[0] else ()
        if not self._has_parts:
            return tokens
        pieces = [tokens]
        count = len(tokens)
        for place, part, total in self._connection.execute(
            "SELECT place, tokens, sum FROM parts WHERE turn = ? ORDER BY place", (row,)
        ):
            self._check(total, row, place, part)
            if place != count:
                self._doubt(ChecksumError("a part of an answer is missing"))
                break
            pieces.append(packing.unpack_tokens(part))
            count += len(pieces[-1])
        return tuple(token for piece in pieces for token in piece)

    def other_places(self, row: int) -> list[int]:
        """Returns the places of a turn's hidden versions."""
        if not self._has_versions:
            return []
        (count,) = self._connection.execute("SELECT versions FROM turns WHERE id = ?", (row,)).fetchone()
        found = self._connection.execute("SELECT place FROM versions WHERE turn = ? ORDER BY place", (row,))
        places = [_number(place) for (place,) in found]
        if len(places) != count - 1 or any(not 0 <= place < count for place in places):
            self._doubt(ChecksumError("a version of an answer is missing"))
        return places

    def version(self, row: int, place: int) -> Version:
        """Returns one hidden version."""
        name, asked, question, state, tokens, found = self._connection.execute(
            "SELECT name, asked, question, state, tokens, sum FROM versions WHERE turn = ? AND place = ?",
            (row, place),
        ).fetchone()
        self._check(found, row, place, name, asked, question, state, tokens)
        answer = replace(packing.unpack_answer(state), tokens=packing.unpack_tokens(tokens))
        return Version(_text(name), packing.unpack_message(question), answer, _time(asked))

    def _answer(self, row: int, column: str) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._connection.execute(
            f"SELECT {column}, state, tokens, {self._sum} FROM answers WHERE turn = ?", (row,)
        ).fetchone()
        if found:
            self._check(found[3], row, found[1], found[2])
        return found

    def _check(self, found: int | None, *values: Value) -> None:
        try:
            check(found, *values)
        except ChecksumError as error:
            self._doubt(error)

    def _head(self, row: tuple[Any, ...]) -> ChatHead:
        row = (*row, *schema.ADDED_HEAD[len(row) - len(schema.OLD_HEAD) :])
        chat, created, changed, title, name, turns, pinned, context, overrides, draft, *ends = row
        deleted, _, preset, queued, project = ends  # the column `archived` is not used
        began = self._value(datetime.fromisoformat, created, datetime.now(UTC))
        return ChatHead(
            Conversation(
                _text(chat),
                began,
                (),
                self._value(_number, context, 0),
                self._value(_text, name, ""),
                bool(self._value(_number, pinned, 0)),
                self._value(packing.unpack_overrides, overrides, ()),
                self._value(packing.unpack_message, draft, NOTHING_WRITTEN),
                self._value(_time, deleted, None),
                self._value(_text, preset, ""),
                self._value(packing.unpack_messages, queued, ()),
                self._value(_text, project, ""),
            ),
            self._value(_text, title, ""),
            self._value(datetime.fromisoformat, changed, began),
            self._value(_number, turns, 0),
        )

    def _value(self, read: Callable[[Any], _Value], raw: Any, otherwise: _Value) -> _Value:
        try:
            return read(raw)
        except (ValueError, TypeError, OverflowError) as error:
            self._doubt(error)
            return otherwise

    def load(self, head: ChatHead) -> Conversation:
        """Returns the whole chat. Raises `ChecksumError` also if a turn or an answer is missing."""
        places = self.places(head.chat.id)
        if [each.place for each in places] != list(range(head.turns)):
            raise ChecksumError("questions of a chat are missing")
        turns = []
        for each in places:
            state = self.state(each.row)
            if state is None:
                raise ChecksumError("an answer of a chat is missing")
            answer = replace(state, tokens=self.tokens(each.row))
            turns.append(self._with_others(each.row, replace(self.question(each.row), answer=answer)))
        return replace(head.chat, turns=tuple(turns))

    def _with_others(self, row: int, turn: Turn) -> Turn:
        places = self.other_places(row)
        others = tuple(self.version(row, place) for place in places)
        return with_others(turn, places, others) if others else turn


def with_others(turn: Turn, places: list[int], others: tuple[Version, ...]) -> Turn:
    """Returns `turn` with `others` at `places`; its own place is the first free one."""
    own = next(place for place in range(len(others) + 1) if place not in places)
    return replace(turn, others=others, place=own)


def version_values(row: int, place: int, version: Version) -> tuple[Value, ...]:
    values: tuple[Value, ...] = (
        row,
        place,
        version.id,
        version.asked.isoformat() if version.asked else None,
        packing.pack_message(version.user),
        packing.pack_answer(version.answer),
        packing.pack_tokens(version.answer.tokens),
    )
    return (*values, checksum(*values))


def head_values(chat: Conversation) -> tuple[Value, ...]:
    """Returns the parameters of `WRITE_HEAD`."""
    values: tuple[Value, ...] = (
        chat.id,
        chat.created.isoformat(),
        chat.changed.isoformat(),
        chat.title,
        chat.name,
        len(chat.turns),
        int(chat.pinned),
        chat.context_used_tokens,
        packing.pack_overrides(chat.overrides),
        packing.pack_message(chat.draft),
        chat.deleted.isoformat() if chat.deleted else None,
        None,  # archived
        chat.preset,
        packing.pack_messages(chat.queued),
        chat.project,
    )
    return (*values, checksum(*values))


def _refuse(error: Exception) -> None:
    raise error


def _time(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text should be")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} where a number should be")
    return value


class ProjectGone(Struct, frozen=True):
    """A project is deleted permanently."""

    id: str


ProjectJob = Project | ProjectGone


class ProjectRows:
    """Reads and writes projects, one blob each, over one connection; writing needs a transaction.

    All methods raise `sqlite3.Error`. `doubt` gets the damage of a row; if it does not raise, the row is read
    as it is or left out.
    """

    def __init__(
        self, connection: sqlite3.Connection, doubt: Callable[[Exception], None] | None = None
    ) -> None:
        self._connection = connection
        self._doubt = doubt or _refuse
        self._there = version_of(connection) >= schema.PROJECTS_VERSION

    def all(self) -> Iterator[Project]:
        """Yields every project, in no order."""
        if not self._there:
            return
        for project_id, state, found in self._connection.execute("SELECT id, state, sum FROM projects"):
            try:
                check(found, project_id, state)
            except ChecksumError as error:
                self._doubt(error)
            try:
                project: Project = forgiving(msgspec.msgpack.decode(state), Project)
                if project.id != project_id:
                    raise ValueError(f"the project {project.id!r} has the row of another one")
            except (ValueError, TypeError) as error:
                self._doubt(error)
                continue
            yield project

    def do(self, job: ProjectJob) -> None:
        """Writes or deletes a project."""
        if isinstance(job, ProjectGone):
            self._connection.execute("DELETE FROM projects WHERE id = ?", (job.id,))
            return
        values = (job.id, msgspec.msgpack.encode(job))
        self._connection.execute(
            "INSERT OR REPLACE INTO projects (id, state, sum) VALUES (?, ?, ?)", (*values, checksum(*values))
        )


def key_of(job: ProjectJob) -> str:
    """Returns the key under which `job` waits until a newer job replaces it. No chat has such an id."""
    return f"project {job.id}"
