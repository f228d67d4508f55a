"""Chats as a JSON file: everything there is, to be taken in again exactly.

`{"draftlight_chats": 1, "chats": [{"chat": …, "turns": [{"text": …, "tokens": […], …}]}]}`.
`text` is the answer in one piece, for other programs; reading goes by the tokens. `others` are the
versions of a turn that are not shown, `place` is the shown one's among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.store import strings
from app.store.packing import (
    TokenColumns,
    columns_of,
    forgiving,
    pack_answer,
    pack_message,
    pack_messages,
    pack_overrides,
    pack_tokens,
    tokens_of,
)
from app.store.recovery.faults import TransferError
from core.events import Message
from core.events.text import well_formed_record

FORMAT = 1


class FileVersion(Struct, frozen=True):
    """One question and its answer, the tokens apart."""

    id: str
    question: Message
    answer: Answer
    tokens: TokenColumns
    text: str = ""
    asked: datetime | None = None


class FileTurn(FileVersion, frozen=True):
    """The version that is shown, and the others."""

    others: tuple[FileVersion, ...] = ()
    place: int = 0


class FileChat(Struct, frozen=True):
    """A chat, its turns apart. Without a default, one that cannot be read is never left out silently."""

    chat: Conversation
    turns: tuple[FileTurn, ...]


class ChatFile(Struct, frozen=True):
    """The whole file."""

    draftlight_chats: int
    chats: tuple[FileChat, ...]


def pieces(chats: Iterable[Conversation]) -> Iterator[bytes]:
    """The file of `chats`, a turn at a time: a long chat is never in memory twice."""
    yield b'{"draftlight_chats":%d,"chats":[' % FORMAT
    for number, chat in enumerate(chats):
        yield (b"," if number else b"") + b'{"chat":' + _encoded(replace(chat, turns=())) + b',"turns":['
        for place, turn in enumerate(chat.turns):
            yield (b"," if place else b"") + _encoded(_packed(turn))
        yield b"]}"
    yield b"]}"


def to_json(chats: Iterable[Conversation]) -> bytes:
    """All of `chats`."""
    return b"".join(pieces(chats))


def from_json(data: bytes) -> tuple[Conversation, ...]:
    """The chats of a file. Raises `TransferError`."""
    try:
        raw: Any = msgspec.json.decode(data)
    except UnicodeDecodeError:
        raise TransferError(strings.NOT_JSON, strings.NOT_UTF_8) from None
    except RecursionError:
        raise TransferError(strings.NOT_JSON, strings.TOO_DEEP) from None
    except msgspec.MsgspecError as error:
        raise TransferError(strings.NOT_JSON, str(error)) from None
    found = raw.get("draftlight_chats") if isinstance(raw, dict) else None
    if not isinstance(found, int):
        raise TransferError(strings.NOT_OURS, strings.NOT_OURS_HINT)
    if found > FORMAT:
        raise TransferError(strings.NEWER_FILE, strings.newer_file_hint(found, FORMAT))
    try:
        file: ChatFile = forgiving(raw, ChatFile)
        chats = tuple(_unpacked(each) for each in file.chats)
    except RecursionError:
        raise TransferError(strings.DAMAGED_FILE, strings.TOO_DEEP) from None
    except ValueError as error:
        raise TransferError(strings.DAMAGED_FILE, str(error)) from None
    for chat in chats:
        _check_savable(chat)
    return chats


def _check_savable(chat: Conversation) -> None:
    """JSON holds numbers and times that a database or a list of chats does not. Raises `TransferError`."""
    try:
        chat.context_used_tokens.to_bytes(8, "big", signed=True)
        chat.created.timestamp(), chat.changed.timestamp()  # chats are listed by it; a year 1 has none
        pack_overrides(chat.overrides)
        pack_message(chat.draft)
        pack_messages(chat.queued)
        for turn in chat.turns:
            for version in turn.versions:
                pack_message(version.user)
                pack_answer(version.answer)
                pack_tokens(version.answer.tokens)
    except (OverflowError, ValueError, TypeError, RecursionError, OSError):
        raise TransferError(strings.CANNOT_BE_SAVED, strings.CANNOT_BE_SAVED_HINT) from None


def _encoded(record: Conversation | FileTurn) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return msgspec.json.encode(well_formed_record(record))


def _packed(turn: Turn) -> FileTurn:
    others = tuple(FileVersion(*_fields(each)) for each in turn.others)
    return FileTurn(*_fields(turn), others, turn.place)


def _fields(of: Turn | Version) -> tuple[str, Message, Answer, TokenColumns, str, datetime | None]:
    columns = columns_of(of.answer.tokens)
    return of.id, of.user, replace(of.answer, tokens=()), columns, of.answer.text, of.asked


def _unpacked(file: FileChat) -> Conversation:
    turns = []
    for turn in file.turns:
        if not 0 <= turn.place <= len(turn.others):
            raise ValueError(f"a turn of {len(turn.others) + 1} versions shows version {turn.place + 1}")
        others = tuple(Version(each.id, each.question, _answer(each), each.asked) for each in turn.others)
        turns.append(Turn(turn.id, turn.question, _answer(turn), turn.asked, others, turn.place))
    return replace(file.chat, turns=tuple(turns))


def _answer(file: FileVersion) -> Answer:
    return replace(file.answer, tokens=tokens_of(file.tokens))
