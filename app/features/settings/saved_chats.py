"""SavedChatsController: tells the worker which chat is open or erased, and what is saved on disk."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.session.turn.intents import AskTables
from app.session.turn.link_state import Link, Phase
from core.events import EraseChats, ListSavedChats, OpenChat, SavedChatsListed
from core.settings import Prefill

_SPOKEN = frozenset(Phase) - {Phase.STARTING, Phase.DEAD, Phase.CLOSED}


class SavedChatsController(QObject):
    """`take` steps the machine; `open_chat` returns the id and the settings of the open chat.

    The id is empty for a chat without a question and for one that is not saved. What is erased while there
    is no worker is erased by the next one.
    """

    listed = Signal(object)  # SavedChatsListed, or None while there is no worker

    def __init__(
        self,
        take: Callable[[AskTables], None],
        open_chat: Callable[[], tuple[str, Prefill]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._take = take
        self._open_chat = open_chat
        self._spoken = False
        self._seen = ""
        self._erasing: list[str] = []
        self.now: SavedChatsListed | None = None

    def follow(self, link: Link) -> None:
        """Called after each change of the link."""
        before, self._spoken = self._spoken, link.phase in _SPOKEN
        if self._spoken and not before:
            self._seen = ""
            self._send_erasures()
            self.show_open()
        elif before and not self._spoken:
            self.on_listed(None)

    def show_open(self) -> None:
        """The open chat changed."""
        chat, prefill = self._open_chat()
        if self._spoken and chat != self._seen:
            self._seen = chat
            self._take(AskTables(OpenChat(chat, prefill)))

    def erase(self, chat_id: str) -> None:
        """Erase what is saved of a chat that is deleted for good."""
        self._erasing.append(chat_id)
        if self._spoken:
            self._send_erasures()

    def erase_all(self) -> None:
        """Erase all that is saved; chats in memory are saved again when they are used again."""
        if self._spoken:
            self._take(AskTables(EraseChats(everything=True)))

    def refresh(self) -> None:
        """Ask for the size on disk."""
        if self._spoken:
            self._take(AskTables(ListSavedChats()))

    def on_listed(self, event: SavedChatsListed | None) -> None:
        """The size on disk; None: unknown."""
        self.now = event
        self.listed.emit(event)

    def _send_erasures(self) -> None:
        if self._erasing:
            chats, self._erasing = tuple(dict.fromkeys(self._erasing)), []
            self._take(AskTables(EraseChats(chats)))
