"""The running answer: stored and shown from its first event to its last.

Invariant: the stored answer and the transcript get the same tokens in the same order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.entry import answer_entry
from app.chat.reading_map import read_so_far
from app.controllers import strings
from app.controllers.app import App
from app.controllers.live import LiveAnswer
from app.controllers.page import ChatPage
from app.session.chats.answers import placed
from app.session.chats.chats import UNFINISHED_NOTE
from app.session.chats.coalescer import Coalescer
from app.session.chats.conversation import Conversation, Turn, documents, uncounted
from app.session.tools import loop
from app.session.tools.calls import OfferedTool
from app.session.turn import effects as fx
from core.events import Failed, Finished, Gauges, Message, PrefillProgress, ReadingMap, Token
from core.settings import Settings


class TokenBatches(QObject):
    """Passes the tokens of an answer on to `write` in the batches of a `Coalescer`, at their times."""

    def __init__(self, write: Callable[[Sequence[Token]], None], parent: QObject) -> None:
        super().__init__(parent)
        self._write = write
        self._coalescer = Coalescer(time.monotonic)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._take)

    def add(self, token: Token) -> None:
        self._coalescer.add(token)
        self._take_soon()

    def end(self, *, write: bool = True) -> None:
        """Pass on all that waits, or discard it; the next token is another answer's."""
        self._timer.stop()
        if (tokens := self._coalescer.drain()) and write:
            self._write(tokens)

    def _take(self) -> None:
        if tokens := self._coalescer.take():
            self._write(tokens)
        self._take_soon()

    def _take_soon(self) -> None:
        due_in_s = self._coalescer.due_in_s()
        if due_in_s is not None and not self._timer.isActive():
            self._timer.start(round(due_in_s * 1000))


@dataclass(frozen=True)
class Running:
    """A running answer.

    `replaced` is the chat's last turn before it was answered again or continued. `after` is the last token
    of an answer that is continued. `keeps_draft`: the question is not from the composer, so that keeps its
    content. `offered` are the tools that the model may call; `free`: no grammar makes calls follow their
    schemas. `is_shown`: the transcript has the question already.
    """

    chat_id: str
    turn_id: str
    replaced: Turn | None = None
    after: Token | None = None
    keeps_draft: bool = False
    offered: tuple[OfferedTool, ...] = ()
    free: bool = False
    is_shown: bool = False


class AnswerController(QObject):
    """Stores the answer that was passed to `start()` and shows it, from its first token to its end.

    An answer of a chat that is not open is stored only. `take()` receives the state machine's effects for it.
    """

    answer_finished = Signal(str)  # turn id, however it ended
    calls_made = Signal(str)  # chat id: the answer calls tools, and continues after that
    prefill_progressed = Signal(object)  # PrefillProgress of the visible answer
    tokens_written = Signal()  # of the visible answer
    map_changed = Signal()  # the reading map of the visible answer, or all of it is read

    def __init__(self, app: App, page: ChatPage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trouble = app.trouble
        self._views = app.views
        self._chats = app.chats
        self._page = page
        self._meter = app.meter
        self._running: Running | None = None
        self.ended_in = ""  # the chat of the last answer that ended
        self._received = 0  # tokens of the running answer, without those of earlier parts
        self._instead: Callable[[], None] | None = None
        self._batches = TokenBatches(self._write, self)
        # Repeats a failed request in a way that may succeed. Returns whether it was repeated.
        self.ask_otherwise: Callable[[Running, Failed], bool] = lambda running, failed: False

    @property
    def running(self) -> Running | None:
        return self._running

    @property
    def elsewhere(self) -> str:
        """The title of the chat that is being answered, unless it is the open one."""
        if self._running is None or self._is_shown():
            return ""
        return self._chats.get(self._running.chat_id).title

    @property
    def settings_here(self) -> Settings | None:
        """The settings of the running answer if it is one of the open chat."""
        if self._running is None or not self._is_shown():
            return None
        asked_of = self._chats.open.turn(self._running.turn_id).answer.asked_of
        return asked_of.settings if asked_of else None

    def start(self, running: Running) -> None:
        """The next request is `running`; its turn is stored already."""
        self._running = running

    def stop_then(self, instead: Callable[[], None] | None) -> None:
        """Call `instead`, or nothing, once the answer that is being stopped has ended."""
        self._instead = instead

    def take(self, event: fx.AnswerEvent) -> None:
        """Handle the next event of the running answer, from `AnswerBegun` to its end."""
        match event:
            case fx.AnswerBegun():
                self._begin()
            case PrefillProgress():
                self._read(event)
            case ReadingMap():
                self._choose(event)
            case Token() if event.position == self._received:
                self._received += 1
                self._batches.add(self._placed(event))
            case Token():
                self._trouble.token_misplaced(event, self._received)
            case Gauges():
                self._measure(event)
            case Finished():
                self._finish(event)
            case fx.AnswerFailed(failed):
                self._fail(failed)
            case fx.AnswerCutOff():
                self._cut_off(closing=event.closing)

    # ---- its events

    def _begin(self) -> None:
        self._received = 0
        assert self._running
        running = self._running
        turn = self._chats.get(running.chat_id).turn(running.turn_id)
        entry = answer_entry(turn)
        self._page.live = LiveAnswer(running.chat_id, entry)
        if not self._is_shown():  # a queued message of another chat
            self._page.show_names()
            return
        if running.is_shown:
            self._views.transcript.replace_turn(turn.id, turn, entry)
        elif running.replaced is None:
            if not running.keeps_draft:
                self._views.composer.clear()
            self._views.transcript.add_user(turn.id, turn.user)
            self._views.transcript.add_answer(entry)
            self._page.turn_added.emit()
        else:
            self._views.transcript.replace_turn(running.replaced.id, turn, entry)
            self._page.show_readings()
            self._views.transcript.scroll_to_end()
        self._views.strip.reset()
        self._page.show_sources()
        self._page.show_context()
        self._page.show_kind()
        self._page.show_names()

    def wait(self, waits_for: str) -> None:
        """Show what the answer waits for, in words; empty while it is written."""
        live = self._page.live
        if live is None or live.entry.waits_for == waits_for:
            return
        if self._is_shown():
            self._views.transcript.show_waiting(live.entry.turn_id, waits_for)
        else:
            live.entry.show_waiting(waits_for)

    def _read(self, progress: PrefillProgress) -> None:
        live, shown = self._live, self._is_shown()
        live.show_figures(progress, self._views.strip if shown else None)
        if not live.entry.reading and progress.phase == "reading":
            live.held_tokens = progress.total_tokens
        if not shown:
            live.entry.show_progress(progress)
            return
        self._views.transcript.show_progress(live.entry.turn_id, progress)
        self._page.show_context()
        self.prefill_progressed.emit(progress)

    def _choose(self, reading: ReadingMap) -> None:
        """The passages to read were selected."""
        assert self._running
        live, turn_id = self._live, self._running.turn_id
        chat = self._chats.get(self._running.chat_id).read(turn_id, reading)
        self._chats.keep(chat)
        live.held_tokens = reading.held_tokens or reading.prompt_tokens
        texts = {d.source: (d.attachment.name, d.attachment.text) for d in documents(chat)}
        if self._is_shown():
            self._views.transcript.show_map(turn_id, reading, texts)
            self._page.show_readings()
            self._page.show_context()
            self.map_changed.emit()
        else:
            live.entry.show_map(reading, texts)

    def _measure(self, gauges: Gauges) -> None:
        self._live.held_tokens = gauges.context_used_tokens
        shown = self._is_shown()
        self._live.show_figures(self._of_whole_answer(gauges), self._views.strip if shown else None)
        if shown:
            self._page.show_context()

    @property
    def read_tokens(self) -> int | None:
        """How many of the kept tokens of the open chat's running prefill are read; None: there is none."""
        live = self._page.live_here
        if live is None or live.entry.reading is None or live.entry.has_tokens:
            return None
        progress = live.entry.reading_state.progress
        return read_so_far(progress) if progress and progress.phase == "reading" else 0

    @property
    def _live(self) -> LiveAnswer:
        assert self._page.live
        return self._page.live

    def _of_whole_answer(self, gauges: Gauges) -> Gauges:
        """`gauges`, for a continued answer with the time to the first token of its first part."""
        running = self._running
        if running is None or running.after is None:
            return gauges
        first = self._chats.get(running.chat_id).turn(running.turn_id).answer.tokens[0]
        return replace(gauges, ttft_s=first.time_s)

    # ---- its tokens

    def _placed(self, token: Token) -> Token:
        assert self._running
        after = self._running.after
        return placed(token, self._running.turn_id, after) if after else token

    def _write(self, tokens: Sequence[Token]) -> None:
        """Store and show the next tokens."""
        assert self._running
        turn_id = self._running.turn_id
        chat = self._chats.get(self._running.chat_id).write(turn_id, tokens)
        self._chats.keep(chat.with_context(self._live.held_tokens or chat.context_used_tokens))
        if not self._is_shown():
            self._live.entry.append(tokens)
            return
        begins = not self._live.entry.has_tokens
        self._views.transcript.append_tokens(turn_id, tokens)
        self.tokens_written.emit()
        if begins:
            self.map_changed.emit()  # all that was kept is read

    # ---- its end

    def _end(self) -> tuple[Running, Conversation, bool]:
        """Store the last tokens. Returns the answer, its chat, and whether that chat is open."""
        self._batches.end()
        assert self._running
        ended, shown = self._running, self._is_shown()
        self._running, self.ended_in = None, ended.chat_id
        self._page.end_live()
        return ended, self._chats.get(ended.chat_id), shown

    def _finish(self, finished: Finished) -> None:
        """The worker finished the answer."""
        ended, chat, shown = self._end()
        instead, self._instead = self._instead, None
        is_empty = finished.reason == "cancelled" and not finished.stats.tokens
        if is_empty and not (instead and shown) and self._undo(ended, chat, shown):
            self.answer_finished.emit(ended.turn_id)
            return
        chat = chat.finish(ended.turn_id, finished)
        if calls := loop.calls_of(chat.turn(ended.turn_id).answer, ended.offered):
            chat = loop.made(chat, ended.turn_id, calls, ended.offered)
        self._chats.keep(chat)
        if chat.turn(ended.turn_id).answer.status == "calling":
            self._call(chat, ended.turn_id, instead, shown)
            return
        if shown:
            whole = chat.turn(ended.turn_id).answer.finished or finished
            self._page.show_context()
            self._views.transcript.finish_answer(ended.turn_id, whole)
            self._views.strip.show_stats(whole.stats)
            self._page.show_sources()
            self._page.show_readings()
        self.answer_finished.emit(ended.turn_id)
        if instead is not None and shown:
            instead()

    def _call(
        self, chat: Conversation, turn_id: str, instead: Callable[[], None] | None, shown: bool
    ) -> None:
        """The answer waits for its calls."""
        if instead is not None and shown:  # it was to be stopped
            self._chats.keep(loop.stopped(chat, turn_id))
            self.end_calling(chat.id, turn_id)
            instead()
            return
        if shown:
            self._page.show_version(turn_id, chat.turn(turn_id))
        self.calls_made.emit(chat.id)

    def end_calling(self, chat_id: str, turn_id: str) -> None:
        """The answer `turn_id`, which called tools, has ended and is stored."""
        self.ended_in = chat_id
        if chat_id == self._chats.open.id:
            self._page.show_version(turn_id, self._chats.open.turn(turn_id))
        self.answer_finished.emit(turn_id)

    def _cut_off(self, *, closing: bool) -> None:
        """The worker died or the window closes. The tokens are kept."""
        self._instead = None
        ended, chat, shown = self._end()
        self._trouble.answer_lost(self._received, ended.chat_id)
        if ended.after and not self._received:
            self._undo(ended, chat, shown)
            self.answer_finished.emit(ended.turn_id)
            return
        note = UNFINISHED_NOTE if closing else strings.STOPPED_EARLY_NOTE
        self._chats.keep(chat.cut_off(ended.turn_id, note))
        if shown:
            self._views.transcript.finish_answer(ended.turn_id, None, note)
        self.answer_finished.emit(ended.turn_id)

    def _fail(self, failed: Failed) -> None:
        """The worker failed."""
        self._instead = None
        ended, chat, shown = self._end()
        if not self._received and self.ask_otherwise(ended, failed):
            return
        undone = not self._received and self._undo(ended, chat, shown)
        back = undone and (ended.replaced is None or self._is_back(chat.turn(ended.turn_id).user))
        if not undone:
            self._chats.keep(chat.fail(ended.turn_id, failed.message))
            if shown:
                self._views.transcript.finish_answer(ended.turn_id, None, failed.message)
        if back and failed.over_tokens:
            self._meter.show_refused(failed.over_tokens)  # the composer shows it and offers remedies
        else:
            self._trouble.show_failure(failed, ended.chat_id, text_is_back=back)
            if not shown:
                self._views.notice_bar.show_notice(
                    strings.failed_elsewhere(chat.title, failed.message), kind="warning"
                )
        self.answer_finished.emit(ended.turn_id)

    def _undo(self, ended: Running, chat: Conversation, shown: bool) -> bool:
        """Remove an answer without tokens, if that loses nothing. Returns whether it was removed.

        A new or edited question returns to the composer, unless that holds another message.
        """
        composer, replaced = self._views.composer, ended.replaced
        message = chat.turn(ended.turn_id).user
        returns = replaced is None or uncounted(message) != uncounted(replaced.user)
        if returns and not (shown and composer.is_empty and not self._page.edited):
            return False
        if replaced is not None:
            self._chats.keep(chat.with_turns((*chat.turns[:-1], replaced)))
            if shown:
                self._page.show_version(ended.turn_id, replaced)
        else:
            self._views.transcript.save_edit()
            self._chats.keep(self._chats.open.without(ended.turn_id))
            self._page.show()
        if returns:
            composer.set_message(message)
        return True

    def _is_back(self, message: Message) -> bool:
        """Whether the composer holds the sent message."""
        return uncounted(self._views.composer.message()) == uncounted(message)

    def _is_shown(self) -> bool:
        return self._running is not None and self._running.chat_id == self._chats.open.id
