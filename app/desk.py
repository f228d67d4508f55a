"""Desk: carries out on the window's widgets what the session's state machine asks for.

Everything heard and everything wanted goes through `take()`: the pure machine answers with the
next state and effects, and each effect has one method here. It owns the chats, the tokens on
their way to the screen, and which answer is running. It owns no process: commands leave by
`send`, a new worker is asked for by `restart`.

Invariant: an answer's record and the transcript get the same tokens in the same order.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from app import strings
from app.context_meter import ContextMeter
from app.session import effects as fx
from app.session.chats import Chats
from app.session.coalescer import Coalescer
from app.session.conversation import Conversation, Turn
from app.session.intents import Count, Load, Restart, Stop, Submit
from app.session.status import Status, status_of
from app.session.trouble import (
    of_death,
    of_failed_load,
    of_failure,
    of_silence,
    of_unreadable,
)
from app.session.turn import Input, Link, Phase, advance
from app.views import Views
from core.errors import RequestError
from core.events import Command, Message, failure

_LOG = logging.getLogger("draftlight.window")


@dataclass(frozen=True)
class _Answering:
    """The running answer: its chat and turn, and the turns that a regeneration replaced."""

    chat_id: str
    turn_id: str
    replaced: tuple[Turn, ...] | None = None


class Desk(QObject):
    """`chats` is what is open and what was said; widgets are reached through `views` only."""

    link_changed = Signal(object)  # session.turn.Link, after every step
    answer_finished = Signal(str)  # turn id, however it ended

    def __init__(
        self,
        views: Views,
        model: str,
        send: Callable[[Command], None],
        restart: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._send = send
        self._restart = restart
        self._link = Link(model)
        self.chats = Chats()
        self._answering: _Answering | None = None
        self._drafts: dict[str, Message] = {}
        self._coalescer = Coalescer(time.monotonic)
        self._shown_status: Status | None = None
        self._memory = (0, 0)
        self._flush_timer = self._single_shot(lambda: self._flush())
        self._meter = ContextMeter(views.composer, self._count, self)
        self._wire()
        self._show_chat()
        self._show_link()

    @property
    def link(self) -> Link:
        """The worker and its turn, as they stand."""
        return self._link

    def take(self, given: Input) -> None:
        """One thing heard or wanted: step the machine and carry out what it asks for."""
        step = advance(self._link, given)
        changed, self._link = step.link != self._link, step.link
        for effect in step.effects:
            self._carry_out(effect)
        if changed:
            self._meter.set_idle(self._link.phase is Phase.READY)
            self._show_link()
            self.link_changed.emit(self._link)

    # ---- what the person wants

    def submit(self, message: Message) -> None:
        """Ask `message` in the open chat."""
        if self._link.phase is Phase.READY:
            turn_id = self.chats.new_turn_id()
            self._ask(self.chats.open.ask(turn_id, message), _Answering(self.chats.open.id, turn_id))

    def regenerate(self, turn_id: str = "") -> None:
        """Answer a question of the open chat again: the last one if `turn_id` is empty.

        An earlier one continues in a new chat, so that what came after it is not lost.
        """
        chat = self.chats.open
        if self._link.phase is not Phase.READY or not chat.turns:
            return
        if turn_id and turn_id != chat.turns[-1].id:
            self._leave_chat()
            chat = self.chats.start(chat.upto(turn_id))
            self._show_chat()
        new_id = self.chats.new_turn_id()
        self._ask(chat.ask_again(new_id), _Answering(chat.id, new_id, chat.turns))

    def stop(self) -> None:
        """End the running answer, if there is one."""
        if self._link.busy:
            self.take(Stop())

    def restart(self) -> None:
        """A new worker instead of the one that is dead or stuck."""
        self.take(Restart())

    def remedy(self, name: str) -> None:
        """What the banner offers."""
        if name == "restart":
            self.restart()
        elif name == "load" and self._link.phase in (Phase.READY, Phase.NO_MODEL):
            self._views.banner.clear()
            self.take(Load(self._link.model))

    def new_chat(self) -> None:
        """Open an empty chat."""
        self._leave_chat()
        self.chats.start()
        self._show_chat()
        self._views.composer.edit.setFocus()

    def select_chat(self, chat_id: str) -> None:
        """Open another chat."""
        if chat_id != self.chats.open.id:
            self._leave_chat()
            self.chats.select(chat_id)
            self._show_chat()

    # ---- effects

    def _carry_out(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Send(command):
                self._send(command)
            case fx.RestartWorker():
                self._meter.forget()
                self._views.banner.clear()
                self._views.first_page.set_loading("", None)
                self._restart()
            case fx.LoadStarted(_, stage, fraction):
                self._views.first_page.set_loading(stage, fraction)
            case fx.ModelReady(info):
                self._meter.set_model(info)
                self._views.first_page.set_model_name(info.name)
                self._views.first_page.set_ready()
                self._views.inspector.set_model(info)
                self._views.banner.clear()
            case fx.AnswerBegun(request):
                self._begin(request)
            case fx.ReadingHeard(progress):
                if self._is_shown():
                    self._views.strip.show_prefill(progress)
                    self._views.transcript.show_progress(progress.request, progress)
            case fx.TokenHeard(token):
                self._coalescer.add(token)
                self._flush_soon()
            case fx.GaugesHeard(gauges):
                self._note_context(gauges.context_used_tokens)
                if self._is_shown():
                    self._views.strip.show_gauges(gauges)
            case fx.AnswerFinished():
                self._finish(effect)
            case fx.AnswerFailed():
                self._fail(effect)
            case fx.AnswerCutOff():
                self._cut_off()
            case fx.Counted(request, tokens):
                self._meter.take_count(request, tokens)
            case fx.MemoryHeard(used_bytes, limit_bytes):
                self._memory = (used_bytes, limit_bytes)
                self._views.strip.set_memory(used_bytes, limit_bytes)
                self._show_worker()
            case _:
                self._carry_out_trouble(effect)

    def _carry_out_trouble(self, effect: fx.Effect) -> None:
        banner = self._views.banner
        match effect:
            case fx.LoadFailed(failed):
                banner.show_trouble(of_failed_load(failed))
            case fx.TroubleHeard(failed):
                banner.show_trouble(of_failure(failed))
            case fx.WorkerDied():
                self._meter.forget()
                self._memory = (0, self._memory[1])
                banner.show_trouble(of_death(effect))
            case fx.WorkerStuck():
                banner.show_trouble(of_silence(effect))
            case fx.SilenceBroken():
                if banner.trouble and banner.trouble.passes:
                    banner.clear()
            case fx.WorkerMistake(message):
                _LOG.warning("The worker broke the protocol: %s", message)
                if banner.trouble is None:
                    banner.show_trouble(of_unreadable(message))
            case fx.WindowMistake(message):
                _LOG.error("The window broke the protocol: %s", message)
            case _:
                raise TypeError(f"No one carries out {type(effect).__name__}.")

    # ---- one answer

    def _ask(self, chat: Conversation, answering: _Answering) -> None:
        self.chats.keep(chat)
        self._answering = answering
        self._views.banner.clear()
        self.take(Submit(answering.turn_id, chat.messages_for_request(), self._views.inspector.settings))

    def _begin(self, turn_id: str) -> None:
        assert self._answering
        if self._answering.replaced is None:
            self._views.composer.clear()
            self._views.transcript.add_user(turn_id, self.chats.open.turn(turn_id).user)
            self._views.transcript.begin_answer(turn_id, self._views.inspector.settings.drafting.drafter)
        else:
            self._show_transcript()
        self._views.strip.reset()
        self._show_page()
        self._show_names()

    def _flush_soon(self) -> None:
        due_in_s = self._coalescer.due_in_s()
        if due_in_s is not None and not self._flush_timer.isActive():
            self._flush_timer.start(round(due_in_s * 1000))

    def _flush(self, all_of_it: bool = False) -> None:
        tokens = self._coalescer.drain() if all_of_it else self._coalescer.take()
        if tokens and self._answering:
            turn_id = self._answering.turn_id
            self.chats.keep(self.chats.get(self._answering.chat_id).write(turn_id, tokens))
            if self._is_shown():
                self._views.transcript.append_tokens(turn_id, tokens)
        if all_of_it:
            self._flush_timer.stop()
        else:
            self._flush_soon()

    def _end(self) -> tuple[_Answering, Conversation, bool]:
        """The last tokens are in; what ended, its chat, and whether that is on the screen."""
        self._flush(all_of_it=True)
        assert self._answering
        ended, shown = self._answering, self._is_shown()
        self._answering = None
        return ended, self.chats.get(ended.chat_id), shown

    def _finish(self, effect: fx.AnswerFinished) -> None:
        finished = effect.finished
        ended, chat, shown = self._end()
        self.chats.keep(chat.finish(ended.turn_id, finished))
        if shown:
            self._meter.show_used(finished.stats.context_used_tokens)
            self._views.transcript.finish_answer(ended.turn_id, finished)
            self._views.strip.show_stats(finished.stats)
        self.answer_finished.emit(ended.turn_id)

    def _cut_off(self) -> None:
        ended, chat, shown = self._end()
        self.chats.keep(chat.cut_off(ended.turn_id, strings.STOPPED_EARLY_NOTE))
        if shown:
            self._views.transcript.finish_answer(ended.turn_id, None, strings.STOPPED_EARLY_NOTE)
        self.answer_finished.emit(ended.turn_id)

    def _fail(self, effect: fx.AnswerFailed) -> None:
        failed, composer = effect.failed, self._views.composer
        ended, chat, shown = self._end()
        untouched = shown and not composer.text and not composer.attachments
        back = effect.tokens == 0 and ended.replaced is None and untouched
        if back:
            # Nothing was answered and nothing else is being written: as if it had not been sent.
            message = chat.turn(ended.turn_id).user
            self.chats.keep(chat.without(ended.turn_id))
            self._show_chat()
            composer.set_message(message)
        elif effect.tokens == 0 and ended.replaced is not None:
            self.chats.keep(chat.with_turns(ended.replaced))
            if shown:
                self._show_chat()
        else:
            self.chats.keep(chat.fail(ended.turn_id, failed.message))
            if shown:
                self._views.transcript.finish_answer(ended.turn_id, None, failed.message)
        self._views.banner.show_trouble(of_failure(failed, text_is_back=back))
        self.answer_finished.emit(ended.turn_id)

    def _is_shown(self) -> bool:
        return self._answering is not None and self._answering.chat_id == self.chats.open.id

    # ---- chats on the screen

    def _leave_chat(self) -> None:
        composer = self._views.composer
        self._drafts[self.chats.open.id] = Message("user", composer.text, composer.attachments)

    def _show_chat(self) -> None:
        """Everything of the open chat: transcript, draft, figures, names."""
        self._show_transcript()
        self._views.composer.set_message(self._drafts.pop(self.chats.open.id, Message("user", "")))
        self._views.strip.reset()
        last = self.chats.open.turns[-1].answer if self.chats.open.turns else None
        if last and last.finished:
            self._views.strip.show_stats(last.finished.stats)
        self._show_page()
        self._show_names()
        self._show_link()
        self._meter.show_used(self.chats.open.context_used_tokens)

    def _show_transcript(self) -> None:
        transcript = self._views.transcript
        transcript.clear()
        for turn in self.chats.open.turns:
            transcript.add_user(turn.id, turn.user)
            transcript.begin_answer(turn.id, self._views.inspector.settings.drafting.drafter)
            if turn.answer.tokens:
                transcript.append_tokens(turn.id, turn.answer.tokens)
            if turn.answer.over:
                transcript.finish_answer(turn.id, turn.answer.finished, turn.answer.note)

    def _show_page(self) -> None:
        empty = not self.chats.open.turns
        self._views.show_first_page(empty)
        self._views.composer.set_placeholder(strings.ASK_FIRST if empty else strings.ASK_NEXT)

    def _show_names(self) -> None:
        self._views.header.set_title(self.chats.open.title or strings.NEW_CHAT)
        self._views.show_chats(self.chats.listed(), self.chats.open.id)

    # ---- the worker on the screen

    def _show_link(self) -> None:
        """Only what is new: each token makes a new link, and hardly any of them another status."""
        status = self._status()
        if status == self._shown_status:
            return
        self._shown_status = status
        composer = self._views.composer
        if status.composer == "idle":
            composer.set_idle()
        elif status.composer == "busy":
            composer.set_busy()
        else:
            composer.set_blocked(status.reason)
        self._views.show_hint(composer.blocked_reason)
        self._views.transcript.set_regenerable(status.composer == "idle")
        self._views.header.set_subtitle(status.subtitle)
        self._views.strip.set_stale(status.stale)
        self._views.inspector.set_footer(strings.AFTER_RESTART if status.stale else strings.NEXT_ANSWER)
        self._show_worker()

    def _show_worker(self) -> None:
        status = self._status()
        used_bytes, limit_bytes = self._memory
        detail = strings.worker_detail(status.worker_state, used_bytes, limit_bytes)
        self._views.sidebar.set_worker(status.worker_title, detail, status.level)

    def _status(self) -> Status:
        elsewhere = ""
        if self._answering and not self._is_shown():
            elsewhere = self.chats.get(self._answering.chat_id).title
        return status_of(self._link, self._views.inspector.settings, answering_elsewhere=elsewhere)

    def _note_context(self, used_tokens: int) -> None:
        assert self._answering
        chat = self.chats.get(self._answering.chat_id)
        self.chats.keep(chat.with_context(used_tokens))
        if self._is_shown():
            self._meter.show_used(used_tokens)

    def _count(self, intents: tuple[Count, ...]) -> None:
        for intent in intents:
            self.take(intent)

    # ---- wiring

    def _wire(self) -> None:
        views = self._views
        views.composer.message_submitted.connect(self.submit)
        views.composer.stop_requested.connect(self.stop)
        views.composer.attach_failed.connect(self._show_attach_failure)
        views.transcript.regenerate_requested.connect(self.regenerate)
        views.banner.remedy_requested.connect(self.remedy)
        views.inspector.settings_changed.connect(lambda settings: self._show_link())
        views.sidebar.new_chat_requested.connect(self.new_chat)
        views.sidebar.chat_selected.connect(self.select_chat)
        views.header.new_chat_requested.connect(self.new_chat)
        views.first_page.example_chosen.connect(self._take_example)

    def _take_example(self, text: str) -> None:
        self._views.composer.set_text(text)
        self._views.composer.edit.setFocus()

    def _show_attach_failure(self, error: RequestError) -> None:
        self._views.banner.show_trouble(of_failure(failure(error, command="attach")))

    def _single_shot(self, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(slot)
        return timer
