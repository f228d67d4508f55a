"""WindowController: handles all events and intents, and passes each effect to its handler.

`handle()` steps the pure state machine and calls the handlers of its effects. `chat` has the open chat and
the list, `asking` sends questions. The controller owns the chats but no process: that is `worker`'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from app.controllers import strings
from app.controllers.answering import AnswerController
from app.controllers.app import App
from app.controllers.asking import AskController
from app.controllers.chat import ChatController
from app.controllers.link import WorkerLink
from app.controllers.origins import OriginsController
from app.controllers.page import ChatPage
from app.controllers.titles import TitleController
from app.controllers.tool_calls import ToolCalls, with_tools
from app.controllers.tool_choice import ToolChoiceController
from app.controllers.tool_servers import ToolServers
from app.controllers.views import Views
from app.controllers.worker import WorkerController
from app.features.images.controller import ImagesController
from app.features.library import LibraryController
from app.features.models.controller import ModelsController
from app.features.race.controller import RaceController
from app.features.race.page import RacePage
from app.features.server.server import Key, ServerController, ServerState, WorkerSharing
from app.features.tables.controller import TablesController
from app.features.worker_caches import EmbeddingController, SavedChatsController
from app.session.chats.chats import Chats
from app.session.chats.conversation import NOTHING_WRITTEN
from app.session.documents import Documents
from app.session.trouble import Trouble, Until
from app.session.turn import effects as fx
from app.session.turn.intents import Load, Restart
from app.session.turn.link_state import Link, Phase
from app.session.turn.turn import Input, advance
from app.shell.handlers import Handlers
from app.store.library import Home
from core.errors import RequestError
from core.events import Generate, StandStill, UnloadIdle
from core.settings import Prefill, Settings, assign, assign_all, permitted
from core.settings.window import Server
from core.tools.messages import ServerState as ToolServerState

# A draft of at least this many characters is read while it is typed.
_LONG_DRAFT = 2000


class WindowController(QObject):
    """`chats` are the conversations; widgets are reached through `views` only."""

    link_changed = Signal(object)  # session.turn.Link, after every step
    answer_finished = Signal(str)  # turn id, after any kind of end

    def __init__(
        self,
        views: Views,
        race_page: RacePage,
        model: str,
        worker: WorkerLink,
        home: Home | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.home = home or Home()
        self._views = views
        kept = self.home.preferences.now
        link = Link(model or kept.model or "starter", load_deaths=0 if model else kept.load_deaths)
        self.app = app = App(views, self.home, worker, link, self.handle)
        self.trouble = app.trouble
        self.embedding = EmbeddingController(app, self._is_kept, self)
        self.saved_chats = SavedChatsController(app, self._open_chat, self._coming_question, self)
        self.chats = app.chats = Chats(
            self.home.library,
            open_id=kept.open_chat,
            find_preset=self.home.preferences.find_preset,
            erased=self.embedding.erase,
            purged=self.saved_chats.erase,
            steady_now=self.home.library.now,
        )
        page = ChatPage(app, self)
        self._answering = AnswerController(app, page, self)
        self.chat = ChatController(app, page, self._answering, self)
        self.origins = OriginsController(app, page, self._answering, self)
        self.tool_servers = ToolServers(self.home.preferences, self._report_tools, self)
        is_kept = self.chat.saving.call_kept
        self.tool_calls = ToolCalls(app, self.tool_servers, page, self._answering, is_kept, self)
        self.tool_choice = ToolChoiceController(app, page, self.tool_servers, self)
        self.asking = AskController(
            app, self.chat, page, self._answering, self.tool_calls, lambda: self.models.awaited, self
        )
        self._worker = WorkerController(views, app.meter)
        self.tables = TablesController(app, self)
        documents = Documents(self.home.library.documents, erased=self.embedding.erase)
        self.library = LibraryController(app, documents, self.embedding, self)
        self.racing = RaceController(app, race_page, self)
        self.models = ModelsController(app, self)
        self.images = ImagesController(app, page, self.models, self)
        for side in (race_page.plain, race_page.drafted):
            self.images.show_in(side.transcript)
        self.sharing = WorkerSharing(app, lambda: self._server_settings.learn, self)
        self.server = ServerController(
            self.sharing, Key(self.home.folder), self._served_base, self.models.installed, self
        )
        self._server_trouble: Trouble | None = None
        self._unloads_after_s = 0.0
        self._inputs: deque[Input] = deque()
        self._is_handling = False
        self.titles = TitleController(app, page, self)
        self._handlers = Handlers(
            self._send_command,
            self._restart_worker,
            self._take_answer,
            self._worker,
            self.trouble,
            self.tables,
            self.models,
            self.chat.settings,
            self.embedding,
            self.saved_chats,
        )
        self._wire(page)
        self.server.apply(self._server_settings)
        self.chat.show()

    @property
    def link(self) -> Link:
        """The current state of the worker and its turn."""
        return self.app.link

    def handle(self, given: Input) -> None:
        """Step the state machine with `given` and carry out the effects.

        Runs to completion: inputs that arrive meanwhile are handled afterwards, in order. A failing effect
        does not prevent the others; the first exception is raised at the end.
        """
        self._inputs.append(given)
        if self._is_handling:
            return
        self._is_handling = True
        failed: Exception | None = None
        try:
            while self._inputs:
                for work in self._step(self._inputs.popleft()):
                    try:
                        work()
                    except Exception as error:
                        failed = failed or error
        finally:
            self._is_handling = False
        if failed is not None:
            raise failed

    def _step(self, given: Input) -> list[Callable[[], None]]:
        """Advance the state and return the work to do, in order."""
        step = advance(self.link, given)
        changed, self.app.link = step.link != self.link, step.link
        if not self.link.connected:
            self._unloads_after_s = 0.0  # a worker starts with this
        table = self._handlers.table
        work: list[Callable[[], None]] = [
            partial(handler, effect) for effect in step.effects for handler in table[type(effect)]
        ]
        if changed:
            link = step.link
            work += [
                partial(self.sharing.follow, link),
                self._show_link,
                partial(self.models.follow, link),
                self.tables.show,
                self.unload_when_idle,
                partial(self.home.preferences.change, load_deaths=link.load_deaths),
                partial(self.link_changed.emit, link),
            ]
        return work

    def restart(self) -> None:
        """Replace the worker, dead or stuck, by a new one."""
        self.handle(Restart())

    def stand_still(self, wanted: bool) -> None:
        """Suspend the worker's idle work, or allow it again."""
        self.app.worker.send(StandStill(wanted))

    def unload_when_idle(self) -> None:
        """Tell the worker after which time it may unload the model, if that changed."""
        after_s = 60.0 * self.home.preferences.now.settings.memory.unload_minutes
        if self.link.connected and after_s != self._unloads_after_s:
            self._unloads_after_s = after_s
            self.app.worker.send(UnloadIdle(after_s))

    def remedy(self, name: str) -> None:
        """Carry out a remedy offered by the banner."""
        if name == "restart":
            self.restart()
        elif name == "smaller":
            self._make_context_smaller()
        elif name in ("repair", "repair-incomplete", "restore"):
            self.chat.saving.remedy(name)
        elif name == "load" and self.link.phase in (Phase.READY, Phase.NO_MODEL):
            self.trouble.end(Until.READY)
            self.handle(Load(self.link.model))

    # ---- inside

    def _make_context_smaller(self) -> None:
        """Reduce this chat's context and restart a worker that died of it."""
        trouble, inspector = self._views.banner.trouble, self._views.inspector
        if trouble is None:
            return
        settings = assign(inspector.settings, "prefill.context_tokens", trouble.smaller_tokens)
        inspector.change_settings(settings)
        self.trouble.withdraw(trouble)
        if self.link.phase is Phase.DEAD:
            self.restart()

    def _think_first(self, wanted: bool) -> None:
        inspector = self._views.inspector
        inspector.change_settings(assign(inspector.settings, "chat.thinking", "on" if wanted else "off"))

    def _send_command(self, effect: fx.Send) -> None:
        # The question is stored before its answer starts.
        asked = isinstance(effect.command, Generate) and effect.command.request == self.link.request
        self.app.worker.send(effect.command, self.chat.saving.question_kept if asked else None)

    def _restart_worker(self, effect: fx.RestartWorker) -> None:
        self.app.worker.start()

    def _take_answer(self, event: fx.AnswerEvent) -> None:
        """An answer is one of a race, or of a chat."""
        request = event.failed.request if isinstance(event, fx.AnswerFailed) else event.request
        (self.racing if request == self.racing.race.request else self._answering).take(event)

    def _show_link(self) -> None:
        self.asking.follow()
        answering = self._answering
        status = self._worker.show(
            self.link,
            answering.elsewhere,
            self.racing.recording,
            self.sharing.client,
            answering.settings_here,
        )
        answering.wait(status.waits_for)
        self.racing.show_blocked(self._views.composer.blocked_reason or strings.BLOCKED_BY_ANSWER)

    @property
    def _server_settings(self) -> Server:
        return self.home.preferences.now.settings.server

    def _is_kept(self, text: str) -> bool:
        """Whether the open chat or the library has a document with this text."""
        sent = self.chats.open.with_draft(NOTHING_WRITTEN).attachments
        in_chat = any(text == each.text for each in sent)
        return in_chat or self.library.documents.of_text(text) is not None

    def _open_chat(self) -> tuple[str, Prefill]:
        """The open chat's id, empty if the worker is not to save it, and its settings."""
        chat = self.chats.open
        settings = permitted(self.chat.settings.of(chat), self.home.preferences.now.settings.allowed)
        return chat.id if chat.turns and settings.prefill.save else "", settings.prefill

    def _coming_question(self) -> Generate:
        """The question as it would be sent now, with the text before the cursor if it is long."""
        composer, chat, edited = self._views.composer, self.chats.open, self.asking.readiness.edited
        draft, text = composer.message(), composer.edit.text_before_cursor.strip()
        text = text if len(text) >= _LONG_DRAFT else ""
        settings = permitted(self._views.inspector.settings, self.home.preferences.now.settings.allowed)
        documents = tuple(replace(each, tokens=0) for each in draft.attachments)
        before = chat.upto(edited)[:-1] if edited else chat.turns
        asked = chat.with_turns(before).ask("", replace(draft, content=text, attachments=documents))
        # An edit may be cancelled: the chat's saved cache stays.
        coming = Generate("", asked.messages_for_request(), settings, chat="" if edited else chat.id)
        return with_tools(coming, self.tool_calls.offered(chat), self.link.info)

    def _served_base(self) -> Settings:
        """Returns the settings of server requests: those of new chats without a system prompt and with dense
        prefill.
        """
        settings = permitted(self.chat.settings.defaults, self.home.preferences.now.settings.allowed)
        own = (
            ("chat.system_prompt", ""),
            ("prefill.mode", "off"),
            ("tables.learn", self._server_settings.learn),
        )
        return assign_all(settings, own)

    def _tell_died(self, state: ToolServerState) -> None:
        """Say in a chat with tools of a server that it ended."""
        if any(tool.server == state.server for tool in self.chats.open.tools):
            notice = strings.server_died(state.server, runs=state.phase == "ready")
            self._views.notice_bar.show_notice(notice)

    def _report_tools(self, error: RequestError) -> None:
        self.trouble.show_request_error(error, "tools")

    def _show_server(self, state: ServerState) -> None:
        self.trouble.withdraw(self._server_trouble)
        self._server_trouble = None
        if state.problem is not None:
            self._server_trouble = self.trouble.show_request_error(state.problem, "server")

    def _wire(self, page: ChatPage) -> None:
        views = self._views
        views.composer.attach_failed.connect(lambda error: self.trouble.show_request_error(error, "attach"))
        views.banner.remedy_requested.connect(self.remedy)
        self.chat.settings.changed.connect(self._on_settings)
        views.composer.think.turned.connect(self._think_first)
        self.chat.saving.chats_changed.connect(self.library.refresh)
        self.sharing.line_moved.connect(self._show_link)
        self.server.changed.connect(self._show_server)
        self._answering.answer_finished.connect(self._on_answer_finished)
        self.models.wait_ended.connect(self.asking.queue.stop_waiting)
        page.chat_shown.connect(self._on_chat_shown)
        self.tool_servers.died.connect(self._tell_died)
        self.link_changed.connect(lambda link: self.tool_choice.follow(link.info))

    def _on_answer_finished(self, turn_id: str) -> None:
        self.answer_finished.emit(turn_id)
        self.titles.answer_finished(self._answering.ended_in)
        if self.link.connected:  # not if the answer ended with the worker
            self.saved_chats.show_open()

    def _on_chat_shown(self) -> None:
        self.racing.close()
        self.trouble.show_chat(self.chats.open.id)
        self.saved_chats.show_open()
        self._on_settings(self._views.inspector.settings)

    def _on_settings(self, settings: Settings) -> None:
        """The open chat has other settings, or is another one."""
        self.app.meter.set_settings(settings)
        self.embedding.refresh()
        self.saved_chats.read_ahead_soon()
        self._show_link()
        self.models.changed.emit()
