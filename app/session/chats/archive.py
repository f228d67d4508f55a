"""ChatArchive: where chats are kept between openings, as the session sees it, and one that forgets.

`Chats` holds what is open and asks an archive for the rest. The lasting one is `app.store.library`;
`MemoryArchive` serves runs that shall leave nothing behind, and a store that cannot be opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from app.session.chats.conversation import Conversation


class Summary(Struct, frozen=True):
    """A chat without its turns: what the sidebar lists. `deleted` says since when it waits for its end,
    `archived` since when it is kept out of the list. `queued` counts the messages that wait to be sent."""

    id: str
    title: str
    when: datetime
    turns: int
    pinned: bool = False
    deleted: datetime | None = None
    archived: datetime | None = None
    queued: int = 0


class Hit(Struct, frozen=True):
    """A chat that a search found. `turn_id` and `passage` are empty if only the title matched.

    `marks` are end-exclusive spans of the passage, in characters, that match.
    """

    chat_id: str
    turn_id: str = ""
    passage: str = ""
    marks: tuple[tuple[int, int], ...] = ()


class ChatArchive(Protocol):
    """All calls return at once; saving happens when it happens, `load` knows what is on its way."""

    def summaries(self) -> Sequence[Summary]: ...

    def load(self, chat_id: str) -> Conversation:
        """Raises `KeyError` if there is no such chat."""
        ...

    def save(self, chat: Conversation) -> None: ...

    def purge(self, chat_id: str) -> None: ...

    def search(self, query: str) -> Sequence[Hit]:
        """Chats that match all words of `query`, best first, each once. Deleted ones are left out."""
        ...


def summary_of(chat: Conversation) -> Summary:
    """The head of a chat."""
    return Summary(
        chat.id,
        chat.title,
        chat.changed,
        len(chat.turns),
        chat.pinned,
        chat.deleted,
        chat.archived,
        len(chat.queued),
    )


class MemoryArchive:
    """Keeps chats for this run only."""

    def __init__(self) -> None:
        self._chats: dict[str, Conversation] = {}

    def summaries(self) -> Sequence[Summary]:
        return [summary_of(chat) for chat in self._chats.values()]

    def load(self, chat_id: str) -> Conversation:
        return self._chats[chat_id]

    def save(self, chat: Conversation) -> None:
        self._chats[chat.id] = chat

    def purge(self, chat_id: str) -> None:
        self._chats.pop(chat_id, None)

    def search(self, query: str) -> Sequence[Hit]:
        words = query.split()
        living = (chat for chat in self._chats.values() if chat.deleted is None and chat.turns)
        hits = (find_in(chat, words) for chat in living)
        return [hit for hit in hits if hit] if words else []


def find_in(chat: Conversation, words: Sequence[str]) -> Hit | None:
    """The first turn of `chat` that has all `words`, or the chat alone if its title has them."""
    if all(word.casefold() in chat.title.casefold() for word in words):
        return Hit(chat.id)
    for turn in chat.turns:
        names = " ".join(attachment.name for attachment in turn.user.attachments)
        texts = (turn.user.content, turn.answer.text, names)
        whole = " ".join(texts).casefold()
        if all(word.casefold() in whole for word in words):
            best = max(texts, key=lambda text: sum(word.casefold() in text.casefold() for word in words))
            return Hit(chat.id, turn.id, *passage_of(best, words))
    return None


def passage_of(text: str, words: Sequence[str], around: int = 40) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The piece of `text` about the first match, in one line, and where all matches in it are."""
    line = " ".join(text.split())
    low = line.lower()
    if len(low) != len(line):  # a letter whose small form is longer: places would not fit
        low = line
    places = [place for word in words if (place := low.find(word.lower())) >= 0]
    first = min(places, default=0)
    begin, end = max(0, first - around), first + 3 * around
    if begin and (space := line.rfind(" ", 0, first)) >= begin:
        begin = line.find(" ", begin, space + 1) + 1 or begin
    head, tail = "…" if begin else "", "…" if end < len(line) else ""
    piece = low[begin:end]
    marks = []
    for word in words:
        place = piece.find(word.lower())
        while place >= 0 and word:
            marks.append((place + len(head), place + len(head) + len(word)))
            place = piece.find(word.lower(), place + len(word))
    return head + line[begin:end] + tail, tuple(sorted(set(marks)))
