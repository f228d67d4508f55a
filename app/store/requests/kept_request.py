"""KeptRequest: one request of the local server with its answer, and how it is packed."""

from __future__ import annotations

import zlib

import msgspec
from msgspec import Struct

from app.store.packing import forgiving, pack_tokens, unpack_tokens
from core.events import Event, Finished, Generate, ReadingMap, Token
from core.serve.requests import ServedRequest

# Agents send all that went before with each request: text that packs to a quarter in no time.
_LEVEL = 1


class KeptRequest(Struct, frozen=True):
    """`record` is what a list says of it; `asked` is None if that was not there any more.

    Of what was heard, the tokens, how the prompt was read and the end are kept, in the order in which
    they came.
    """

    record: ServedRequest
    asked: Generate | None
    events: tuple[Event, ...]

    @property
    def finished(self) -> Finished | None:
        """How it ended; None if it failed or was cancelled while it waited."""
        return next((each for each in reversed(self.events) if isinstance(each, Finished)), None)


class _Content(Struct, frozen=True):
    asked: Generate | None
    tokens: bytes
    reading: ReadingMap | None
    finished: Finished | None


_encoder = msgspec.msgpack.Encoder()


def pack_record(record: ServedRequest) -> bytes:
    """What a list says of it."""
    return _encoder.encode(record)


def unpack_record(blob: bytes) -> ServedRequest:
    """Raises `ValueError` (or msgspec's error, which is one) if the blob is damaged."""
    record: ServedRequest = forgiving(msgspec.msgpack.decode(blob), ServedRequest)
    return record


def pack_content(request: KeptRequest) -> bytes:
    """All but the record."""
    reading = next((each for each in reversed(request.events) if isinstance(each, ReadingMap)), None)
    tokens = pack_tokens([each for each in request.events if isinstance(each, Token)])
    content = _Content(request.asked, tokens, reading, request.finished)
    return zlib.compress(_encoder.encode(content), _LEVEL)


def unpack_content(record: ServedRequest, blob: bytes) -> KeptRequest:
    """Of the request of `record`. Raises `ValueError` if the blob is damaged."""
    try:
        raw = msgspec.msgpack.decode(zlib.decompress(blob))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    # Settings come and go between versions; what was asked and answered stays readable.
    content: _Content = forgiving(raw, _Content)
    around = ((content.reading,), unpack_tokens(content.tokens), (content.finished,))
    events = tuple(each for some in around for each in some if each is not None)
    return KeptRequest(record, content.asked, events)
