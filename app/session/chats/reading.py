"""What was read of a chat's documents up to one of its answers: each attachment with its place in the order
that the worker counts them, and the map of its reading.

Pure. The worker numbers attachments over all messages of a request from 0; a chat's questions
are all in each request, so their attachments in turn have these numbers.
"""

from __future__ import annotations

from msgspec import Struct

from app.session.chats.conversation import Conversation
from core.events import Attachment, ReadingMap


class Document(Struct, frozen=True):
    """An attachment of a chat. `reading` is the map of what was read of it, None if that was all of it.

    A map without a passage of it says that nothing was read. `answered_by` is the turn of the answer that
    the map was made for; what earlier answers read is on it, too.
    """

    turn_id: str
    index: int
    source: int
    attachment: Attachment
    reading: ReadingMap | None = None
    answered_by: str = ""


def documents(chat: Conversation, upto: str = "") -> tuple[Document, ...]:
    """All of them, in order, as they were read when the answer of the turn `upto` was: the last if empty."""
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
            newest.clear()  # by then all of the prompt had been read
    found: list[Document] = []
    for turn in chat.turns:
        for index, attachment in enumerate(turn.user.attachments):
            source = len(found)
            answered_by, reading = newest.get(source, ("", None))
            found.append(Document(turn.id, index, source, attachment, reading, answered_by))
    return tuple(found)
