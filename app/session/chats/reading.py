"""The documents of a chat, numbered as the worker numbers them, with their reading maps up to an answer.
Pure.

The worker numbers attachments over all messages of a request from 0. Each request has all questions of the
chat, so their attachments in order have these numbers.
"""

from __future__ import annotations

from msgspec import Struct

from app.session.chats.conversation import Conversation
from core.events import Attachment, ReadingMap


class Document(Struct, frozen=True):
    """An attachment of a chat. `reading` is its reading map, None if all of it was read.

    A map without a passage of this document means that none of it was read. `answered_by` is the turn for
    whose answer the map was made; it includes what earlier answers read.
    """

    turn_id: str
    index: int
    source: int
    attachment: Attachment
    reading: ReadingMap | None = None
    answered_by: str = ""


def documents(chat: Conversation, upto: str = "") -> tuple[Document, ...]:
    """Returns the documents in order, as read for the answer of the turn `upto` (empty: the last)."""
    newest: dict[int, tuple[str, ReadingMap]] = {}
    sources = 0
    for turn in chat.upto(upto) if upto else chat.turns:
        own = range(sources, sources + len(turn.user.attachments))
        sources = own.stop
        if turn.answer.reading is not None:
            on_map = {passage.source for passage in turn.answer.reading.passages}
            for source in on_map | set(own):
                newest[source] = (turn.id, turn.answer.reading)
        elif turn.answer.finished is not None and not turn.answer.finished.stats.skipped_tokens:
            newest.clear()  # the whole prompt has been read since
    found: list[Document] = []
    for turn in chat.turns:
        for index, attachment in enumerate(turn.user.attachments):
            source = len(found)
            answered_by, reading = newest.get(source, ("", None))
            found.append(Document(turn.id, index, source, attachment, reading, answered_by))
    return tuple(found)
