"""TitleController: has the model give a chat a title while nothing is asked or written.

An answer ended, and for a moment nobody asks or types: then the open chat's title is asked for, if it has
none of its own. Whatever is asked meanwhile goes first: the worker drops the title by itself, and typing is
told to it. A chat that got no title that is fit for use keeps its question's first words.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from PySide6.QtCore import QObject, QTimer

from app.controllers.chat.chat_page import ChatPage
from app.controllers.views import Views
from app.session.chats.chats import Chats
from app.session.chats.titles import may_give_titles, messages_for_title, wants_title
from app.session.turn.intents import AskTables
from app.session.turn.link_state import Link, Phase
from app.store.preferences import PreferencesFile
from core.events import SuggestTitle, TitleSuggested, Typing
from core.events.text import well_formed

# Whoever goes on at once does so within it.
QUIET_MS = 1_500


class TitleController(QObject):
    """`link` says how the worker stands; `take` asks it."""

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
        self._asked: dict[str, str] = {}  # the chat of each request under way
        self._done: set[str] = set()  # chats that got one, or for which the model has none
        self._timer = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._timer.timeout.connect(self._ask)
        views.composer.draft_changed.connect(self._typed)

    def answer_finished(self) -> None:
        """A title may be asked for in a moment."""
        self._timer.start()

    def on_suggested(self, event: TitleSuggested) -> None:
        """The chat has its title, unless a person gave it one meanwhile."""
        chat_id = self._asked.pop(event.request, "")
        if not chat_id or event.interrupted:
            return
        self._done.add(chat_id)  # a person who takes it away wants the question's words
        if not event.title:
            return
        try:
            chat = self._chats.get(chat_id)
        except KeyError:  # it was erased meanwhile
            return
        if wants_title(chat) and self._wanted:
            self._chats.keep(chat.renamed(well_formed(event.title)))
            self._page.show_names()

    def forget(self) -> None:
        """The worker is gone, and with it what it was asked."""
        self._asked.clear()

    @property
    def _wanted(self) -> bool:
        return self._preferences.now.settings.writing.titles

    def _ask(self) -> None:
        link, chat = self._link(), self._chats.open
        quiet = link.phase is Phase.READY and not (self._composer.text or self._composer.attachments)
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
