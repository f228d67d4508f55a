"""AskController: what a person asks of the model in the open chat: anew, again, in other words, further."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

from app.controllers.chat import strings
from app.controllers.chat.answer import AnswerController, Running
from app.controllers.chat.chat import ChatController
from app.controllers.chat.chat_page import ChatPage
from app.controllers.chat.editing import Editing
from app.controllers.trouble import TroubleController
from app.controllers.views import Views
from app.session.chats.chats import Chats
from app.session.chats.conversation import NOTHING_WRITTEN, AskedOf, Conversation, Turn
from app.session.turn.intents import Stop, Submit
from app.session.turn.link_state import Link, Phase
from app.session.worker.trouble import Until
from app.store.preferences import PreferencesFile
from core.events import Message
from core.settings import Settings, assign, permitted
from core.settings.request import drawn, drawn_again


class AskController(QObject):
    """`link` says how the worker and its turn stand; `handle` takes what is wanted of them."""

    def __init__(
        self,
        views: Views,
        chats: Chats,
        chat: ChatController,
        page: ChatPage,
        answering: AnswerController,
        preferences: PreferencesFile,
        trouble: TroubleController,
        link: Callable[[], Link],
        handle: Callable[[Submit | Stop], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._chat = chat
        self._page = page
        self._answering = answering
        self._editing = Editing(views, chats, page, self)
        self._preferences = preferences
        self._trouble = trouble
        self._handle = handle
        self._link = link
        self._was_ready = False
        page.chat_shown.connect(self.offer_to_go_on)
        page.chat_shown.connect(self._show_queue)
        page.chat_shown.connect(self._send_next_soon)
        answering.answer_finished.connect(lambda turn_id: self._send_next_soon())
        answering.repeating.connect(self._stop_repeating)
        self._wire()

    @property
    def answers_here(self) -> bool:
        """Whether the open chat is being answered."""
        return self._answering.running is not None and not self._answering.elsewhere

    @property
    def is_editing(self) -> bool:
        """Whether the composer holds a message that was sent before."""
        return bool(self._editing.turn_id)

    def offer_to_go_on(self) -> None:
        """Below the last answer, if the model could write on there."""
        self._views.transcript.offer_to_go_on(self.unended())

    def submit(self, message: Message) -> None:
        """Ask `message` in the open chat, or instead of the message that is being edited."""
        if not self._ready:
            return
        if edited := self._editing.finish():
            self._ask_again(edited, message)
            return
        turn_id, chat = self._chats.new_turn_id(), self._chats.open
        asked = chat.ask(turn_id, message, self._chats.now()).with_draft(NOTHING_WRITTEN)
        self._ask(asked, Running(chat.id, turn_id))

    def queue(self, message: Message) -> None:
        """Send `message` as soon as the answer under way in the open chat has ended.

        It is saved at once, in place of the draft that it was.
        """
        chat = self._chats.open
        self._chats.keep(chat.with_queued((*chat.queued, message)).with_draft(NOTHING_WRITTEN))
        self._views.composer.clear()
        self._show_queue()

    def take_back(self) -> None:
        """Removes the message that was queued last; it goes back into the composer if that is empty."""
        chat, composer = self._chats.open, self._views.composer
        if chat.queued:
            self._chats.keep(chat.with_queued(chat.queued[:-1]))
            if not (composer.text or composer.attachments):
                composer.set_message(chat.queued[-1])
            self._show_queue()

    def send_queued(self) -> None:
        """Send the next queued message of the open chat, whatever became of the last answer."""
        if self._ready and self._chats.open.queued and not self._editing.turn_id:
            self._ask_queued(self._chats.open)

    def follow(self) -> None:
        """The worker or its turn has another state."""
        was_ready, self._was_ready = self._was_ready, self._ready
        if self._ready and not was_ready:
            self._send_next_soon()
        self._show_queue()
        self.offer_to_go_on()

    def regenerate(self, turn_id: str = "", settings: Settings | None = None) -> None:
        """Answer a question of the open chat again, as a new version: the last one if `turn_id` is empty.

        An earlier one continues in a new chat, so that what came after it is not lost.
        `settings` are those in force if None.
        """
        if self._ready and self._chats.open.turns:
            self._ask_again(turn_id or self._chats.open.turns[-1].id, None, settings)

    def go_on(self, turn_id: str) -> None:
        """Let the model write on where the open chat's last answer was stopped.

        Its settings are those of the answer, so that it is what it would have been.
        """
        if not self._ready or turn_id != self.unended():
            return
        chat = self._chats.open
        going = chat.go_on(turn_id)
        finished = going.turn(turn_id).answer.finished
        assert finished
        last = chat.turns[-1].answer.tokens[-1]
        self._ask(going, Running(chat.id, turn_id, chat.turns, last), finished.effective.settings)
        self._views.composer.edit.setFocus()

    def show_version(self, turn_id: str, place: int) -> None:
        """Show another version of a turn; the model goes by what is shown."""
        if self.answers_here:
            return
        chat = self._chats.open.show_version(turn_id, place)
        self._chats.keep(chat)
        self._editing.cancel()
        self._page.show_version(turn_id, next(turn for turn in chat.turns if turn_id in _ids(turn)))
        self.offer_to_go_on()

    def edit(self, turn_id: str = "") -> None:
        """Put a message of the open chat, the last one if `turn_id` is empty, into the composer."""
        chat = self._chats.open
        if chat.turns and not self.answers_here:
            self._editing.begin(turn_id or chat.turns[-1].id)

    def cancel_edit(self) -> None:
        """What is edited stays as it was."""
        self._editing.cancel()

    def read_everything(self, turn_id: str) -> None:
        """Answer again, and read all of the prompt for it; at once if it is just being read."""
        settings = assign(self._views.inspector.settings, "prefill.mode", "off")
        running = self._answering.running
        if running is None:
            self.regenerate(turn_id, settings)
        elif running.turn_id == turn_id:
            self._answering.stop_for(lambda: self.regenerate("", settings))
            self.stop()

    def stop(self) -> None:
        """End the running answer, if there is one."""
        if self._link().busy:
            self._handle(Stop())

    # ---- inside

    def _send_next_soon(self) -> None:
        """Whoever tells of the end has first to be done with it."""
        if self._chats.queued():
            QTimer.singleShot(0, self, self._send_next)

    def _send_next(self) -> None:
        """Of the open chat first, then of any other one."""
        if not self._ready:
            return
        for chat_id in self._chats.queued():
            chat = self._chats.get(chat_id)
            editing = self._editing.turn_id and chat_id == self._chats.open.id
            if not (editing or _went_wrong(chat)):
                self._ask_queued(chat)
                return

    def _ask_queued(self, chat: Conversation) -> None:
        turn_id = self._chats.new_turn_id()
        asked = chat.ask(turn_id, chat.queued[0], self._chats.now()).with_queued(chat.queued[1:])
        self._ask(asked, Running(chat.id, turn_id, keeps_draft=True), self._chat.settings.of(chat))
        self._show_queue()

    def _show_queue(self) -> None:
        chat = self._chats.open
        self._views.queue_bar.show_messages(chat.queued, _went_wrong(chat) and not self.answers_here)
        self._views.queue_bar.send_button.setEnabled(self._ready)

    def _stop_repeating(self) -> None:
        if self._preferences.now.settings.writing.stop_repeating and self._link().busy:
            self._answering.note(strings.REPEATING_NOTE)
            self.stop()

    @property
    def _ready(self) -> bool:
        return self._link().phase is Phase.READY

    def _ask(self, chat: Conversation, running: Running, settings: Settings | None = None) -> None:
        settings = settings or self._views.inspector.settings
        settings = drawn(permitted(settings, self._preferences.now.settings.allowed))
        chat = chat.with_archived(None)  # it is in use again, and has to be found in the list
        if info := self._link().info:
            chat = chat.asking(running.turn_id, AskedOf(info.name, settings))
        self._chats.keep(chat)
        self._answering.start(running)
        self._trouble.end(Until.ASKED)
        if running.after:
            ids = tuple(token.id for token in chat.turn(running.turn_id).answer.tokens)
            asked = chat.messages_before(running.turn_id)
            turn_id = self._chats.new_turn_id()
            self._handle(Submit(turn_id, asked, settings, continuation=ids, chat=chat.id))
        else:
            self._handle(Submit(running.turn_id, chat.messages_for_request(), settings, chat=chat.id))

    def _ask_again(self, turn_id: str, message: Message | None, settings: Settings | None = None) -> None:
        """Ask an earlier question anew, in other words if there are any."""
        chat = self._chats.open
        if turn_id != chat.turns[-1].id:
            chat = self._chat.branch(turn_id)
        new_id = self._chats.new_turn_id()
        settings = drawn_again(settings or self._views.inspector.settings)
        asked = chat.ask_again(new_id, message, self._chats.now())
        self._ask(asked, Running(chat.id, new_id, chat.turns), settings)

    def unended(self) -> str:
        """The turn of the open chat whose answer the model could write on; empty if there is none."""
        last, info = self._chats.open.turns[-1:], self._link().info
        return last[0].id if last and info and last[0].answer.can_go_on(info.name) else ""

    def _wire(self) -> None:
        views = self._views
        views.composer.message_submitted.connect(self.submit)
        views.composer.message_queued.connect(self.queue)
        views.queue_bar.remove_requested.connect(self.take_back)
        views.queue_bar.send_requested.connect(self.send_queued)
        views.composer.stop_requested.connect(self.stop)
        views.composer.edit.edit_last_requested.connect(self._edit_last_by_key)
        views.first_page.example_chosen.connect(self._take_example)
        views.transcript.regenerate_requested.connect(self.regenerate)
        views.transcript.everything_requested.connect(self.read_everything)
        views.transcript.more_requested.connect(self.go_on)
        views.transcript.stop_requested.connect(self.stop)
        views.transcript.edit_requested.connect(self.edit)
        views.transcript.version_requested.connect(self.show_version)
        self._chat.listing.stop_requested.connect(self.stop)

    def _edit_last_by_key(self) -> None:
        if not self._views.composer.attachments and not self._editing.turn_id:
            self.edit()

    def _take_example(self, message: Message) -> None:
        self._views.composer.set_message(message)
        self._views.composer.edit.setFocus()


def _went_wrong(chat: Conversation) -> bool:
    """Whether the last answer broke off: that is to be seen before anything else is sent."""
    return bool(chat.turns) and chat.turns[-1].answer.status in ("cut_off", "failed")


def _ids(turn: Turn) -> set[str]:
    return {version.id for version in turn.versions}
