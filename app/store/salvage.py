"""Salvage: reads the records of a damaged chat database from every intact page.

A child process reads the rows of all leaf pages (`core.system.sqlite_pages`); a row is one of Draftlight's if
its checksum matches. The records that they make go to a database in memory, which is then one of the copies
that the library reads. Of a chat, the turns that are missing are taken from the newest backup that has them,
and a chat that is in none becomes an entry that names it, so that the user sees the loss.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.chats.projects import Project
from app.session.documents import KeptDocument
from app.store import strings
from app.store.chat_store import ChatStore, Mark, StoredDocument, key_of
from app.store.database import checksum
from app.store.faults import UNREADABLE
from app.store.packing import (
    PackedAnswer,
    PackedTurn,
    TokenColumns,
    tokens_of,
    unpack,
    unpacked,
    with_results,
)
from core.events import Message
from core.system.children import child_command
from core.system.prepared import prepared
from core.system.reader_process import ReaderFaultError, ReaderProcess
from core.system.sqlite_pages import Row

_SILENCE_S, _WHOLE_S = 20.0, 60.0
_Rows = dict[tuple[Any, ...], Row]


class Salvaged(Struct, frozen=True):
    """A database in memory with the readable records. `partial`: ids of chats with missing turns."""

    store: ChatStore
    partial: frozenset[str] = frozenset()


class Found(Struct):
    """The rows of each table by their keys, with their row ids; of two with one key the later one."""

    chats: _Rows = field(default_factory=dict)
    turns: _Rows = field(default_factory=dict)
    parts: _Rows = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    projects: _Rows = field(default_factory=dict)
    documents: _Rows = field(default_factory=dict)
    texts: dict[int, set[str]] = field(default_factory=dict)
    mark: Mark = Mark()

    def add(self, row: Row) -> None:
        """Adds a row whose checksum matches. Texts of documents have theirs in another row."""
        row_id, values = row
        match values:
            case [str(), *_, int()] if len(values) == 8 and _matches(values):
                _keep(self.chats, values[:1], row)
            case [None, str(), *_, int()] if len(values) == 6 and _matches(values[1:]):
                _keep(self.turns, values[1:3], row)
            case [str(), int(), int(), bytes(), int()] if _matches(values):
                _keep(self.parts, values[:3], row)
            case [str(), int(), str(name), bytes(data), int()] if _matches(values):
                self.blobs[name] = data
            case [str(), bytes(), int()] if _matches(values):
                _keep(self.projects, values[:1], row)
            case [None, str(), *_, int(), int()] if len(values) == 8 and _matches(values[1:7]):
                _keep(self.documents, values[1:2], row)
            case [None, str(), str(text)]:
                self.texts.setdefault(row_id, set()).add(text)
            case ["mark", str(mark)]:
                with suppress(ValueError):
                    found = msgspec.json.decode(mark, type=prepared(Mark))
                    self.mark = max(self.mark, found, key=lambda one: one.changes)

    def has_any(self) -> bool:
        """Whether a row of Draftlight's is among them."""
        return bool(self.chats or self.turns or self.parts or self.projects or self.documents)


def _matches(values: Sequence[Any]) -> bool:
    return bool(checksum(*values[:-1]) == values[-1])


def _keep(rows: _Rows, key: Iterable[Any], row: Row) -> None:
    """A page may be there twice, in two states: later rows of `turns` and `parts` have larger row ids."""
    known = rows.get(name := tuple(key))
    if known is None or row[0] >= known[0]:
        rows[name] = row


def read(path: Path) -> Found:
    """The rows of the file at `path`; as many as a process reads within its limits, none of another file."""
    found = Found()
    process = ReaderProcess(
        child_command("--read-pages", str(path.absolute())), silence_s=_SILENCE_S, whole_s=_WHOLE_S
    )
    with suppress(ReaderFaultError), closing(process.lines()) as lines:
        for line in lines:
            with suppress(msgspec.DecodeError, binascii.Error, *UNREADABLE):
                row_id, values = msgspec.msgpack.decode(binascii.a2b_base64(line))
                found.add((row_id, values))
    return found


def salvage(found: Found, backups: Sequence[ChatStore]) -> Salvaged:
    """The records that `found` makes, with the turns and texts that only one of `backups` has."""
    store = ChatStore(None)
    partial: set[str] = set()
    with store.transaction():
        ids = {str(key[0]) for rows in (found.chats, found.turns, found.parts) for key in rows}
        turns = _turns(found)
        for chat_id in sorted(ids):
            with suppress(*UNREADABLE):
                chat, is_whole = _chat(found, chat_id, turns.get(chat_id, {}), backups)
                store.write(chat)
                partial.update(() if is_whole else [chat_id])
        records: list[Project | StoredDocument] = [*_projects(found), *_documents(found, backups)]
        for record in records:
            store.attempt(key_of(record), record)
        store.set_mark(found.mark)
    return Salvaged(store, frozenset(partial))


def _turns(found: Found) -> dict[str, dict[int, Turn]]:
    """The readable turns of each chat by their places; a missing half is replaced by a note."""
    parts: dict[tuple[str, int], dict[int, bytes]] = {}
    for (chat, turn, place), (_, values) in found.parts.items():
        parts.setdefault((chat, turn), {})[place] = values[3]
    made: dict[str, dict[int, Turn]] = {}
    for chat, place in sorted({*parts, *found.turns}):
        known: Turn | None = None
        with suppress(KeyError, *UNREADABLE):
            known = unpacked(unpack(found.turns[chat, place][1][4], PackedTurn), found.blobs)
        answer = _answer(parts.get((chat, place), {}), found.blobs)
        if known is not None:
            answer = answer or Answer(status="failed", note=strings.ANSWER_LOST)
            made.setdefault(chat, {})[place] = replace(known, answer=answer)
        elif answer is not None:
            lost = Message("user", strings.question_lost(place + 1))
            made.setdefault(chat, {})[place] = Turn(_lost_id(chat, place), lost, answer)
    return made


def _answer(parts: Mapping[int, bytes], blobs: Mapping[str, bytes]) -> Answer | None:
    """The answer as far as its parts follow each other, which a note says; None without the first one."""
    try:
        first = unpack(parts[0], PackedAnswer)
        tokens, read = list(tokens_of(first.tokens)), 1
        while tokens and (more := parts.get(len(tokens))) is not None:
            tokens += tokens_of(unpack(more, TokenColumns))
            read += 1
        answer = replace(with_results(first.answer, blobs), tokens=tuple(tokens))
    except (KeyError, *UNREADABLE):
        return None
    if read < len(parts):
        answer = replace(answer, status="cut_off", finished=None, note=strings.ANSWER_LOST)
    return answer


def _lost_id(chat_id: str, place: int) -> str:
    return f"{chat_id}-lost-{place}"


def _is_whole(turn: Turn, chat_id: str, place: int) -> bool:
    return turn.id != _lost_id(chat_id, place) and turn.answer.note != strings.ANSWER_LOST


def _chat(
    found: Found, chat_id: str, turns: Mapping[int, Turn], backups: Sequence[ChatStore]
) -> tuple[Conversation, bool]:
    """The chat, and whether it is complete. Raises as `UNREADABLE` if it has no row at all."""
    chat = None
    count = max(turns, default=-1) + 1
    if row := found.chats.get((chat_id,)):
        with suppress(*UNREADABLE):
            chat = unpack(row[1][6], Conversation)
            count = max(count, int(row[1][4]))
    there = {place: turn for place, turn in turns.items() if _is_whole(turn, chat_id, place)}
    older: Conversation | None = None
    if chat is None or len(there) < count:
        older = next(_loaded(backups, chat_id), None)
    for place, turn in enumerate(older.turns if older else ()):
        there.setdefault(place, turn)
    count = max(count, *(place + 1 for place in there), 0)
    chat = chat or older
    whole = chat is not None and len(there) == count
    if chat is None:
        asked = (there[place].asked for place in sorted(there))
        chat = Conversation(chat_id, next(filter(None, asked), datetime.fromtimestamp(0, UTC)))
    return replace(chat, turns=tuple(_filled({**turns, **there}, chat_id, count))), whole


def _loaded(backups: Sequence[ChatStore], chat_id: str) -> Iterator[Conversation]:
    for backup in backups:
        with suppress(KeyError, *UNREADABLE):
            yield backup.load(chat_id)


def _filled(turns: Mapping[int, Turn], chat_id: str, count: int) -> Iterator[Turn]:
    """The turns in order, with one for each run of missing ones that names it."""
    first = 0
    for place in range(count + 1):
        if place < count and place not in turns:
            continue
        if first < place:
            answer = Answer(status="failed", note=strings.ANSWER_LOST)
            yield Turn(
                _lost_id(chat_id, first), Message("user", strings.turns_lost(first + 1, place)), answer
            )
        if place < count:
            yield turns[place]
        first = place + 1


def _projects(found: Found) -> Iterator[Project]:
    for _, values in found.projects.values():
        with suppress(*UNREADABLE):
            yield unpack(values[1], Project)


def _documents(found: Found, backups: Sequence[ChatStore]) -> Iterator[StoredDocument]:
    for row_id, values in found.documents.values():
        with suppress(*UNREADABLE):
            document = unpack(values[5], KeptDocument)
            texts = [text for text in found.texts.get(row_id, ()) if checksum(text) == values[7]]
            for backup in () if texts else backups:
                with suppress(KeyError, *UNREADABLE):
                    texts.append(backup.text(document.id))
            if texts:
                yield StoredDocument(document, texts[0])
