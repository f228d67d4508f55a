"""ChatArchive: the storage of chats, as the session sees it.

`Chats` holds the open conversations and loads the others from an archive: `app.store.library.Library`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from app.session.chats.conversation import Conversation
from app.session.chats.projects import ProjectArchive


class Summary(Struct, frozen=True):
    """A chat without its turns, for the sidebar. `deleted` is the time of its deletion. `queued` counts the
    messages that wait to be sent. `project` is the id of its project."""

    id: str
    title: str
    when: datetime
    turns: int
    pinned: bool = False
    deleted: datetime | None = None
    queued: int = 0
    project: str = ""

    @property
    def asked(self) -> bool:
        """Whether it has a question, sent or queued."""
        return bool(self.turns or self.queued)


class Hit(Struct, frozen=True):
    """A chat that a search found. `turn_id` and `passage` are empty if only the title matched.

    `marks` are end-exclusive spans of the passage, in characters, that match.
    """

    chat_id: str
    turn_id: str = ""
    passage: str = ""
    marks: tuple[tuple[int, int], ...] = ()


class ChatArchive(ProjectArchive, Protocol):
    """All calls return at once. Saving happens later; `load` returns the newest saved state."""

    def summaries(self) -> Sequence[Summary]: ...

    def load(self, chat_id: str) -> Conversation:
        """Raises `KeyError` for an unknown id."""
        ...

    def save(self, chat: Conversation) -> None: ...

    def rewrite(self, chat: Conversation, before: Conversation) -> None:
        """Saves `chat` and erases its earlier states, in all copies too.

        The images that only its state `before` has stay in memory: saving a chat with them undoes that.
        """
        ...

    def purge(self, chat_id: str) -> None: ...

    def search(self, query: str) -> Sequence[Hit]:
        """Returns the chats that have all words of `query`, best first, each once, without deleted ones."""
        ...


def summary_of(chat: Conversation) -> Summary:
    return Summary(
        chat.id,
        chat.title,
        chat.changed,
        len(chat.turns),
        chat.pinned,
        chat.deleted,
        len(chat.queued),
        chat.project,
    )


def passage_of(text: str, words: Sequence[str], around: int = 40) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Returns one line of `text` around the first match, and the spans of all matches in it."""
    line = " ".join(text.split())
    low = _lower(line)
    words = [_lower(word) for word in words]
    places = [place for word in words if (place := low.find(word)) >= 0]
    first = min(places, default=0)
    begin, end = max(0, first - around), first + 3 * around
    if begin and (space := line.rfind(" ", 0, first)) >= begin:
        begin = line.find(" ", begin, space + 1) + 1 or begin
    head, tail = "…" if begin else "", "…" if end < len(line) else ""
    piece = low[begin:end]
    marks = []
    for word in words:
        place = piece.find(word)
        while place >= 0 and word:
            marks.append((place + len(head), place + len(head) + len(word)))
            place = piece.find(word, place + len(word))
    return head + line[begin:end] + tail, tuple(sorted(set(marks)))


def _lower(text: str) -> str:
    """Returns `text` in lower case and of the same length: the lower case of “İ” has two characters."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(letter.lower()[0] for letter in text)
