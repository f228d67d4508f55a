"""AskController: carries out intents in the open chat: send, regenerate, continue, edit, stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from msgspec import Struct
from msgspec.structs import replace as struct_replace
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.chat import strings as texts
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
from app.controllers.page import ChatPage
from app.controllers.scanned_pages import ScannedPages
from app.controllers.tool_calls import ToolCalls, with_tools
from app.panels.groups import described
from app.panels.strings import STOP_GENERATING
from app.session.chats.answers import Edit
from app.session.chats.conversation import (
    NOTHING_WRITTEN,
    AskedOf,
    Conversation,
    QueuedMessage,
    Turn,
    merged,
    uncounted,
)
from app.session.chats.presets import differences
from app.session.status import why_unseen
from app.session.tools import loop
from app.session.trouble import Until
from app.session.turn.intents import Stop
from app.session.turn.link_state import Phase
from core.errors import GrammarError, RequestError
from core.events import Failed, Generate, Message
from core.settings import Settings, assign, permitted
from core.settings.request import drawn_again

_VARIED_TEMPERATURE = 0.8
# More than texts have on average, so that one more attempt is enough.
_CHARACTERS_A_TOKEN = 5


class AskController(QObject):
    """`awaited` returns the name of the model that questions wait for; empty for none.

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
        self._last_change: _AnswerEdit | _Deletion | None = None
        self._awaited = awaited
        self._was_ready = False
        # Chats whose queue continues: the person sent something, and no answer since was stopped, failed or
        # withdrawn. After a start there are none, so that nothing is sent without its author.
        self._flowing: set[str] = set()
        self._held: dict[str, str] = {}  # by chat, why its queue does not go on
        self._refused = ""  # the reason in the notice why something was not possible
        self._answered: dict[str, str] = {}  # by chat, the answer whose calls have ended
        self._pages = ScannedPages(app, self)
        tools.proceed = self._proceed_soon
        answering.ask_otherwise = self._ask_otherwise
        page.chat_shown.connect(self._on_chat_shown)
        chat.listing.listed.connect(self._hold_deleted)
        answering.answer_finished.connect(self._on_answer_finished)
        chat.listing.stop_requested.connect(self.stop_running)
        for view in (views.transcript, views.composer, views.editing_bar, views.queue_list, views.first_page):
            view.intent.connect(self.on_intent)

    def on_intent(self, intent: Intent) -> None:
        """Carry out an intent. Those about other windows are handled by the owners of these windows."""
        composer, documents = self._views.composer, self._chat.documents
        match intent:
            case SendMessage(message):
                self.submit(message)
            case QueueMessage(message):
                self.queue(message)
            case SendQueued():
                self.send_queued()
            case EditQueued(index, message):
                self.edit_queued(index, message)
            case RemoveQueued(index, message):
                self.remove_queued(index, message)
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
                self.edit_answer(turn_id)
            case SaveAnswer(turn_id, edits):
                self.save_answer(turn_id, edits)
            case ContinueFrom(turn_id, end):
                self.continue_from(turn_id, end)
            case ShowVersion(turn_id, index):
                self.show_version(turn_id, index)
            case Branch(turn_id):
                self._chat.branch(turn_id)
                composer.edit.setFocus()
            case DeleteMessage(turn_id):
                self.delete_message(turn_id)
            case EditMessage(turn_id):
                if turn_id or not self.edited:
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

    @property
    def answers_here(self) -> bool:
        is_running = self._answering.running is not None and not self._answering.elsewhere
        return is_running or self._tools.calls_in(self._chats.open)

    @property
    def edited(self) -> str:
        """The turn of the open chat whose message is edited in the composer; empty if none is."""
        return self._page.edited

    @property
    def continuable(self) -> str:
        """The turn of the open chat whose answer the model can continue; empty if there is none."""
        last, info = self._chats.open.turns[-1:], self._app.link.info
        return last[0].id if last and info and last[0].answer.can_go_on(info.name) else ""

    def submit(self, message: Message) -> None:
        """Send `message` in the open chat, or in place of the message that is being edited."""
        if not self._may_ask(message):
            return
        self._views.transcript.save_edit()
        settings = self._views.inspector.settings
        if edited := self.edited:
            chat = self._chats.open
            again = partial(self._submit_edit, chat.id, edited, message)
            if self._starts_tools(partial(again, True)):
                return
            if complete := self._pages.complete(chat.messages_until(edited), message, settings, again):
                self.cancel_edit()
                self._ask_again(edited, complete)
            return
        chat = self._chats.open
        if self._awaited() or self._tools.calls_in(chat) or not self._are_tools_ready(chat):
            self.queue(message)
            return
        complete = self._pages.complete(chat.messages_until(), message, settings, None)
        if complete is None:  # it waits at the head of the queue while its pages are drawn
            self._chats.keep(chat.with_queued((QueuedMessage(message, chat.overrides), *chat.queued)))
            self._chats.keep(self._chats.open.with_draft(NOTHING_WRITTEN))
            self._views.composer.clear()
            self._ask_queued(self._chats.open)
            return
        turn_id = self._chats.new_turn_id()
        asked = chat.ask(turn_id, complete, self._chats.now()).with_draft(NOTHING_WRITTEN)
        self._ask(asked, Running(chat.id, turn_id))

    def _submit_edit(self, chat_id: str, turn_id: str, message: Message, drawn: bool) -> None:
        """Send an edited message whose pages are drawn, unless the person has gone on."""
        is_here = chat_id == self._chats.open.id and turn_id == self.edited
        written = self._views.composer.message()
        if drawn and is_here and uncounted(written) == uncounted(message):
            self.submit(written)

    def close(self) -> None:
        """End what draws pages."""
        self._pages.close()

    def queue(self, message: Message) -> None:
        """Send `message` in the open chat as soon as that is possible. It is saved at once.

        An edited message stays in the composer: it is not a new one.
        """
        if self.edited:
            self._views.notice_bar.show_notice(strings.SEND_EDIT_LATER)
            return
        chat = self._chats.open
        if not chat.queued and not self.answers_here:
            self._flowing.add(chat.id)
        queued = (*chat.queued, QueuedMessage(message, chat.overrides))
        self._chats.keep(chat.with_queued(queued).with_draft(NOTHING_WRITTEN))
        self._views.composer.clear()
        self._show_queue()

    def edit_queued(self, index: int, message: Message) -> None:
        """Take a message out of the queue into the composer, before the text that it has.

        While a sent message is edited there, it waits in the chat's draft, which returns after the edit.
        """
        if not self.remove_queued(index, message):
            return
        composer, chat = self._views.composer, self._chats.open
        if self.edited:
            self._chats.keep(chat.with_draft(merged([message, chat.draft])))
        else:
            composer.set_message(merged([message, composer.draft]), composer.chips.sources)
            composer.edit.setFocus()

    def remove_queued(self, index: int, message: Message) -> bool:
        """Remove a message from the queue of the open chat; False if it is not there any more."""
        chat = self._chats.open
        if [each.message for each in chat.queued[index : index + 1]] != [message]:
            return False
        self._chats.keep(chat.with_queued((*chat.queued[:index], *chat.queued[index + 1 :])))
        self._show_queue()
        return True

    def send_queued(self) -> None:
        """Send the next queued message of the open chat, and then the others."""
        queued = self._chats.open.queued
        if queued and self._may_ask(queued[0].message):
            self._end_edits()
            self._ask_queued(self._chats.open)

    def follow(self) -> None:
        """The state of the worker or of its turn changed."""
        was_ready, self._was_ready = self._was_ready, self._ready
        if self._ready and not was_ready:
            self._send_next_soon()
        if self._ready or self.answers_here:
            self._end_refusal()
        self._show_queue()
        self._views.transcript.offer_continue(self.continuable)

    def stop_waiting(self) -> None:
        """The wait for a model ended: send what waited for it."""
        self._show_queue()
        self._send_next_soon()

    def regenerate(self, turn_id: str = "", settings: Settings | None = None) -> None:
        """Answer a question of the open chat again, as a new version: the last one if `turn_id` is empty.

        An earlier one continues in a new chat, so that the later turns are not lost. `settings` are the
        current ones if None.
        """
        chat = self._chats.open
        if not chat.turns:
            return
        asked = chat.turn(turn_id or chat.turns[-1].id)
        if not self._may_ask(asked.user):
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
        if not self._may_ask(turns[-1].user if turns else None):
            return
        if self._starts_tools(partial(self._in_chat, self._chats.open.id, self.continue_answer)):
            return
        self._end_edits()
        info, turn_id, chat = self._app.link.info, self.continuable, self._chats.open
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
        if not self._may_ask(self._chats.open.turn(turn_id).user) or info is None:
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

    def edit_answer(self, turn_id: str = "") -> None:
        """Edit an answer of the open chat, the last one if `turn_id` is empty, in its place."""
        turns = self._chats.open.turns
        if self.answers_here:
            self._refuse(strings.EDIT_LATER)
        elif turns:
            self._views.transcript.edit_answer(turn_id or turns[-1].id)

    def save_answer(self, turn_id: str, edits: Sequence[Edit]) -> None:
        """Make a version of an answer of the open chat with `edits`, and offer Undo."""
        before, new_id = self._chats.open, self._chats.new_turn_id()
        chat = before.edit_answer(turn_id, new_id, edits, self._chats.now())
        self._last_change = _AnswerEdit(chat.id, before.turn(turn_id), chat.turn(new_id), self._typed)
        self._show_answer(chat, turn_id, new_id)
        self._views.notice_bar.show_notice(
            strings.ANSWER_EDITED, strings.UNDO, self._undo_change, kind="done"
        )

    def delete_message(self, turn_id: str) -> None:
        """Delete a question of the open chat with its answer in all versions, and offer Undo."""
        if self.answers_here:
            self._views.notice_bar.show_notice(strings.DELETE_LATER)
            return
        turn_id = self._end_edits(turn_id)
        before = self._chats.open
        self._chats.delete_turn(turn_id)
        self._page.remove_turn(before.turn(turn_id))
        self._last_change = _Deletion(before.id, before, turn_id, self._typed)
        self._views.transcript.offer_continue(self.continuable)
        self._views.notice_bar.show_notice(
            strings.MESSAGE_DELETED, strings.UNDO, self._undo_change, kind="done"
        )

    @property
    def changed_last(self) -> bool:
        """Whether nothing was typed since an edit or a deletion in the open chat, which can be undone."""
        change = self._last_change
        return change is not None and change.chat_id == self._chats.open.id and self._typed == change.typed

    @property
    def _typed(self) -> int:
        """The state of the message field."""
        return self._views.composer.edit.document().revision()

    def undo(self) -> None:
        """Undo the last edit of an answer or deletion of a question if that was in the open chat."""
        if self._last_change and self._last_change.chat_id == self._chats.open.id:
            self._undo_change()

    def _undo_change(self) -> None:
        change, self._last_change = self._last_change, None
        if isinstance(change, _AnswerEdit):
            self._undo_answer_edit(change)
        elif change is not None:
            self._undo_deletion(change)

    def _undo_deletion(self, deletion: _Deletion) -> None:
        """Put a deleted question back into its chat, which may have changed since."""
        try:
            chat = self._chats.get(deletion.chat_id)
        except (KeyError, RequestError):  # it had no other question, and was left
            chat = deletion.before.without_turn(deletion.turn_id)
        if self.answers_here and chat.id == self._chats.open.id:
            self._last_change = deletion
            self._views.notice_bar.show_notice(strings.DELETE_LATER)
            return
        self._views.transcript.save_edit()
        self._chats.keep(chat.with_turn_of(deletion.before, deletion.turn_id))
        self._views.notice_bar.clear()
        if chat.id == self._chats.open.id:
            self._page.show()
            self._views.transcript.show_turn(deletion.turn_id)
        else:
            self._page.show_names()

    def _undo_answer_edit(self, edit: _AnswerEdit) -> None:
        """Undo the edit of an answer, in any chat, unless the answer has changed since."""
        try:
            chat = self._chats.get(edit.chat_id)
        except (KeyError, RequestError):  # erased, or unreadable
            chat = self._chats.open
        if edit.after not in chat.turns:
            self._views.notice_bar.show_notice(strings.EDIT_NOT_UNDONE)
            return
        turns = tuple(edit.before if turn == edit.after else turn for turn in chat.turns)
        self._show_answer(chat.with_turns(turns), edit.after.id, edit.before.id)
        self._views.notice_bar.show_notice(strings.EDIT_UNDONE, kind="done")

    def _show_answer(self, chat: Conversation, shown_before: str, turn_id: str) -> None:
        """Store `chat`, in which another version of a turn is displayed, and show it if it is open."""
        self._chats.keep(chat)
        if chat.id != self._chats.open.id:
            return
        if self.edited == shown_before:
            self._page.edited = turn_id
        transcript, focus = self._views.transcript, QApplication.focusWidget()
        has_focus = focus is None or transcript.isAncestorOf(focus)
        self._page.show_version(shown_before, chat.turn(turn_id))
        transcript.offer_continue(self.continuable)
        answer = transcript.answer(turn_id)
        if has_focus and answer is not None:
            answer.body.setFocus()

    def show_version(self, turn_id: str, index: int) -> None:
        """Show another version of a turn. Later requests contain the shown version."""
        if self.answers_here:
            self._refuse(strings.VERSIONS_LATER)
            return
        turn_id = self._end_edits(turn_id)
        chat = self._chats.open.show_version(turn_id, index)
        self._chats.keep(chat)
        self._page.show_version(turn_id, next(turn for turn in chat.turns if turn_id in _ids(turn)))
        self._views.transcript.offer_continue(self.continuable)

    def edit(self, turn_id: str = "") -> None:
        """Put a message of the open chat, the last one if `turn_id` is empty, into the composer."""
        if self.answers_here:
            self._refuse(strings.EDIT_MESSAGE_LATER)
        elif self._chats.open.turns:
            self._page.begin_edit(self._page.keep_draft(turn_id))
            self._views.composer.edit.setFocus()

    def cancel_edit(self) -> None:
        if self.edited:
            self._page.show_draft()
            self._page.show_context()
            self._send_next_soon()

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
        elif self.answers_here:
            self.stop_running()
        elif title := self._answering.elsewhere:
            self._refuse(strings.answering_other_chat(title))

    def stop_running(self) -> None:
        """Stop the running answer, whichever chat it belongs to, and the messages queued behind it."""
        if self._answering.running is not None and self._app.link.busy:
            self._answering.stop_then(None)
            self._app.handle(Stop())

    # ---- inside

    def _may_ask(self, question: Message | None = None) -> bool:
        """Whether `question` can be sent now. If not, a notice gives the reason."""
        if self._ready:
            unseen = why_unseen(self._app.link.info, question) if question else ""
            if unseen:
                self._refuse(unseen)
            return not unseen
        phase, title = self._app.link.phase, self._answering.elsewhere
        if title:
            self._refuse(strings.after_other_chat(title))
        elif self.answers_here:
            self._refuse(strings.AFTER_THIS_ANSWER)
        elif self._app.link.busy:
            self._refuse(strings.AFTER_RACE)
        else:
            self._refuse(strings.NOT_READY.get(phase, ""))
        return False

    def _refuse(self, reason: str) -> None:
        """Show why an action is not possible now, with a button to stop the answer of another chat."""
        self._refused = reason
        if self._answering.elsewhere:
            self._views.notice_bar.show_notice(reason, STOP_GENERATING, self.stop_running)
        else:
            self._views.notice_bar.show_notice(reason)

    def _end_refusal(self) -> None:
        """Hide the reason of `_refuse`, which does not apply any more."""
        if self._refused and self._views.notice_bar.text == self._refused:
            self._views.notice_bar.clear()
        self._refused = ""

    def _on_answer_finished(self, turn_id: str) -> None:
        self._hold_or_send_next(turn_id)
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
        self._end_refusal()
        self._views.transcript.offer_continue(self.continuable)
        self._show_queue()
        self._send_next_soon()

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

    def _send_next_soon(self) -> None:
        """Send the next queued message after all handlers of the current event have run."""
        if self._chats.queued() or self._answered:
            QTimer.singleShot(0, self, self._send_next)

    def _send_next(self) -> None:
        """Send the next queued message of the open chat, or else of another chat."""
        if not self._ready or self._awaited() or self._proceed():
            return
        for chat_id in self._chats.queued():
            editing = self.edited and chat_id == self._chats.open.id
            if chat_id in self._flowing and not editing:
                with suppress(RequestError):  # unreadable
                    chat = self._chats.get(chat_id)
                    if self._tools.calls_in(chat) or not self._are_tools_ready(chat):
                        continue
                    if why_unseen(self._app.link.info, chat.queued[0].message):
                        self._hold(chat_id, texts.HELD_UNSEEN)
                        self._show_queue()
                        continue
                    self._ask_queued(chat)
                    return

    def _hold_or_send_next(self, turn_id: str) -> None:
        """Hold the queue of a chat whose answer was stopped, failed or withdrawn, else send the next."""
        with suppress(KeyError, RequestError):
            chat_id = self._answering.ended_in
            last = self._chats.get(chat_id).turns[-1:]
            status = last[0].answer.status if last and last[0].id == turn_id else ""
            if status != "finished":
                self._hold(chat_id, texts.HELD_BY.get(status, texts.HELD_BY[""]))
        self._show_queue()
        self._send_next_soon()

    def _ask_queued(self, chat: Conversation) -> None:
        turn_id, next_one = self._chats.new_turn_id(), chat.queued[0]
        settings = self._settings_of(chat, next_one)
        after = partial(self._pages_drawn, chat.id)
        message = self._pages.complete(chat.messages_until(), next_one.message, settings, after)
        if message is None:
            self._flowing.add(chat.id)
        else:
            asked = chat.ask(turn_id, message, self._chats.now()).with_queued(chat.queued[1:])
            self._ask(asked, Running(chat.id, turn_id, keeps_draft=True), settings)
        self._show_queue()

    def _pages_drawn(self, chat_id: str, drawn: bool) -> None:
        """The pages of a queued message are drawn; if that was stopped, it is held."""
        if drawn:
            self._flowing.add(chat_id)
        else:
            self._hold(chat_id, texts.HELD_PAGES)
        self._show_queue()
        self._send_next_soon()

    def _settings_of(self, chat: Conversation, queued: QueuedMessage) -> Settings:
        return self._chat.settings.of(chat.with_overrides(queued.overrides))

    def _show_queue(self) -> None:
        chat, phase, awaited = self._chats.open, self._app.link.phase, self._awaited()
        held = chat.id not in self._flowing and not self.answers_here
        settings = self._chat.settings.of(chat)
        loads = phase in (Phase.STARTING, Phase.LOADING, Phase.NO_MODEL, Phase.DEAD)
        when = texts.QUEUED if self.answers_here else texts.QUEUED_FOR_OTHERS
        when = texts.queued_for(awaited) if awaited else texts.QUEUED_FOR_MODEL if loads else when
        when = texts.QUEUED_FOR_EDIT if self.edited and self._ready else when
        when = texts.QUEUED_FOR_PAGES if self._pages.busy and self._ready else when
        self._views.queue_list.show_messages(
            [each.message for each in chat.queued],
            self._held.get(chat.id, texts.HELD_SINCE_START) if held else when,
            [described(differences(self._settings_of(chat, each), settings)) for each in chat.queued],
            offered=held or bool(awaited),
            can_send=self._ready,
        )

    @property
    def _ready(self) -> bool:
        return self._app.link.phase is Phase.READY

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
        self._flowing.add(chat.id)
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

    def _are_tools_ready(self, chat: Conversation) -> bool:
        """Whether the tools of a chat can be offered; if not, their servers are started, and then the queue
        continues.
        """
        if self._tools.are_ready(chat):
            return True
        self._flowing.add(chat.id)
        self._tools.prepare(chat, self._send_next_soon)
        return False

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
        self._send_next_soon()

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
        # If nothing comes, the answer is as after Stop.
        before = struct_replace(turn, answer=struct_replace(turn.answer, status="stopped"))
        running = Running(chat.id, turn_id, before, turn.answer.tokens[-1], keeps_draft=True)
        self._ask(chat.go_on(turn_id, info.name), running, settings)

    def _ask_otherwise(self, failed_one: Running, failed: Failed) -> bool:
        """Ask again what failed: without a grammar that cannot be made of the tools' schemas, or, if the
        context is full, without the results of the oldest calls.
        """
        if not self._ready:
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


class _AnswerEdit(Struct, frozen=True):
    """An edited answer: the turn before the edit and after it. `typed` is the message field's state then."""

    chat_id: str
    before: Turn
    after: Turn
    typed: int


class _Deletion(Struct, frozen=True):
    """A deleted question: its chat before, and the turn. `typed` is the message field's state then."""

    chat_id: str
    before: Conversation
    turn_id: str
    typed: int


def _ids(turn: Turn) -> set[str]:
    return {version.id for version in turn.versions}
