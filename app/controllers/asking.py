"""AskController: carries out intents in the open chat, and asks: send, regenerate, continue, stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from msgspec.structs import replace as struct_replace
from PySide6.QtCore import QObject

from app.chat.intents import (
    AllowCall,
    Branch,
    CancelEdit,
    ChooseTools,
    ContinueAnswer,
    ContinueFrom,
    DeleteMessage,
    EditAnswer,
    EditMessage,
    EditQueued,
    Intent,
    MoveToNewChat,
    OpenAttachment,
    OpenPassage,
    OpenPlace,
    OpenSource,
    QueueMessage,
    QuoteText,
    ReadEverything,
    RefuseCall,
    Regenerate,
    RemoveQueued,
    SaveAnswer,
    SelectAnswer,
    SendMessage,
    SendQueued,
    ShowVersion,
    StopAnswer,
    UseExample,
)
from app.controllers import strings
from app.controllers.answering import AnswerController, Running
from app.controllers.app import App
from app.controllers.chat import ChatController
from app.controllers.chat_edits import ChatEdits
from app.controllers.message_queue import MessageQueue
from app.controllers.page import ChatPage
from app.controllers.readiness import Readiness
from app.controllers.scanned_pages import ScannedPages
from app.controllers.tool_calls import ToolCalls, with_tools
from app.session.chats.conversation import (
    NOTHING_WRITTEN,
    AskedOf,
    Conversation,
    QueuedMessage,
    Turn,
    merged,
    uncounted,
)
from app.session.tools import loop
from app.session.trouble import Until
from core.errors import GrammarError, RequestError
from core.events import Failed, Generate, Message
from core.settings import Settings, assign, permitted
from core.settings.request import drawn_again

_VARIED_TEMPERATURE = 0.8
# More than texts have on average, so that one more attempt is enough.
_CHARACTERS_A_TOKEN = 5


class AskController(QObject):
    """`awaited` returns the name of the model that questions wait for; empty for none. `queue` has the
    messages that wait, `edits` changes what was answered.

    While a sent message is edited in the composer, the draft is kept in the stored chat.
    """

    def __init__(
        self,
        app: App,
        chat: ChatController,
        page: ChatPage,
        answering: AnswerController,
        tools: ToolCalls,
        awaited: Callable[[], str],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._views = views = app.views
        self._chats = app.chats
        self._chat = chat
        self._page = page
        self._answering = answering
        self._tools = tools
        self._was_ready = False
        self._answered: dict[str, str] = {}  # by chat, the answer whose calls have ended
        self._pages = ScannedPages(app, self)
        self.readiness = readiness = Readiness(app, page, answering, tools)
        self.edits = ChatEdits(app, page, readiness, self._end_edits)
        self.queue = MessageQueue(app, chat, answering, tools, readiness, self._pages, self)
        self.queue.awaited, self.queue.ask, self.queue.goes_first = awaited, self._ask, self._proceed
        tools.proceed = self._proceed_soon
        answering.ask_otherwise = self._ask_otherwise
        page.chat_shown.connect(self._on_chat_shown)
        answering.answer_finished.connect(self._on_answer_finished)
        chat.listing.stop_requested.connect(readiness.stop_running)
        for view in (views.transcript, views.composer, views.editing_bar, views.queue_list, views.first_page):
            view.intent.connect(self.on_intent)

    def on_intent(self, intent: Intent) -> None:
        """Carry out an intent. Those about other windows are handled by the owners of these windows."""
        composer, documents = self._views.composer, self._chat.documents
        match intent:
            case SendMessage(message):
                self.submit(message)
            case QueueMessage(message):
                self.queue.add(message)
            case SendQueued():
                self.send_queued()
            case EditQueued(index, message):
                self.queue.edit(index, message)
            case RemoveQueued(index, message):
                self.queue.remove(index, message)
            case StopAnswer():
                self.stop()
            case AllowCall():
                self._tools.allow(intent)
            case RefuseCall():
                self._tools.refuse(intent)
            case ChooseTools(tools):
                self._chats.keep(self._chats.open.with_tools(tools))
                self._tools.prepare(self._chats.open, self._tools.show)
            case Regenerate(turn_id):
                self.regenerate(turn_id)
            case ReadEverything(turn_id):
                self.read_everything(turn_id)
            case ContinueAnswer():
                self.continue_answer()
            case EditAnswer(turn_id):
                self.edits.edit_answer(turn_id)
            case SaveAnswer(turn_id, edits):
                self.edits.save_answer(turn_id, edits)
            case ContinueFrom(turn_id, end):
                self.continue_from(turn_id, end)
            case ShowVersion(turn_id, index):
                self.edits.show_version(turn_id, index)
            case Branch(turn_id):
                self._chat.branch(turn_id)
                composer.edit.setFocus()
            case DeleteMessage(turn_id):
                self.edits.delete_message(turn_id)
            case EditMessage(turn_id):
                if turn_id or not self.readiness.edited:
                    self.edit(turn_id)
            case CancelEdit():
                self.cancel_edit()
            case QuoteText(text):
                composer.quote(text)
            case SelectAnswer(turn_id):
                documents.select_answer(turn_id)
            case OpenAttachment(turn_id, index):
                documents.open_attachment(turn_id, index)
            case OpenPassage(passage):
                documents.open_passage(passage)
            case OpenSource(turn_id, source):
                documents.open_source(turn_id, source)
            case OpenPlace(turn_id, source, place):
                documents.open_place(turn_id, source, place)
            case MoveToNewChat():
                self._chat.move_to_new()
            case UseExample(message):
                composer.set_message(merged([composer.draft, message]), composer.chips.sources)
                composer.edit.setFocus()

    def submit(self, message: Message) -> None:
        """Send `message` in the open chat, or in place of the message that is being edited."""
        if not self.readiness.may_ask(message):
            return
        self._views.transcript.save_edit()
        settings = self._views.inspector.settings
        if edited := self.readiness.edited:
            chat = self._chats.open
            again = partial(self._submit_edit, chat.id, edited, message)
            if self._starts_tools(partial(again, True)):
                return
            if complete := self._pages.complete(chat.messages_until(edited), message, settings, again):
                self.cancel_edit()
                self._ask_again(edited, complete)
            return
        chat = self._chats.open
        if self.queue.awaited() or self._tools.calls_in(chat) or not self.queue.are_tools_ready(chat):
            self.queue.add(message)
            return
        complete = self._pages.complete(chat.messages_until(), message, settings, None)
        if complete is None:  # it waits at the head of the queue while its pages are drawn
            self._chats.keep(chat.with_queued((QueuedMessage(message, chat.overrides), *chat.queued)))
            self._chats.keep(self._chats.open.with_draft(NOTHING_WRITTEN))
            self._views.composer.clear()
            self.queue.ask_first(self._chats.open)
            return
        turn_id = self._chats.new_turn_id()
        asked = chat.ask(turn_id, complete, self._chats.now()).with_draft(NOTHING_WRITTEN)
        self._ask(asked, Running(chat.id, turn_id))

    def _submit_edit(self, chat_id: str, turn_id: str, message: Message, drawn: bool) -> None:
        """Send an edited message whose pages are drawn, unless the person has continued elsewhere."""
        is_here = chat_id == self._chats.open.id and turn_id == self.readiness.edited
        written = self._views.composer.message()
        if drawn and is_here and uncounted(written) == uncounted(message):
            self.submit(written)

    def close(self) -> None:
        """End what draws pages."""
        self._pages.close()

    def send_queued(self) -> None:
        """Send the next queued message of the open chat, and then the others."""
        queued = self._chats.open.queued
        if queued and self.readiness.may_ask(queued[0].message):
            self._end_edits()
            self.queue.ask_first(self._chats.open)

    def follow(self) -> None:
        """The state of the worker or of its turn changed."""
        was_ready, self._was_ready = self._was_ready, self.readiness.ready
        if self.readiness.ready and not was_ready:
            self.queue.send_next_soon()
        if self.readiness.ready or self.readiness.answers_here:
            self.readiness.end_refusal()
        self.queue.show()
        self._views.transcript.offer_continue(self.readiness.continuable)

    def regenerate(self, turn_id: str = "", settings: Settings | None = None) -> None:
        """Answer a question of the open chat again, as a new version: the last one if `turn_id` is empty.

        An earlier one continues in a new chat, so that the later turns are not lost. `settings` are the
        current ones if None.
        """
        chat = self._chats.open
        if not chat.turns:
            return
        asked = chat.turn(turn_id or chat.turns[-1].id)
        if not self.readiness.may_ask(asked.user):
            return
        again = partial(self._regenerate_drawn, chat.id, asked.id, settings)
        if self._starts_tools(partial(again, True)):
            return
        with_settings = settings or self._views.inspector.settings
        if complete := self._pages.complete(chat.messages_until(asked.id), asked.user, with_settings, again):
            changed = None if complete == asked.user else complete
            self._ask_again(self._end_edits(turn_id), changed, settings)

    def _regenerate_drawn(self, chat_id: str, turn_id: str, settings: Settings | None, drawn: bool) -> None:
        """Answer a question again whose pages are drawn, unless another chat is open."""
        if drawn and chat_id == self._chats.open.id and self._chats.open.has(turn_id):
            self.regenerate(turn_id, settings)

    def continue_answer(self) -> None:
        """Continue the last answer where it was stopped, with the settings that it was begun with; with the
        current ones if a person edited it.
        """
        turns = self._chats.open.turns
        if not self.readiness.may_ask(turns[-1].user if turns else None):
            return
        if self._starts_tools(partial(self._in_chat, self._chats.open.id, self.continue_answer)):
            return
        self._end_edits()
        info, turn_id, chat = self._app.link.info, self.readiness.continuable, self._chats.open
        if info is None or not turn_id:
            return
        settings = drawn_again(self._views.inspector.settings)
        continued = chat.go_on(turn_id, info.name)
        finished = continued.turn(turn_id).answer.finished
        if finished and chat.turn(turn_id).answer.status != "edited":
            settings = finished.effective.settings
        self._continue(continued, turn_id, chat.turns[-1], settings)

    def continue_from(self, turn_id: str, end: int) -> None:
        """Continue an answer of the open chat after the character before `end`, as a new version.

        An earlier answer continues in a new chat, so that the later turns are not lost.
        """
        info = self._app.link.info
        if not self.readiness.may_ask(self._chats.open.turn(turn_id).user) or info is None:
            return
        again = partial(self.continue_from, turn_id, end)
        if self._starts_tools(partial(self._in_chat, self._chats.open.id, again)):
            return
        turn_id, chat = self._end_edits(turn_id), self._chats.open
        if turn_id != chat.turns[-1].id:
            chat = self._chat.branch(turn_id)
        new_id = self._chats.new_turn_id()
        cut = chat.cut_answer(turn_id, new_id, end, self._chats.now())
        settings = drawn_again(self._views.inspector.settings)
        self._continue(cut.go_on(new_id, info.name), new_id, chat.turns[-1], settings)

    def _continue(self, chat: Conversation, turn_id: str, before: Turn, settings: Settings) -> None:
        """Continue the answer of the last turn `turn_id`, which was `before`."""
        if self._views.notice_bar.text == strings.ANSWER_EDITED:  # its Undo would no longer apply
            self._views.notice_bar.clear()
        last = chat.turn(turn_id).answer.tokens[-1]
        self._ask(chat, Running(chat.id, turn_id, before, last), settings)
        self._views.composer.edit.setFocus()

    def edit(self, turn_id: str = "") -> None:
        """Put a message of the open chat, the last one if `turn_id` is empty, into the composer."""
        if self.readiness.answers_here:
            self.readiness.refuse(strings.EDIT_MESSAGE_LATER)
        elif self._chats.open.turns:
            self._page.begin_edit(self._page.keep_draft(turn_id))
            self._views.composer.edit.setFocus()

    def cancel_edit(self) -> None:
        if self.readiness.edited:
            self._page.show_draft()
            self._page.show_context()
            self.queue.send_next_soon()

    def _end_edits(self, turn_id: str = "") -> str:
        """End the edits of an answer and of a message: both are kept. Returns as `ChatPage.keep_draft`."""
        turn_id = self._page.keep_draft(turn_id)
        self.cancel_edit()
        return turn_id

    def read_everything(self, turn_id: str) -> None:
        """Answer a question again from a dense prefill; at once if its prompt is being read."""
        settings = assign(self._views.inspector.settings, "prefill.mode", "off")
        running = self._answering.running
        if running is not None and running.turn_id == turn_id:
            self.stop()
            self._answering.stop_then(lambda: self.regenerate("", settings))
        else:
            self.regenerate(turn_id, settings)

    def stop(self) -> None:
        """Stop the answer of the open chat. While another chat is answered, offer to stop that."""
        if self._tools.calls_in(self._chats.open):
            self._tools.stop(self._chats.open.id)
        elif self.readiness.answers_here:
            self.readiness.stop_running()
        elif title := self._answering.elsewhere:
            self.readiness.refuse(strings.answering_other_chat(title))

    # ---- inside

    def _on_answer_finished(self, turn_id: str) -> None:
        self.queue.hold_or_send_next(turn_id)
        if self._is_same_again(turn_id):
            self._views.notice_bar.show_notice(
                strings.SAME_ANSWER, strings.VARY_ANSWER, lambda: self._vary(turn_id)
            )

    def _is_same_again(self, turn_id: str) -> bool:
        """Whether a complete answer of the open chat, at temperature 0, equals its version before."""
        turn = next((each for each in self._chats.open.turns if each.id == turn_id), None)
        if turn is None or not turn.place or turn.answer.status != "finished":
            return False
        before, finished = turn.versions[turn.place - 1], turn.answer.finished
        greedy = finished is not None and finished.effective.settings.sampling.temperature == 0
        return greedy and before.user == turn.user and before.answer.text == turn.answer.text

    def _vary(self, turn_id: str) -> None:
        """Answer the last question again at a temperature that varies the words."""
        if self._chats.open.turns and self._chats.open.turns[-1].id == turn_id:
            self._views.notice_bar.clear()
            settings = assign(self._views.inspector.settings, "sampling.temperature", _VARIED_TEMPERATURE)
            self.regenerate(turn_id, settings)

    def _on_chat_shown(self) -> None:
        if self._views.notice_bar.text == strings.SAME_ANSWER:  # its button is for the chat that was left
            self._views.notice_bar.clear()
        self.readiness.end_refusal()
        self._views.transcript.offer_continue(self.readiness.continuable)
        self.queue.show()
        self.queue.send_next_soon()

    def _ask(self, chat: Conversation, running: Running, settings: Settings | None = None) -> None:
        settings = settings or self._views.inspector.settings
        settings = permitted(settings, self._app.preferences.now.settings.allowed)
        if info := self._app.link.info:
            chat = chat.asking(running.turn_id, AskedOf(info.name, settings))
        offered = self._tools.offered(chat)
        if missing := self._tools.missing(chat):
            self._views.notice_bar.show_notice(strings.tools_missing(missing))
        chat = chat.offering(running.turn_id, [each.name for each in offered])
        running = replace(running, offered=offered)
        self._chats.keep(chat)
        self.queue.resume(chat.id)
        self._answering.start(running)
        self._app.trouble.end(Until.ASKED, chat.id)
        stop_repeating = self._app.preferences.now.settings.writing.stop_repeating
        if running.after:
            answer = chat.turn(running.turn_id).answer
            begun = answer.tokens[answer.last_generation :]
            asked = Generate(
                self._chats.new_turn_id(),
                chat.messages_before(running.turn_id),
                settings,
                continuation=tuple(token.id for token in begun),
                chat=chat.id,
                continuation_texts=tuple(token.text for token in begun) if answer.is_edited else (),
                stop_repeating=stop_repeating,
            )
        else:
            messages = chat.messages_for_request()
            asked = Generate(running.turn_id, messages, settings, chat=chat.id, stop_repeating=stop_repeating)
        self._app.handle(with_tools(asked, offered, self._app.link.info, free=running.free))

    def _starts_tools(self, again: Callable[[], None]) -> bool:
        """Whether servers of the open chat's tools have to be started; `again` is called after that."""
        chat = self._chats.open
        if self._tools.are_ready(chat):
            return False
        self._views.notice_bar.show_notice(strings.STARTING_TOOLS)
        self._tools.prepare(chat, again)
        return True

    def _in_chat(self, chat_id: str, act: Callable[[], None]) -> None:
        """Call `act` unless another chat is open now."""
        if self._views.notice_bar.text == strings.STARTING_TOOLS:
            self._views.notice_bar.clear()
        if chat_id == self._chats.open.id:
            act()

    def _proceed_soon(self, chat_id: str, turn_id: str) -> None:
        """The calls of an answer have ended: it continues as soon as the worker is ready."""
        self._answered[chat_id] = turn_id
        self.queue.send_next_soon()

    def _proceed(self) -> bool:
        """Begin the next generation of an answer whose calls have ended; False if there is none."""
        while self._answered:
            chat_id = next(iter(self._answered))
            turn_id = self._answered.pop(chat_id)
            with suppress(KeyError, RequestError):  # erased, or unreadable
                chat = self._chats.get(chat_id)
                if chat.has(turn_id) and loop.is_answered(chat.turn(turn_id).answer):
                    self._go_on_after_calls(chat, turn_id)
                    return True
        return False

    def _go_on_after_calls(self, chat: Conversation, turn_id: str) -> None:
        info, turn = self._app.link.info, chat.turn(turn_id)
        assert info is not None
        assert turn.answer.finished is not None
        settings = turn.answer.finished.effective.settings
        # If nothing follows, the answer is as after Stop.
        before = struct_replace(turn, answer=struct_replace(turn.answer, status="stopped"))
        running = Running(chat.id, turn_id, before, turn.answer.tokens[-1], keeps_draft=True)
        self._ask(chat.go_on(turn_id, info.name), running, settings)

    def _ask_otherwise(self, failed_one: Running, failed: Failed) -> bool:
        """Ask again what failed: without a grammar that cannot be made of the tools' schemas, or, if the
        context is full, without the results of the oldest calls.
        """
        if not self.readiness.ready:
            return False
        chat = self._chats.get(failed_one.chat_id)
        if failed.code == GrammarError.code and failed_one.offered and not failed_one.free:
            failed_one = replace(failed_one, free=True)
        elif failed.over_tokens:
            chat, count = loop.without_results(chat, failed.over_tokens * _CHARACTERS_A_TOKEN)
            if not count:
                return False
            self._views.notice_bar.show_notice(strings.results_left_out(count))
        else:
            return False
        asked_of = chat.turn(failed_one.turn_id).answer.asked_of
        running = replace(failed_one, is_shown=failed_one.chat_id == self._chats.open.id)
        self._ask(chat, running, asked_of.settings if asked_of else None)
        return True

    def _ask_again(self, turn_id: str, message: Message | None, settings: Settings | None = None) -> None:
        """Answer an earlier question again, or `message` in its place."""
        chat = self._chats.open
        if turn_id != chat.turns[-1].id:
            chat = self._chat.branch(turn_id)
        new_id = self._chats.new_turn_id()
        settings = drawn_again(settings or self._views.inspector.settings)
        asked = chat.ask_again(new_id, message, self._chats.now())
        self._ask(asked, Running(chat.id, new_id, chat.turns[-1]), settings)
