"""MessageQueue: messages that wait for an answer, a model, tools or pages, and are sent in order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from PySide6.QtCore import QObject, QTimer

from app.chat import strings as texts
from app.controllers import strings
from app.controllers.answering import AnswerController, Running
from app.controllers.app import App
from app.controllers.chat import ChatController
from app.controllers.readiness import Readiness
from app.controllers.scanned_pages import ScannedPages
from app.controllers.tool_calls import ToolCalls
from app.panels.groups import described
from app.session.chats.conversation import NOTHING_WRITTEN, Conversation, QueuedMessage, merged
from app.session.chats.presets import differences
from app.session.status import why_unseen
from app.session.turn.link_state import Phase
from core.errors import RequestError
from core.events import Message
from core.settings import Settings


class MessageQueue(QObject):
    """`awaited` returns the name of the model that questions wait for; empty for none. `ask` sends a stored
    question, with its settings. `goes_first` is called before a message is sent, and returns whether it sent
    something else.
    """

    def __init__(
        self,
        app: App,
        chat: ChatController,
        answering: AnswerController,
        tools: ToolCalls,
        readiness: Readiness,
        pages: ScannedPages,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._views = app.views
        self._chats = app.chats
        self._chat = chat
        self._answering = answering
        self._tools = tools
        self._readiness = readiness
        self._pages = pages
        self.awaited: Callable[[], str] = lambda: ""
        self.ask: Callable[[Conversation, Running, Settings], None] = lambda chat, running, settings: None
        self.goes_first: Callable[[], bool] = lambda: False
        # Chats whose queue continues: the person sent something, and no answer since was stopped, failed or
        # withdrawn. After a start there are none, so that nothing is sent without its author.
        self._flowing: set[str] = set()
        self._held: dict[str, str] = {}  # by chat, why its queue does not go on
        chat.listing.listed.connect(self._hold_deleted)

    def add(self, message: Message) -> None:
        """Send `message` in the open chat as soon as that is possible. It is saved at once.

        An edited message stays in the composer: it is not a new one.
        """
        if self._readiness.edited:
            self._views.notice_bar.show_notice(strings.SEND_EDIT_LATER)
            return
        chat = self._chats.open
        if not chat.queued and not self._readiness.answers_here:
            self.resume(chat.id)
        queued = (*chat.queued, QueuedMessage(message, chat.overrides))
        self._chats.keep(chat.with_queued(queued).with_draft(NOTHING_WRITTEN))
        self._views.composer.clear()
        self.show()

    def edit(self, index: int, message: Message) -> None:
        """Take a message out of the queue into the composer, before the text that it has.

        While a sent message is edited there, it waits in the chat's draft, which returns after the edit.
        """
        if not self.remove(index, message):
            return
        composer, chat = self._views.composer, self._chats.open
        if self._readiness.edited:
            self._chats.keep(chat.with_draft(merged([message, chat.draft])))
        else:
            composer.set_message(merged([message, composer.draft]), composer.chips.sources)
            composer.edit.setFocus()

    def remove(self, index: int, message: Message) -> bool:
        """Remove a message from the queue of the open chat; False if it is not there any more."""
        chat = self._chats.open
        if [each.message for each in chat.queued[index : index + 1]] != [message]:
            return False
        self._chats.keep(chat.with_queued((*chat.queued[:index], *chat.queued[index + 1 :])))
        self.show()
        return True

    def resume(self, chat_id: str) -> None:
        """The queue of a chat continues: its author sent something."""
        self._flowing.add(chat_id)

    def ask_first(self, chat: Conversation) -> None:
        """Send the first message in the queue of `chat`, once its pages are drawn."""
        turn_id, next_one = self._chats.new_turn_id(), chat.queued[0]
        settings = self._settings_of(chat, next_one)
        after = partial(self._pages_drawn, chat.id)
        message = self._pages.complete(chat.messages_until(), next_one.message, settings, after)
        if message is None:
            self.resume(chat.id)
        else:
            asked = chat.ask(turn_id, message, self._chats.now()).with_queued(chat.queued[1:])
            self.ask(asked, Running(chat.id, turn_id, keeps_draft=True), settings)
        self.show()

    def send_next_soon(self) -> None:
        """Send the next queued message after all handlers of the current event have run."""
        QTimer.singleShot(0, self, self._send_next)

    def stop_waiting(self) -> None:
        """The wait for a model ended: send what waited for it."""
        self.show()
        self.send_next_soon()

    def hold_or_send_next(self, turn_id: str) -> None:
        """Hold the queue of a chat whose answer was stopped, failed or withdrawn, else send the next."""
        with suppress(KeyError, RequestError):
            chat_id = self._answering.ended_in
            last = self._chats.get(chat_id).turns[-1:]
            status = last[0].answer.status if last and last[0].id == turn_id else ""
            if status != "finished":
                self._hold(chat_id, texts.HELD_BY.get(status, texts.HELD_BY[""]))
        self.show()
        self.send_next_soon()

    def are_tools_ready(self, chat: Conversation) -> bool:
        """Whether the tools of a chat can be offered; if not, their servers are started, and then the queue
        continues.
        """
        if self._tools.are_ready(chat):
            return True
        self.resume(chat.id)
        self._tools.prepare(chat, self.send_next_soon)
        return False

    def show(self) -> None:
        """Show the queue of the open chat, and what it waits for."""
        chat, phase, awaited = self._chats.open, self._app.link.phase, self.awaited()
        held = chat.id not in self._flowing and not self._readiness.answers_here
        settings = self._chat.settings.of(chat)
        loads = phase in (Phase.STARTING, Phase.LOADING, Phase.NO_MODEL, Phase.DEAD)
        when = texts.QUEUED if self._readiness.answers_here else texts.QUEUED_FOR_OTHERS
        when = texts.queued_for(awaited) if awaited else texts.QUEUED_FOR_MODEL if loads else when
        when = texts.QUEUED_FOR_EDIT if self._readiness.edited and self._readiness.ready else when
        when = texts.QUEUED_FOR_PAGES if self._pages.busy and self._readiness.ready else when
        self._views.queue_list.show_messages(
            [each.message for each in chat.queued],
            self._held.get(chat.id, texts.HELD_SINCE_START) if held else when,
            [described(differences(self._settings_of(chat, each), settings)) for each in chat.queued],
            offered=held or bool(awaited),
            can_send=self._readiness.ready,
        )

    # ---- inside

    def _hold_deleted(self) -> None:
        """The queue of a deleted chat does not continue when the chat is restored, and its calls end."""
        for chat_id in [each for each in self._tools.calling if not self._chats.is_listed(each)]:
            self._tools.stop(chat_id)
        for chat_id in [each for each in self._flowing if not self._chats.is_listed(each)]:
            self._hold(chat_id, texts.HELD_DELETED)

    def _hold(self, chat_id: str, reason: str) -> None:
        """The queue of a chat waits for its author, for `reason`."""
        self._flowing.discard(chat_id)
        self._held[chat_id] = reason

    def _send_next(self) -> None:
        """Send the next queued message of the open chat, or else of another chat."""
        if not self._readiness.ready or self.awaited() or self.goes_first():
            return
        for chat_id in self._chats.queued():
            editing = self._readiness.edited and chat_id == self._chats.open.id
            if chat_id in self._flowing and not editing:
                with suppress(RequestError):  # unreadable
                    chat = self._chats.get(chat_id)
                    if self._tools.calls_in(chat) or not self.are_tools_ready(chat):
                        continue
                    if why_unseen(self._app.link.info, chat.queued[0].message):
                        self._hold(chat_id, texts.HELD_UNSEEN)
                        self.show()
                        continue
                    self.ask_first(chat)
                    return

    def _pages_drawn(self, chat_id: str, drawn: bool) -> None:
        """The pages of a queued message are drawn; if that was stopped, it is held."""
        if drawn:
            self.resume(chat_id)
        else:
            self._hold(chat_id, texts.HELD_PAGES)
        self.show()
        self.send_next_soon()

    def _settings_of(self, chat: Conversation, queued: QueuedMessage) -> Settings:
        return self._chat.settings.of(chat.with_overrides(queued.overrides))
