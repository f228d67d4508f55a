"""Chats: all conversations of this run, in memory, and which one is open.

Ids of chats and turns are made here and are unique within the run. A chat without a question
is not listed: the window always has one such chat to start from.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import count

from msgspec.structs import replace

from app.session.conversation import Conversation, Turn


class Chats:
    """`now` gives the time a chat is created at."""

    def __init__(self, now: Callable[[], datetime] = datetime.now) -> None:
        self._now = now
        self._numbers = count(1)
        self._chats: dict[str, Conversation] = {}
        self._open_id = ""
        self.start()

    @property
    def open(self) -> Conversation:
        """The chat that is shown."""
        return self._chats[self._open_id]

    def listed(self) -> tuple[Conversation, ...]:
        """The chats that have a question, newest first."""
        return tuple(chat for chat in reversed(self._chats.values()) if chat.turns)

    def get(self, chat_id: str) -> Conversation:
        """The chat called `chat_id`. Raises `KeyError`."""
        return self._chats[chat_id]

    def keep(self, chat: Conversation) -> None:
        """Replace the chat of the same id."""
        self._chats[chat.id] = chat

    def select(self, chat_id: str) -> Conversation:
        """Open the chat called `chat_id`. Raises `KeyError`."""
        self._open_id = self._chats[chat_id].id
        return self.open

    def start(self, turns: tuple[Turn, ...] = ()) -> Conversation:
        """Open a new chat, which begins with `turns`. An unused one is used again."""
        for chat in self._chats.values():
            if not chat.turns:
                self._chats.pop(chat.id)
                break
        else:
            chat = Conversation(f"chat-{next(self._numbers)}", self._now())
        renewed = replace(chat, created=self._now(), turns=turns, context_used_tokens=0)
        self._chats[chat.id] = renewed
        self._open_id = chat.id
        return renewed

    def new_turn_id(self) -> str:
        """An id that no turn and no request had before."""
        return f"turn-{next(self._numbers)}"
