"""Packing: converts records to bytes and back; the tokens of an answer are columns in one msgpack blob.

Invariant: `unpack_*` of `pack_*` returns an equal record, floats to the last bit. A setting of an old
answer that Draftlight no longer has is dropped, so that the answer stays readable.

60,000 tokens unpack in a few tens of milliseconds because `map` builds the records from whole columns; a
record for each token would take several times the time and space.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from app.session.chats.conversation import Answer
from app.session.chats.presets import Override
from core.events import DraftSource, Message, Origin, Token

_ORIGINS: tuple[Origin, ...] = get_args(Origin)
_CODES = {origin: code for code, origin in enumerate(_ORIGINS)}
_SOURCES: tuple[DraftSource, ...] = get_args(DraftSource)
_SOURCE_CODES = {source: code for code, source in enumerate(_SOURCES)}


class TokenColumns(Struct, frozen=True, array_like=True):
    """All tokens of one answer, field by field. `requests` is one name if all have the same.

    `sources` ends with the last token that has one.
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


_columns_decoder = msgspec.msgpack.Decoder(TokenColumns)
_answer_decoder = msgspec.msgpack.Decoder(Answer)

pack = msgspec.msgpack.Encoder().encode
# These raise `ValueError` if the blob is damaged.
unpack_message = msgspec.msgpack.Decoder(Message).decode
unpack_messages = msgspec.msgpack.Decoder(tuple[Message, ...]).decode
unpack_overrides = msgspec.msgpack.Decoder(tuple[Override, ...]).decode


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
        )
    )


def pack_tokens(tokens: Sequence[Token]) -> bytes:
    return pack(columns_of(tokens))


def unpack_tokens(blob: bytes) -> tuple[Token, ...]:
    """Raises `ValueError` (or msgspec's error, which is one) if the blob is damaged."""
    return tokens_of(_columns_decoder.decode(blob))


def pack_answer(answer: Answer) -> bytes:
    """All of it but the tokens."""
    return pack(state_of(answer))


def unpack_answer(blob: bytes) -> Answer:
    """Without the tokens. Raises `ValueError` if the blob is damaged."""
    try:
        return _answer_decoder.decode(blob)
    except msgspec.ValidationError:
        answer: Answer = forgiving(msgspec.msgpack.decode(blob), Answer)
        return answer


def state_of(answer: Answer) -> Answer:
    """All of it but the tokens."""
    return replace(answer, tokens=())


def forgiving(raw: Any, wanted: type[Any]) -> Any:
    """`raw` as `wanted`, without the fields that it does not know or whose values it refuses.

    Raises `ValidationError` if a field is refused that has no default.
    """
    return msgspec.convert(_pruned(raw, wanted), wanted)


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
            msgspec.convert(value, item.type)
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
