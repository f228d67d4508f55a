"""What was read of a chat's documents: each attachment with its place in the order that the worker
counts them, and the newest map of its reading.

Pure. The worker numbers attachments over all messages of a request from 0; a chat's questions
are all in each request, so their attachments in turn have these numbers.
"""

from __future__ import annotations

from msgspec import Struct

from app.session.chats.conversation import Conversation
from core.events import Attachment, ReadingMap


class Document(Struct, frozen=True):
    """An attachment of a chat. `reading` is the newest map that has passages of it, None if all was read.

    `answered_by` is the turn of the answer that it was read for.
    """

    turn_id: str
    index: int
    source: int
    attachment: Attachment
    reading: ReadingMap | None = None
    answered_by: str = ""


def documents(chat: Conversation) -> tuple[Document, ...]:
    """All of them, in order."""
    newest: dict[int, tuple[str, ReadingMap]] = {}
    for turn in chat.turns:
        if turn.answer.reading is not None:
            for source in {passage.source for passage in turn.answer.reading.passages}:
                newest[source] = (turn.id, turn.answer.reading)
    found: list[Document] = []
    for turn in chat.turns:
        for index, attachment in enumerate(turn.user.attachments):
            source = len(found)
            answered_by, reading = newest.get(source, ("", None))
            found.append(Document(turn.id, index, source, attachment, reading, answered_by))
    return tuple(found)
