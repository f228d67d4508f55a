"""AnswerController: stores the running answer and shows it, from its first token to its end.

Invariant: the stored answer and the transcript get the same tokens in the same order. The answer may belong
to a chat that is not open; then it is stored only. Events come from `RunningAnswer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.chat import reading_map
from app.chat.reading_map import skipped_in_answer
from app.controllers.chat import strings
from app.controllers.chat.chat_page import ChatPage
from app.controllers.chat.context_meter import ContextMeter
from app.controllers.trouble import TroubleController
from app.controllers.views import Views
from app.session.chats.chats import UNFINISHED_NOTE, Chats
from app.session.chats.coalescer import Coalescer, Repetition
from app.session.chats.continuing import placed
from app.session.chats.conversation import Conversation, Turn
from app.session.chats.reading import documents
from core.errors import RequestError
from core.events import (
    AnswerCited,
    Failed,
    Finished,
    Gauges,
    Message,
    PrefillProgress,
    ReadingMap,
    Token,
)

_UNCITED = 4  # ended answers that may still be cited


@dataclass(frozen=True)
class Running:
    """A running answer.

    `replaced` are the chat's turns before a question was answered again. `after` is the last token of an
    answer that is continued. `keeps_draft`: the question is not from the composer, so that keeps its content.
    """

    chat_id: str
    turn_id: str
    replaced: tuple[Turn, ...] | None = None
    after: Token | None = None
    keeps_draft: bool = False


class AnswerController(QObject):
    """Handles the events of the answer that was passed to `start()`."""

    answer_finished = Signal(str)  # turn id, however it ended
    prefill_progressed = Signal(object)  # PrefillProgress of the visible answer
    repeating = Signal()  # once per answer that repeats itself
    map_changed = Signal()  # the reading map of the visible answer

    def __init__(
        self,
        views: Views,
        chats: Chats,
        page: ChatPage,
        meter: ContextMeter,
        trouble: TroubleController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._trouble = trouble
        self._views = views
        self._chats = chats
        self._page = page
        self._meter = meter
        self._running: Running | None = None
        self._repetition: Repetition | None = None
        self._note = ""
        self._uncited: dict[str, tuple[Running, int]] = {}  # ended answers and where the last part began
        self._instead: Callable[[], None] | None = None
        self._coalescer = Coalescer(time.monotonic)
        self._flush_timer = QTimer(self, singleShot=True)
        self._flush_timer.timeout.connect(lambda: self._flush())

    @property
    def running(self) -> Running | None:
        return self._running

    @property
    def elsewhere(self) -> str:
        """The title of the chat that is being answered, unless it is the open one."""
        if self._running is None or self._is_shown():
            return ""
        return self._chats.get(self._running.chat_id).title

    def start(self, running: Running) -> None:
        """The next request is `running`; its turn is stored already."""
        self._running = running
        self._repetition = Repetition()
        self._note = ""

    def note(self, text: str) -> None:
        """Sets the note for the answer that is being stopped."""
        self._note = text

    def stop_then(self, instead: Callable[[], None]) -> None:
        """Call `instead` once the answer that is being stopped has ended."""
        self._instead = instead

    # ---- events, as `AnswerListener`

    def begin(self) -> None:
        assert self._running
        if not self._is_shown():  # a queued message of another chat
            self._page.show_names()
            return
        if self._running.replaced is None:
            if not self._running.keeps_draft:
                self._views.composer.clear()
            self._page.add_turn(self._chats.open.turn(self._running.turn_id))
        else:
            turn = self._chats.open.turn(self._running.turn_id)
            self._page.restart_turn(self._running.replaced[-1].id, turn)
        self._views.strip.reset()
        self._page.show_kind()
        self._page.show_names()

    def read(self, progress: PrefillProgress) -> None:
        if self._is_shown():
            self._show_reading(progress)

    def choose(self, reading: ReadingMap) -> None:
        """The passages to read were selected."""
        assert self._running
        chat = self._chats.get(self._running.chat_id).read(self._running.turn_id, reading)
        self._chats.keep(chat)
        if self._is_shown():
            texts = {d.source: (d.attachment.name, d.attachment.text) for d in documents(chat)}
            self._views.transcript.show_map(self._running.turn_id, reading, texts)
            self.map_changed.emit()

    def write(self, token: Token) -> None:
        if self._repetition is not None and self._repetition.add(token.id):
            self._repetition = None
            self.repeating.emit()
        self._coalescer.add(self._placed(token))
        self._flush_soon()

    def measure(self, gauges: Gauges) -> None:
        self._note_context(gauges.context_used_tokens)
        if self._is_shown():
            self._views.strip.show_gauges(self._of_whole_answer(gauges))

    def _of_whole_answer(self, gauges: Gauges) -> Gauges:
        """`gauges`, for a continued answer with the time to the first token of its first part."""
        running = self._running
        if running is None or running.after is None:
            return gauges
        first = self._chats.get(running.chat_id).turn(running.turn_id).answer.tokens[0]
        return replace(gauges, ttft_s=first.time_s)

    # ---- its tokens

    def _show_reading(self, progress: PrefillProgress) -> None:
        assert self._running
        self._views.strip.show_prefill(progress)
        self._views.transcript.show_progress(self._running.turn_id, progress)
        reading = self._chats.open.turn(self._running.turn_id).answer.reading
        # Skipped tokens keep their positions in the context, unless the kept ones are contiguous.
        if reading:
            held_tokens = reading.held_tokens or reading.prompt_tokens
            self._meter.show_used(held_tokens, reading_map.skipped_positions(reading))
        else:
            self._meter.show_used(progress.total_tokens)
        self.prefill_progressed.emit(progress)

    def _placed(self, token: Token) -> Token:
        assert self._running
        after = self._running.after
        return placed(token, self._running.turn_id, after) if after else token

    def _flush_soon(self) -> None:
        due_in_s = self._coalescer.due_in_s()
        if due_in_s is not None and not self._flush_timer.isActive():
            self._flush_timer.start(round(due_in_s * 1000))

    def _flush(self, all_of_it: bool = False) -> None:
        tokens = self._coalescer.drain() if all_of_it else self._coalescer.take()
        if tokens and self._running:
            turn_id = self._running.turn_id
            self._chats.keep(self._chats.get(self._running.chat_id).write(turn_id, tokens))
            if self._is_shown():
                self._views.transcript.append_tokens(turn_id, tokens)
        if all_of_it:
            self._flush_timer.stop()
        else:
            self._flush_soon()

    def _note_context(self, used_tokens: int) -> None:
        assert self._running
        self._chats.keep(self._chats.get(self._running.chat_id).with_context(used_tokens))
        if self._is_shown():
            reading = self._chats.open.turn(self._running.turn_id).answer.reading
            self._meter.show_used(used_tokens, reading_map.skipped_positions(reading) if reading else 0)

    # ---- its end

    def _end(self) -> tuple[Running, Conversation, bool]:
        """Store the last tokens. Returns the answer, its chat, and whether that chat is open."""
        self._flush(all_of_it=True)
        assert self._running
        ended, shown = self._running, self._is_shown()
        self._running = None
        if shown:
            self._views.strip.show_end()
        return ended, self._chats.get(ended.chat_id), shown

    def finish(self, finished: Finished) -> None:
        """The worker finished the answer."""
        ended, chat, shown = self._end()
        instead, self._instead = self._instead, None
        is_empty = finished.reason == "cancelled" and not finished.stats.tokens
        if is_empty and instead is None and self._undo(ended, chat, shown):
            self.answer_finished.emit(ended.turn_id)
            return
        note = self._note if finished.reason == "cancelled" else ""
        if chat.attachments:
            self._uncited[finished.request] = ended, chat.turn(ended.turn_id).answer.begun_characters
            for old in list(self._uncited)[:-_UNCITED]:
                del self._uncited[old]
        chat = chat.finish(ended.turn_id, finished, note)
        self._chats.keep(chat)
        if shown:
            whole = chat.turn(ended.turn_id).answer.finished or finished
            self._meter.show_used(whole.stats.context_used_tokens, skipped_in_answer(whole.stats))
            self._views.transcript.finish_answer(ended.turn_id, whole, note)
            self._views.strip.show_stats(whole.stats)
            self._views.legend.show_sources(chat.turn(ended.turn_id).answer.tokens)
            self._page.show_readings()
        self.answer_finished.emit(ended.turn_id)
        if instead is not None and shown:
            instead()

    def cite(self, event: AnswerCited) -> None:
        """The worker found the supports of an ended answer. Its chat may be closed or deleted meanwhile."""
        ended, begun = self._uncited.pop(event.request, (None, 0))
        if ended is None:
            return
        citations = [replace(each, end=begun + each.end) for each in event.citations]
        with suppress(KeyError, RequestError):
            chat = self._chats.get(ended.chat_id)
            cited = chat.cite(ended.turn_id, citations)
            self._chats.keep(cited)
            answer = cited.turn(ended.turn_id).answer
            if cited.id == self._chats.open.id and answer.over and answer.finished:
                self._views.transcript.cite_answer(ended.turn_id, answer.finished)

    def cut_off(self, tokens: int, *, closing: bool) -> None:
        """The worker died or the window closes, after `tokens` tokens, which are kept."""
        self._instead = None
        ended, chat, shown = self._end()
        if ended.after and not tokens:
            self._undo(ended, chat, shown)
            self.answer_finished.emit(ended.turn_id)
            return
        note = UNFINISHED_NOTE if closing else strings.STOPPED_EARLY_NOTE
        self._chats.keep(chat.cut_off(ended.turn_id, note))
        if shown:
            self._views.transcript.finish_answer(ended.turn_id, None, note)
        self.answer_finished.emit(ended.turn_id)

    def fail(self, failed: Failed, tokens: int) -> None:
        """The worker failed after `tokens` tokens."""
        self._instead = None
        ended, chat, shown = self._end()
        undone = tokens == 0 and self._undo(ended, chat, shown)
        back = undone and (ended.replaced is None or self._is_back(chat.turn(ended.turn_id).user))
        if not undone:
            self._chats.keep(chat.fail(ended.turn_id, failed.message))
            if shown:
                self._views.transcript.finish_answer(ended.turn_id, None, failed.message)
        if back and failed.over_tokens:
            self._meter.show_refused(failed.over_tokens)  # the composer shows it and offers remedies
        else:
            self._trouble.show_failure(failed, text_is_back=back)
        self.answer_finished.emit(ended.turn_id)

    def _undo(self, ended: Running, chat: Conversation, shown: bool) -> bool:
        """Remove an answer without tokens, if that loses nothing. Returns whether it was removed.

        A new question returns to the composer, unless that holds another message.
        """
        composer = self._views.composer
        if ended.replaced is not None:
            self._chats.keep(chat.with_turns(ended.replaced))
            if shown:
                self._page.show()
                message = chat.turn(ended.turn_id).user
                # An edited message: the chat has the old text again, the composer gets the new one.
                if message != ended.replaced[-1].user and not (composer.text or composer.attachments):
                    composer.set_message(message)
            return True
        if not shown or composer.text or composer.attachments:
            return False
        message = chat.turn(ended.turn_id).user
        self._chats.keep(chat.without(ended.turn_id))
        self._page.show()
        composer.set_message(message)
        return True

    def _is_back(self, message: Message) -> bool:
        """Whether the composer holds the sent message."""
        return self._views.composer.message() == message

    def _is_shown(self) -> bool:
        return self._running is not None and self._running.chat_id == self._chats.open.id
