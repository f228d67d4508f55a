"""TitleController: requests a title for each answered chat from the model while the window is idle.

It waits 1.5 s after an answer; the open chat comes first, then those that were answered in the background.
The worker drops the title request when another request arrives, and typing cancels it. A chat without a
usable title keeps the first words of its question.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from PySide6.QtCore import QObject, QTimer

from app.controllers.app import App
from app.controllers.page import ChatPage
from app.session.chats.conversation import Conversation
from app.session.turn.link_state import Phase
from core.errors import RequestError
from core.events import Message, ModelInfo, SuggestTitle, TitleSuggested
from core.events.wire import well_formed

# Idle time before a title is requested.
QUIET_MS = 1_500


class TitleController(QObject):
    """Call `answer_finished()` after each answer, with the id of its chat."""

    def __init__(self, app: App, page: ChatPage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._page = page
        self._asking: asyncio.Task[None] | None = None
        self._waiting: dict[str, None] = {}  # ids of the answered chats, in order
        self._done: set[str] = set()  # ids of the chats that a title was suggested for, or none
        self._timer = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._timer.timeout.connect(self._ask)
        app.views.composer.draft_changed.connect(self._typed)

    @property
    def is_asking(self) -> bool:
        """Whether a title is requested."""
        return self._asking is not None and not self._asking.done()

    def answer_finished(self, chat_id: str) -> None:
        """Request a title for that chat soon."""
        self._waiting[chat_id] = None
        self._timer.start()

    @property
    def _wanted(self) -> bool:
        return self._app.preferences.now.settings.writing.titles

    def _ask(self) -> None:
        link, composer = self._app.link, self._app.views.composer
        ready = link.phase is Phase.READY and not link.released
        quiet = ready and composer.is_empty
        if not (quiet and self._wanted and may_give_titles(link.info)):
            return
        if not self.is_asking and (chat := self._next()):
            self._asking = self._app.worker.begin(self._give_title(chat))

    def _next(self) -> Conversation | None:
        """The open chat or another answered one that wants a title; drops those that want none."""
        opened = self._app.chats.open.id
        for chat_id in sorted(self._waiting, key=lambda chat_id: chat_id != opened):
            with suppress(KeyError, RequestError):  # erased, or unreadable
                chat = self._app.chats.get(chat_id)
                if wants_title(chat) and chat_id not in self._done:
                    return chat
            del self._waiting[chat_id]
        return None

    async def _give_title(self, chat: Conversation) -> None:
        """Sets the title of `chat`, unless a person has set one meanwhile."""
        command = SuggestTitle("", messages_for_title(chat))
        suggested = await self._app.worker.ask(command, TitleSuggested)
        if suggested.interrupted:
            self._timer.start()  # again; what interrupted it may be no answer
            return
        self._done.add(chat.id)  # not again if a person clears the title
        self._timer.start()  # for the next chat
        if not suggested.title:
            return
        try:
            chat = self._app.chats.get(chat.id)
        except KeyError:  # erased
            return
        if wants_title(chat) and self._wanted:
            self._app.chats.keep(chat.renamed(well_formed(suggested.title)))
            self._page.show_names()

    def _typed(self) -> None:
        self._timer.start()  # later, once nothing is written: another chat's draft is shown in this way, too
        if self._asking is not None:
            self._asking.cancel()


# For ten real questions the starter model (135 million parameters) found no title better than their first
# words: it answers again, or repeats the question. Instruct models are distinguished by size, the only
# available fact.
LEAST_PARAMETERS = 1_000_000_000


def may_give_titles(info: ModelInfo | None) -> bool:
    """Whether the model is large enough."""
    return info is not None and info.parameters >= LEAST_PARAMETERS


def wants_title(chat: Conversation) -> bool:
    """Whether the chat's title is its question's first words and an answer ended normally."""
    if chat.name or chat.deleted or not chat.turns:
        return False
    answer = chat.turns[0].answer
    return answer.status in ("finished", "stopped") and bool(answer.words.strip())


def messages_for_title(chat: Conversation) -> tuple[Message, ...]:
    """Returns the request for a title: the first question and its answer."""
    first = chat.turns[0]
    return (first.user, Message("assistant", first.answer.words))
