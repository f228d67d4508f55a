"""WindowController: takes in everything heard and wanted, and gives each effect to the controller that
carries it out.

All goes through `take()`: the pure machine answers with the next state and effects, and `Handlers` has the
one method that carries each out. `ChatPage` shows the open chat, `ChatListController` all of
them, `ChatSettings` what holds in it, `Saving` how they are kept. The controller owns the chats and no
process: commands leave by `send` (once what they wait for has happened), a new worker is asked for by
`restart`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

from PySide6.QtCore import QObject, Signal

from app.controllers import strings
from app.controllers.chat.answer import AnswerController, Running
from app.controllers.chat.chat_list import ChatListController
from app.controllers.chat.chat_page import ChatPage
from app.controllers.chat.chat_settings import ChatSettings
from app.controllers.chat.context_meter import ContextMeter
from app.controllers.chat.editing import Editing
from app.controllers.chat.saving import Saving
from app.controllers.chat.transfer import Transfer
from app.controllers.document import DocumentController
from app.controllers.handlers import Handlers
from app.controllers.models import ModelsController
from app.controllers.race import RaceController
from app.controllers.running_answer import AnswerListener, RunningAnswer
from app.controllers.tables import TablesController
from app.controllers.trouble import TroubleController
from app.controllers.views import Views
from app.controllers.worker import WorkerController
from app.session.chats.chats import Chats
from app.session.chats.conversation import NOTHING_WRITTEN, Conversation
from app.session.turn import effects as fx
from app.session.turn.intents import AskTables, Count, Load, Restart, Stop, Submit
from app.session.turn.link_state import Link, Phase
from app.session.turn.turn import Input, advance
from app.session.worker.trouble import Until
from app.store.home import Home
from core.errors import RequestError
from core.events import Command, Generate, Message, StandStill
from core.settings import Settings, assign, permitted


class WindowController(QObject):
    """`chats` is what is open and what was said; widgets are reached through `views` only."""

    link_changed = Signal(object)  # session.turn.Link, after every step
    answer_finished = Signal(str)  # turn id, however it ended
    chat_changed = Signal()  # another chat, another turn, another list of chats
    document_requested = Signal()  # the Document tab is to be seen

    def __init__(
        self,
        views: Views,
        model: str,
        send: Callable[[Command, Callable[[], Awaitable[None]] | None], None],
        restart: Callable[[], None],
        home: Home | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.home = home or Home()
        self._views = views
        self._send = send
        self._restart = restart
        self._link = Link(model or self.home.preferences.now.model or "starter")
        self.chats = Chats(shelf=self.home.shelf, open_id=self.home.preferences.now.open_chat)
        self._meter = ContextMeter(views.composer, self._count, self)
        self._page = ChatPage(views, self.chats, self._meter, self)
        self.trouble = TroubleController(views.banner, lambda: self._meter.limit_tokens)
        self._answering = AnswerController(views, self.chats, self._page, self._meter, self.trouble, self)
        self._reading = DocumentController(views, self.chats, self._page, self._answering, self)
        self._worker = WorkerController(views, self._meter, self.trouble)
        self.chat_settings = ChatSettings(views.inspector, self.chats, self.home.preferences, self)
        self.tables = TablesController(self.chat_settings, self.home.preferences, self.take, self)
        self._editing = Editing(views, self.chats, self._page, self)
        self.listing = ChatListController(views, self.chats, self._page, self._answering, self)
        self.transfer = Transfer(views.sidebar, self.chats, self)
        self.racing = RaceController(views, self.chats, self.take, self)
        self.models = ModelsController(views.inspector, self.home.preferences, self.take, self)
        self._saving = Saving(self.trouble, self.chats, self.home, self)
        if self.home.library and not self.home.library.full_text:
            views.sidebar.search.setToolTip(strings.NO_FULL_TEXT)
        answer = RunningAnswer(self._listener_of, self.trouble.on_worker_mistake)
        self._handlers = Handlers(
            self._send_command, self._start_anew, answer, self._worker, self.trouble, self.tables, self.models
        )
        self._wire()
        self._show_chat()

    @property
    def link(self) -> Link:
        """The worker and its turn, as they stand."""
        return self._link

    @property
    def answers_here(self) -> bool:
        """Whether the open chat is being answered."""
        return self._answering.running is not None and not self._answering.elsewhere

    def take(self, given: Input) -> None:
        """One thing heard or wanted: step the machine and carry out what it asks for."""
        step = advance(self._link, given)
        changed, self._link = step.link != self._link, step.link
        for effect in step.effects:
            self._handlers.carry_out(effect)
        if changed:
            self._meter.set_idle(self._link.phase is Phase.READY)
            self._show_link()
            self.models.follow(self._link)
            self.tables.follow(self._link)
            self.link_changed.emit(self._link)

    # ---- what the person wants of the model

    def submit(self, message: Message) -> None:
        """Ask `message` in the open chat, or instead of the message that is being edited."""
        if self._link.phase is not Phase.READY:
            return
        if edited := self._editing.take():
            self._ask_again(edited, message)
            return
        turn_id, chat = self.chats.new_turn_id(), self.chats.open
        asked = chat.ask(turn_id, message, self.chats.now()).with_draft(NOTHING_WRITTEN)
        self._ask(asked, Running(chat.id, turn_id))

    def regenerate(self, turn_id: str = "", settings: Settings | None = None) -> None:
        """Answer a question of the open chat again: the last one if `turn_id` is empty.

        An earlier one continues in a new chat, so that what came after it is not lost.
        `settings` are those in force if None.
        """
        if self._link.phase is Phase.READY and self.chats.open.turns:
            self._ask_again(turn_id or self.chats.open.turns[-1].id, None, settings)

    def go_on(self, turn_id: str) -> None:
        """Let the model write on where the open chat's last answer was stopped.

        Its settings are those of the answer, so that it is what it would have been.
        """
        if self._link.phase is not Phase.READY or turn_id != self._unended():
            return
        chat = self.chats.open
        answer = chat.turns[-1].answer
        assert answer.finished
        self._ask(
            chat.go_on(turn_id),
            Running(chat.id, turn_id, chat.turns, answer.tokens[-1]),
            answer.finished.effective.settings,
        )

    def edit(self, turn_id: str = "") -> None:
        """Put a message of the open chat, the last one if `turn_id` is empty, into the composer."""
        chat = self.chats.open
        if chat.turns and not self.answers_here:
            self._editing.begin(turn_id or chat.turns[-1].id)

    def branch(self, turn_id: str) -> None:
        """Go on in a new chat from an answer of the open one."""
        self._page.leave()
        self.chats.branch(turn_id, self._branch_name())
        self._show_chat()
        self._views.composer.edit.setFocus()

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
        if self._link.busy:
            self.take(Stop())

    def restart(self) -> None:
        """A new worker instead of the one that is dead or stuck."""
        self.take(Restart())

    def stand_still(self, wanted: bool) -> None:
        """The worker is to do nothing of its own accord, or again what is worth doing while idle."""
        self.take(AskTables(StandStill(wanted)))

    def show_error(self, error: RequestError) -> None:
        """Something that a person asked of the window and that cannot be done."""
        self.trouble.show_request_error(error, "window")

    def remedy(self, name: str) -> None:
        """What the banner offers."""
        if name == "restart":
            self.restart()
        elif name == "smaller":
            self._make_context_smaller()
        elif name == "repair":
            self._saving.repair()
        elif name == "restore":
            self._saving.restore()
        elif name == "load" and self._link.phase in (Phase.READY, Phase.NO_MODEL):
            self.trouble.end(Until.READY)
            self.take(Load(self._link.model))

    # ---- what the person wants of the chats

    def new_chat(self) -> None:
        """Open an empty chat."""
        self._page.leave()
        self.chats.start()
        self._show_chat()
        self._views.composer.edit.setFocus()

    def move_to_new_chat(self) -> None:
        """Open an empty chat and take along what is being written."""
        composer = self._views.composer
        draft = Message("user", composer.text, composer.attachments)
        composer.clear()
        self.new_chat()
        composer.set_message(draft)

    def select_chat(self, chat_id: str) -> None:
        """Open another chat."""
        if chat_id != self.chats.open.id:
            self._page.leave()
            self.chats.select(chat_id)
            self._show_chat()

    def leave(self) -> None:
        """The window closes: what is written and what is open are remembered."""
        self._page.leave()
        self.home.preferences.change(open_chat=self.chats.open.id)

    # ---- inside

    def _make_context_smaller(self) -> None:
        """In this chat; a worker that died of it is replaced."""
        trouble, inspector = self._views.banner.trouble, self._views.inspector
        if trouble is None:
            return
        settings = assign(inspector.settings, "prefill.context_tokens", trouble.smaller_tokens)
        inspector.change_settings(settings)
        self.trouble.withdraw(trouble)
        if self._link.phase is Phase.DEAD:
            self.restart()

    def _send_command(self, effect: fx.Send) -> None:
        # A question is on the disk before its answer starts.
        asked = isinstance(effect.command, Generate)
        self._send(effect.command, self._saving.question_kept if asked else None)

    def _start_anew(self) -> None:
        self._views.first_page.set_loading("", None)
        self._restart()

    def _listener_of(self, request: str) -> AnswerListener:
        """Who asked it."""
        return self.racing if request == self.racing.race.request else self._answering

    def _ask(self, chat: Conversation, running: Running, settings: Settings | None = None) -> None:
        self.chats.keep(chat)
        self._answering.start(running)
        self.trouble.end(Until.ASKED)
        settings = settings or self._views.inspector.settings
        settings = permitted(settings, self.home.preferences.now.settings.allowed)
        if running.after:
            ids = tuple(token.id for token in chat.turn(running.turn_id).answer.tokens)
            asked = chat.messages_before(running.turn_id)
            self.take(Submit(self.chats.new_turn_id(), asked, settings, begun=ids))
        else:
            self.take(Submit(running.turn_id, chat.messages_for_request(), settings))

    def _ask_again(self, turn_id: str, message: Message | None, settings: Settings | None = None) -> None:
        """Ask an earlier question anew, in other words if there are any."""
        chat = self.chats.open
        if turn_id != chat.turns[-1].id:
            self._page.leave()
            chat = self.chats.branch(turn_id, self._branch_name())
            self._show_chat()
        new_id = self.chats.new_turn_id()
        asked = chat.ask_again(new_id, message, self.chats.now())
        self._ask(asked, Running(chat.id, new_id, chat.turns), settings)

    def _branch_name(self) -> str:
        """The open chat's title with the first number that is free."""
        title, taken = self.chats.open.title, {each.title for each in self.chats.listed()}
        return next(name for number in count(2) if (name := strings.branch_title(title, number)) not in taken)

    def _unended(self) -> str:
        """The turn of the open chat whose answer the model could write on; empty if there is none."""
        last, info = self.chats.open.turns[-1:], self._link.info
        return last[0].id if last and info and last[0].answer.can_go_on(info.name) else ""

    def _show_chat(self) -> None:
        self.chat_settings.show()  # before the page, which asks which drafter writes
        self._page.show()
        self._views.transcript.offer_to_go_on(self._unended())
        self._meter.set_reading(self._views.inspector.settings.prefill)

    def _choose(self, chat_id: str) -> None:
        """A row of the sidebar; one that a search found leads to where the words are."""
        self.select_chat(chat_id)
        row = self._views.sidebar.list.row(chat_id)
        if row and row.turn_id:
            self._views.transcript.show_turn(row.turn_id)

    def _open(self, chat_id: str) -> None:
        """What the sidebar's controller asks for: a chat, or a new one."""
        if chat_id:
            self.select_chat(chat_id)
        else:
            self.new_chat()

    def _chats_changed(self) -> None:
        """Some are gone or came back; the open one stays."""
        self._show_chat()

    def _show_link(self) -> None:
        self._views.transcript.offer_to_go_on(self._unended())
        self._worker.show(self._link, self._answering.elsewhere, self.racing.recording)
        self.racing.follow(self._link, self._views.composer.blocked_reason or strings.BLOCKED_BY_ANSWER)

    def _count(self, intents: tuple[Count, ...]) -> None:
        for intent in intents:
            self.take(intent)

    def _wire(self) -> None:
        views = self._views
        views.composer.message_submitted.connect(self.submit)
        views.composer.stop_requested.connect(self.stop)
        views.composer.draft_changed.connect(self.tables.note_typing)
        self.chat_settings.defaults_changed.connect(lambda own: self.tables.show_defaults())
        views.composer.attach_failed.connect(lambda error: self.trouble.show_request_error(error, "attach"))
        views.composer.new_chat_requested.connect(self.move_to_new_chat)
        views.transcript.regenerate_requested.connect(self.regenerate)
        views.transcript.everything_requested.connect(self.read_everything)
        views.transcript.more_requested.connect(self.go_on)
        views.transcript.stop_requested.connect(self.stop)
        views.banner.remedy_requested.connect(self.remedy)
        views.inspector.settings_changed.connect(lambda settings: self._show_link())
        views.inspector.settings_changed.connect(lambda settings: self._meter.set_reading(settings.prefill))
        views.sidebar.new_chat_requested.connect(self.new_chat)
        views.sidebar.chat_selected.connect(self._choose)
        views.header.new_chat_requested.connect(self.new_chat)
        views.first_page.example_chosen.connect(self._take_example)
        views.composer.edit.edit_last_requested.connect(self._edit_last_by_key)
        views.transcript.edit_requested.connect(self.edit)
        views.transcript.branch_requested.connect(self.branch)
        views.sidebar.export_requested.connect(self.transfer.export)
        views.sidebar.import_requested.connect(self.transfer.import_files)
        self.transfer.imported.connect(self.select_chat)
        self.listing.open_requested.connect(self._open)
        self.listing.stop_requested.connect(self.stop)
        for controller in (self.listing, self.transfer, self.chat_settings):
            controller.failed.connect(lambda error: self.trouble.show_request_error(error, "chats"))
        self._saving.chats_changed.connect(self._chats_changed)
        self._answering.answer_finished.connect(self.answer_finished)
        self._reading.panel_requested.connect(self.document_requested)
        self._page.chat_shown.connect(self.racing.close)
        self._page.chat_shown.connect(self._show_link)
        self._page.chat_shown.connect(self.models.changed)
        for told in (self._page.chat_shown, self._page.turn_added, self.listing.listed):
            told.connect(self.chat_changed)

    def _edit_last_by_key(self) -> None:
        if not self._views.composer.attachments and not self._editing.turn_id:
            self.edit()

    def _take_example(self, text: str) -> None:
        self._views.composer.set_text(text)
        self._views.composer.edit.setFocus()
