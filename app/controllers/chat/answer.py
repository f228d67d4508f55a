"""AnswerController: the one running answer, from its first token to its end, on record and on the screen.

Invariant: an answer's record and the transcript get the same tokens in the same order. An answer
may run in a chat that is not open; then only the record grows. Knows no worker: what was heard
comes in from `RunningAnswer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.reading import reading_map
from app.chat.reading.reading_facts import skipped_places
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
from core.events import Failed, Finished, Gauges, Message, PrefillProgress, ReadingMap, Token


@dataclass(frozen=True)
class Running:
    """A running answer: its chat and turn, and the turns that it replaces if it is given again.

    `after` is the last token of an answer that is gone on with. `keeps_draft`: the question does not come
    out of the composer.
    """

    chat_id: str
    turn_id: str
    replaced: tuple[Turn, ...] | None = None
    after: Token | None = None
    keeps_draft: bool = False  # what is being written is another message


class AnswerController(QObject):
    """`start()` says which answer is meant by what comes."""

    answer_finished = Signal(str)  # turn id, however it ended
    reading_heard = Signal(object)  # PrefillProgress of the answer on the screen
    repeating = Signal()  # it has begun to repeat itself, once
    map_heard = Signal()  # it is known what is read for the answer on the screen

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
        self._instead: Callable[[], None] | None = None
        self._coalescer = Coalescer(time.monotonic)
        self._flush_timer = QTimer(self, singleShot=True)
        self._flush_timer.timeout.connect(lambda: self._flush())

    @property
    def running(self) -> Running | None:
        """The answer under way, if there is one."""
        return self._running

    @property
    def elsewhere(self) -> str:
        """The title of the chat that is being answered, if it is not the one on the screen."""
        if self._running is None or self._is_shown():
            return ""
        return self._chats.get(self._running.chat_id).title

    def start(self, running: Running) -> None:
        """What is asked next is `running`; its turn is in the chat already."""
        self._running = running
        self._repetition = Repetition()
        self._note = ""

    def note(self, text: str) -> None:
        """Why the running answer is being stopped."""
        self._note = text

    def stop_for(self, instead: Callable[[], None]) -> None:
        """The running answer is being stopped; when it has ended, `instead` is done."""
        self._instead = instead

    # ---- what is heard of it, as `AnswerListener`

    def begin(self) -> None:
        """It is on its way."""
        assert self._running
        if not self._is_shown():  # a queued message of another chat
            self._page.show_names()
            return
        if self._running.replaced is None:
            if not self._running.keeps_draft:
                self._views.composer.clear()
            self._page.add_turn(self._chats.open.turn(self._running.turn_id))
        else:
            self._page.show_transcript()
        self._views.strip.reset()
        self._page.show_kind()
        self._page.show_names()

    def read(self, progress: PrefillProgress) -> None:
        """Its prompt is being read."""
        if self._is_shown():
            self._show_reading(progress)

    def choose(self, reading: ReadingMap) -> None:
        """What of the prompt is read is chosen."""
        assert self._running
        chat = self._chats.get(self._running.chat_id).read(self._running.turn_id, reading)
        self._chats.keep(chat)
        if self._is_shown():
            texts = {d.source: (d.attachment.name, d.attachment.text) for d in documents(chat)}
            self._views.transcript.show_map(self._running.turn_id, reading, texts)
            self.map_heard.emit()

    def write(self, token: Token) -> None:
        """One token more."""
        if self._repetition is not None and self._repetition.add(token.id):
            self._repetition = None
            self.repeating.emit()
        self._coalescer.add(self._placed(token))
        self._flush_soon()

    def measure(self, gauges: Gauges) -> None:
        """Live figures."""
        self._note_context(gauges.context_used_tokens)
        if self._is_shown():
            self._views.strip.show_gauges(self._of_whole_answer(gauges))

    def _of_whole_answer(self, gauges: Gauges) -> Gauges:
        """What is written on has had its first token before: the figures under it say so, too."""
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
        # Skipped tokens keep their places in the context, unless passages are closed up.
        if reading:
            held_tokens = reading.held_tokens or reading.prompt_tokens
            self._meter.show_used(held_tokens, reading_map.skipped_places(reading))
        else:
            self._meter.show_used(progress.total_tokens)
        self.reading_heard.emit(progress)

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
            self._meter.show_used(used_tokens, reading_map.skipped_places(reading) if reading else 0)

    # ---- its end

    def _end(self) -> tuple[Running, Conversation, bool]:
        """The last tokens are in; what ended, its chat, and whether that is on the screen."""
        self._flush(all_of_it=True)
        assert self._running
        ended, shown = self._running, self._is_shown()
        self._running = None
        if shown:
            self._views.strip.show_end()
        return ended, self._chats.get(ended.chat_id), shown

    def finish(self, finished: Finished) -> None:
        """It ended as the worker meant it to."""
        ended, chat, shown = self._end()
        instead, self._instead = self._instead, None
        wordless = finished.reason == "cancelled" and not finished.stats.tokens
        if wordless and instead is None and self._undo(ended, chat, shown):
            self.answer_finished.emit(ended.turn_id)
            return
        note = self._note if finished.reason == "cancelled" else ""
        chat = chat.finish(ended.turn_id, finished, note)
        self._chats.keep(chat)
        if shown:
            whole = chat.turn(ended.turn_id).answer.finished or finished
            self._meter.show_used(whole.stats.context_used_tokens, skipped_places(whole.stats))
            self._views.transcript.finish_answer(ended.turn_id, whole, note)
            self._views.strip.show_stats(whole.stats)
            self._page.show_readings()
        self.answer_finished.emit(ended.turn_id)
        if instead is not None and shown:
            instead()

    def cut_off(self, tokens: int, *, closing: bool) -> None:
        """The worker is gone, or the window closes; the `tokens` that arrived stay."""
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
        """The worker refused or gave up on it, after `tokens` tokens."""
        self._instead = None
        ended, chat, shown = self._end()
        undone = tokens == 0 and self._undo(ended, chat, shown)
        back = undone and (ended.replaced is None or self._is_back(chat.turn(ended.turn_id).user))
        if not undone:
            self._chats.keep(chat.fail(ended.turn_id, failed.message))
            if shown:
                self._views.transcript.finish_answer(ended.turn_id, None, failed.message)
        if back and failed.over_tokens:
            self._meter.show_refused(failed.over_tokens)  # said in the composer, where it can be mended
        else:
            self._trouble.show_failure(failed, text_is_back=back)
        self.answer_finished.emit(ended.turn_id)

    def _undo(self, ended: Running, chat: Conversation, shown: bool) -> bool:
        """Make it as if an answer without a word had not been asked for, if that loses nothing.

        A new question goes back into the composer, unless something else is being written there.
        """
        composer = self._views.composer
        if ended.replaced is not None:
            self._chats.keep(chat.with_turns(ended.replaced))
            if shown:
                self._page.show()
                message = chat.turn(ended.turn_id).user
                # An edited message: the old one is in the chat again, the new one in the composer.
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
        """Whether the composer holds what was sent."""
        return self._views.composer.message() == message

    def _is_shown(self) -> bool:
        return self._running is not None and self._running.chat_id == self._chats.open.id
