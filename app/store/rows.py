"""Rows: converts a chat's head, turns and answers, and projects, to database rows with checksums, and back.

Invariant: a value that is read equals the one written, or `ValueError` or `TypeError` is raised.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.archive import Summary
from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.session.chats.projects import Project
from app.store import packing
from app.store.database import ChecksumError, Value, check, checksum, text_of
from app.store.packing import forgiving

_HEAD = (
    "id, created, changed, title, name, turns, pinned, context_used_tokens, overrides, draft, deleted,"
    " preset, queued, project"
)
_HEAD_FIELDS = _HEAD.split(", ")
WRITE_HEAD = (
    f"INSERT INTO chats ({_HEAD}, sum) VALUES ({', '.join('?' * (len(_HEAD_FIELDS) + 1))})"
    " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*_HEAD_FIELDS[1:], "sum"))
)


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


class Rows:
    """Reads rows of one database. Raises `sqlite3.Error`; for damage `ValueError` or `TypeError`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def heads(self) -> Iterator[ChatHead]:
        """Yields all chats, in no order."""
        return (_head(row) for row in self._connection.execute(f"SELECT {_HEAD}, sum FROM chats"))

    def head(self, chat_id: str) -> ChatHead | None:
        """Returns one chat; None if the id is unknown."""
        query = f"SELECT {_HEAD}, sum FROM chats WHERE id = ?"
        found = self._connection.execute(query, (chat_id,)).fetchone()
        return _head(found) if found else None

    def load(self, head: ChatHead) -> Conversation:
        """Returns the whole chat."""
        found = self._connection.execute(
            "SELECT id, place, versions, name, asked, question, sum FROM turns WHERE chat = ? ORDER BY place",
            (head.chat.id,),
        ).fetchall()
        if [place for _, place, *_ in found] != list(range(head.turns)):
            raise ChecksumError("questions of a chat are missing")
        turns = []
        for row, place, versions, *values, total in found:
            check(total, head.chat.id, place, *values)
            name, asked, question = values
            turn = Turn(text_of(name), packing.unpack_message(question), self._answer(row), _time(asked))
            others = self._others(row, versions)
            turns.append(with_others(turn, list(others), tuple(others.values())) if others else turn)
        return replace(head.chat, turns=tuple(turns))

    def _answer(self, row: int) -> Answer:
        """Returns the answer of a turn, with the tokens of `parts`."""
        found = self._connection.execute(
            "SELECT state, tokens, sum FROM answers WHERE turn = ?", (row,)
        ).fetchone()
        if found is None:
            raise ChecksumError("an answer of a chat is missing")
        state, tokens, total = found
        check(total, row, state, tokens)
        pieces = list(packing.unpack_tokens(tokens))
        for place, part, total in self._connection.execute(
            "SELECT place, tokens, sum FROM parts WHERE turn = ? ORDER BY place", (row,)
        ):
            check(total, row, place, part)
            if place != len(pieces):
                raise ChecksumError("a part of an answer is missing")
            pieces += packing.unpack_tokens(part)
        return replace(packing.unpack_answer(state), tokens=tuple(pieces))

    def _others(self, row: int, count: int) -> dict[int, Version]:
        """Returns the hidden versions of a turn with `count` versions, by their places."""
        found: dict[int, Version] = {}
        for *values, total in self._connection.execute(
            "SELECT turn, place, name, asked, question, state, tokens, sum FROM versions WHERE turn = ?"
            " ORDER BY place",
            (row,),
        ):
            check(total, *values)
            _, place, name, asked, question, state, tokens = values
            answer = replace(packing.unpack_answer(state), tokens=packing.unpack_tokens(tokens))
            found[place] = Version(text_of(name), packing.unpack_message(question), answer, _time(asked))
        if len(found) != count - 1 or any(not 0 <= place < count for place in found):
            raise ChecksumError("a version of an answer is missing")
        return found


def _head(row: tuple[Any, ...]) -> ChatHead:
    *values, total = row
    check(total, *values)
    chat, created, changed, title, name, turns, pinned, context, overrides, draft, *ends = values
    deleted, preset, queued, project = ends
    return ChatHead(
        Conversation(
            text_of(chat),
            datetime.fromisoformat(created),
            (),
            _number(context),
            text_of(name),
            bool(_number(pinned)),
            packing.unpack_overrides(overrides),
            packing.unpack_message(draft),
            _time(deleted),
            text_of(preset),
            packing.unpack_messages(queued),
            text_of(project),
        ),
        text_of(title),
        datetime.fromisoformat(changed),
        _number(turns),
    )


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
        packing.pack(version.user),
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
        packing.pack(chat.overrides),
        packing.pack(chat.draft),
        chat.deleted.isoformat() if chat.deleted else None,
        chat.preset,
        packing.pack(chat.queued),
        chat.project,
    )
    return (*values, checksum(*values))


def _time(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


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

    Errors as in `Rows`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self) -> Iterator[Project]:
        """Yields every project, in no order."""
        return (_project(row) for row in self._connection.execute("SELECT id, state, sum FROM projects"))

    def load(self, project_id: str) -> Project:
        """Raises `KeyError` for an unknown id."""
        query = "SELECT id, state, sum FROM projects WHERE id = ?"
        found = self._connection.execute(query, (project_id,)).fetchone()
        if found is None:
            raise KeyError(project_id)
        return _project(found)

    def do(self, job: ProjectJob) -> None:
        """Writes or deletes a project."""
        if isinstance(job, ProjectGone):
            self._connection.execute("DELETE FROM projects WHERE id = ?", (job.id,))
            return
        values = (job.id, msgspec.msgpack.encode(job))
        self._connection.execute(
            "INSERT OR REPLACE INTO projects (id, state, sum) VALUES (?, ?, ?)", (*values, checksum(*values))
        )


def _project(row: tuple[Any, ...]) -> Project:
    project_id, state, total = row
    check(total, project_id, state)
    project: Project = forgiving(msgspec.msgpack.decode(state), Project)
    if project.id != project_id:
        raise ValueError(f"the project {project.id!r} has the row of another one")
    return project


def key_of(job: ProjectJob) -> str:
    """Returns the key under which `job` waits until a newer job replaces it. No chat has such an id."""
    return f"project {job.id}"
