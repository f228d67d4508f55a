"""TitleController: requests a title for the open chat from the model while the window is idle.

It waits 1.5 s after an answer. The worker drops the title request when another request arrives, and on
`Typing`. A chat without a usable title keeps the first words of its question.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from PySide6.QtCore import QObject, QTimer

from app.controllers.page import ChatPage
from app.controllers.views import Views
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.session.turn import effects as fx
from app.session.turn.intents import AskTables
from app.session.turn.link_state import Link, Phase
from app.store.preferences import PreferencesFile
from core.events import Message, ModelInfo, SuggestTitle, TitleSuggested, Typing
from core.events.wire import well_formed

# Idle time before a title is requested.
QUIET_MS = 1_500


class TitleController(QObject):
    """`link` returns the state of the worker; `take` sends it a request."""

    def __init__(
        self,
        views: Views,
        chats: Chats,
        page: ChatPage,
        preferences: PreferencesFile,
        link: Callable[[], Link],
        take: Callable[[AskTables], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._composer = views.composer
        self._chats = chats
        self._page = page
        self._preferences = preferences
        self._link = link
        self._take = take
        self._numbers = count(1)
        self._asked: dict[str, str] = {}  # chat id by pending request
        self._done: set[str] = set()  # ids of the chats that a title was suggested for, or none
        self._timer = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._timer.timeout.connect(self._ask)
        views.composer.draft_changed.connect(self._typed)

    def answer_finished(self) -> None:
        """Request a title soon."""
        self._timer.start()

    def on_suggested(self, event: TitleSuggested) -> None:
        """Sets the title, unless a person has set one."""
        chat_id = self._asked.pop(event.request, "")
        if not chat_id or event.interrupted:
            return
        self._done.add(chat_id)  # not again if a person clears the title
        if not event.title:
            return
        try:
            chat = self._chats.get(chat_id)
        except KeyError:  # erased
            return
        if wants_title(chat) and self._wanted:
            self._chats.keep(chat.renamed(well_formed(event.title)))
            self._page.show_names()

    def on_worker_gone(self, effect: fx.RestartWorker | fx.WorkerDied) -> None:
        self._asked.clear()

    @property
    def _wanted(self) -> bool:
        return self._preferences.now.settings.writing.titles

    def _ask(self) -> None:
        link, chat = self._link(), self._chats.open
        ready = link.phase is Phase.READY and not link.released
        quiet = ready and not (self._composer.text or self._composer.attachments)
        if not (quiet and self._wanted and may_give_titles(link.info) and not self._asked):
            return
        if wants_title(chat) and chat.id not in self._done:
            request = f"title-{next(self._numbers)}"
            self._asked[request] = chat.id
            self._take(AskTables(SuggestTitle(request, messages_for_title(chat))))

    def _typed(self) -> None:
        self._timer.stop()
        if self._asked and self._link().phase is Phase.READY:
            self._take(AskTables(Typing()))


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
    return answer.status in ("finished", "stopped") and bool(answer.text.strip())


def messages_for_title(chat: Conversation) -> tuple[Message, ...]:
    """Returns the request for a title: the first question and its answer."""
    first = chat.turns[0]
    return (first.user, Message("assistant", first.answer.text))
