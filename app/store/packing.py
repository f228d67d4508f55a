"""Packing: converts records to bytes and back; the tokens of an answer are columns in one msgpack blob.

Invariant: `unpack` of `pack` returns an equal record, floats to the last bit; but images are stored without
their paths, which `Library.load` fills in. A setting of an old answer that
Draftlight no longer has is dropped, so that the answer stays readable.

60,000 tokens unpack in a few tens of milliseconds because `map` builds the records from whole columns; a
record for each token would take several times the time and space.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.session.images import draft_with_paths, turn_with_paths
from core.events import DraftSource, Message, Origin, Token
from core.system.prepared import prepared

_ORIGINS: tuple[Origin, ...] = get_args(Origin)
_CODES = {origin: code for code, origin in enumerate(_ORIGINS)}
_SOURCES: tuple[DraftSource, ...] = get_args(DraftSource)
_SOURCE_CODES = {source: code for code, source in enumerate(_SOURCES)}


class TokenColumns(Struct, frozen=True, array_like=True):
    """All tokens of one answer, field by field. `requests` is one name if all have the same.

    `sources` ends with the last token that has one. `rejected`: by the tokens' indices, where there are any.
    """

    requests: tuple[str, ...]
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    origins: bytes
    steps: tuple[int, ...]
    positions: tuple[int, ...]
    draft_indexes: tuple[int, ...]
    draft_lengths: tuple[int, ...]
    times_s: tuple[float, ...]
    sources: bytes = b""
    rejected: dict[int, tuple[str, ...]] = {}


class PackedVersion(Struct, frozen=True):
    """A question and its answer, with the tokens in columns. `text`: without thoughts, for other programs."""

    id: str
    question: Message
    answer: Answer
    tokens: TokenColumns
    text: str = ""
    asked: datetime | None = None


class PackedTurn(PackedVersion, frozen=True):
    """The shown version of a turn, the others, and the index of the shown one among all."""

    others: tuple[PackedVersion, ...] = ()
    place: int = 0


class PackedAnswer(Struct, frozen=True):
    """An answer, with the tokens in columns."""

    answer: Answer
    tokens: TokenColumns


_T = TypeVar("_T")


def _no_path(hash: str) -> str:
    return ""


pack = msgspec.msgpack.Encoder().encode


def unpack(blob: bytes, kind: type[_T]) -> _T:
    """Raises `ValueError` if the blob is damaged."""
    try:
        return msgspec.msgpack.decode(blob, type=prepared(kind))
    except msgspec.ValidationError:
        found: _T = forgiving(msgspec.msgpack.decode(blob), kind)
        return found


def packed_chat(chat: Conversation) -> Conversation:
    """Returns `chat` as its row has it, without its turns."""
    return draft_with_paths(replace(chat, turns=()), _no_path)


def packed(turn: Turn, *, text: bool = False) -> PackedTurn:
    """Returns `turn` as it is stored, with the answers' texts without thoughts if `text`."""
    turn = turn_with_paths(turn, _no_path)
    others = tuple(PackedVersion(*_fields(each, text)) for each in turn.others)
    return PackedTurn(*_fields(turn, text), others, turn.place)


def unpacked(turn: PackedTurn, blobs: Mapping[str, bytes] | None = None) -> Turn:
    """`blobs` are the contents of results that are stored by hash; None: they are in `turn`.

    Raises `ValueError` if the fields do not fit each other, or one of the blobs is missing.
    """
    if not 0 <= turn.place <= len(turn.others):
        raise ValueError(f"a turn of {len(turn.others) + 1} versions shows version {turn.place + 1}")
    others = tuple(Version(each.id, each.question, _answer(each, blobs), each.asked) for each in turn.others)
    return Turn(turn.id, turn.question, _answer(turn, blobs), turn.asked, others, turn.place)


def _fields(
    of: Turn | Version, text: bool
) -> tuple[str, Message, Answer, TokenColumns, str, datetime | None]:
    columns = columns_of(of.answer.tokens)
    return of.id, of.user, replace(of.answer, tokens=()), columns, of.answer.words if text else "", of.asked


def _answer(of: PackedVersion, blobs: Mapping[str, bytes] | None) -> Answer:
    answer = replace(of.answer, tokens=tokens_of(of.tokens))
    return answer if blobs is None else with_results(answer, blobs)


def without_results(answer: Answer, blobs: dict[str, bytes]) -> Answer:
    """`answer` with the hashes of its results; `blobs` gets their contents by these."""
    calls = []
    for call in answer.calls:
        data = call.result.encode()
        name = hashlib.sha256(data).hexdigest()
        blobs[name] = data
        images = tuple(replace(each, path="") for each in call.images)
        calls.append(replace(call, result=name, images=images))
    return replace(answer, calls=tuple(calls)) if calls else answer


def with_results(answer: Answer, blobs: Mapping[str, bytes]) -> Answer:
    """The answer of `without_results` again. Raises `ValueError` if a blob is missing."""
    if not answer.calls:
        return answer
    try:
        calls = tuple(replace(each, result=blobs[each.result].decode()) for each in answer.calls)
    except KeyError as error:
        raise ValueError(f"the result of a call is missing: {error}") from error
    return replace(answer, calls=calls)


def columns_of(tokens: Sequence[Token]) -> TokenColumns:
    """`tokens` turned on their side."""
    requests = {token.request for token in tokens}
    return TokenColumns(
        tuple(requests) if len(requests) < 2 else tuple(token.request for token in tokens),
        tuple([token.id for token in tokens]),
        tuple([token.text for token in tokens]),
        bytes([_CODES[token.origin] for token in tokens]),
        tuple([token.step for token in tokens]),
        tuple([token.position for token in tokens]),
        tuple([token.draft_index for token in tokens]),
        tuple([token.draft_length for token in tokens]),
        tuple([token.time_s for token in tokens]),
        bytes([_SOURCE_CODES[token.source] for token in tokens]).rstrip(b"\0"),
        {index: token.rejected for index, token in enumerate(tokens) if token.rejected},
    )


def tokens_of(columns: TokenColumns) -> tuple[Token, ...]:
    """The tokens again. Raises `ValueError` if the columns do not fit each other."""
    count = len(columns.ids)
    lengths = {len(column) for column in (columns.texts, columns.origins, columns.steps, columns.positions)}
    lengths |= {len(column) for column in (columns.draft_indexes, columns.draft_lengths, columns.times_s)}
    if lengths != {count} or len(columns.requests) not in (count, min(count, 1)):
        raise ValueError("the columns of an answer's tokens have different lengths")
    if columns.origins and max(columns.origins) >= len(_ORIGINS):
        raise ValueError("a token of an answer has an origin that is not known")
    if columns.sources and (max(columns.sources) >= len(_SOURCES) or len(columns.sources) > count):
        raise ValueError("a token of an answer has a source that is not known")
    requests = repeat(columns.requests[0]) if len(columns.requests) == 1 else columns.requests
    return tuple(
        map(
            Token,
            requests,
            columns.ids,
            columns.texts,
            map(_ORIGINS.__getitem__, columns.origins),
            columns.steps,
            columns.positions,
            columns.draft_indexes,
            columns.draft_lengths,
            columns.times_s,
            map(_SOURCES.__getitem__, columns.sources.ljust(count, b"\0")),
            map(columns.rejected.get, range(count), repeat(())) if columns.rejected else repeat(()),
        )
    )


def forgiving(raw: Any, wanted: type[Any]) -> Any:
    """`raw` as `wanted`, without fields that it does not have or whose values it refuses.

    Raises `ValidationError` if a field is refused that has no default.
    """
    return msgspec.convert(_pruned(raw, wanted), prepared(wanted), str_keys=True)  # as JSON has them


def _pruned(raw: Any, wanted: Any) -> Any:
    """`raw` with only what can be converted; structs are pruned from the inside."""
    if get_origin(wanted) is tuple and isinstance(raw, list | tuple):
        return [_pruned(each, get_args(wanted)[0]) for each in raw]
    struct = _struct_of(wanted)
    if struct is None or not isinstance(raw, dict):
        return raw
    kept: dict[str, Any] = {}
    for item in fields(struct):
        if item.encode_name not in raw:
            continue
        try:
            value = _pruned(raw[item.encode_name], item.type)
            msgspec.convert(value, prepared(item.type), str_keys=True)
        except msgspec.ValidationError:
            if item.required:
                raise
            continue
        kept[item.encode_name] = value
    return kept


def _struct_of(wanted: Any) -> type[Struct] | None:
    """The struct that `wanted` is or may be (`X | None`)."""
    for each in (wanted, *get_args(wanted)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None
