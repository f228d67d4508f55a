"""The page of the open chat, and the running answer, which it shows if that belongs to the open chat.

Everything is built from the stored chat. Invariant: the stored answer and the transcript get the same tokens
in the same order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.chat import strings as chat_strings
from app.chat.entry import AnswerEntry, answer_entry
from app.chat.reading_map import passages_of, read_so_far
from app.controllers import strings
from app.controllers.app import App
from app.controllers.live import LiveAnswer
from app.panels import strings as panels_strings
from app.session.chats.answers import placed
from app.session.chats.chats import UNFINISHED_NOTE
from app.session.chats.coalescer import Coalescer
from app.session.chats.conversation import (
    NOTHING_WRITTEN,
    Conversation,
    Turn,
    documents,
    merged,
    uncounted,
)
from app.session.context import held
from app.session.turn import effects as fx
from core.events import (
    Failed,
    Finished,
    Gauges,
    Message,
    PrefillProgress,
    ReadingMap,
    Token,
)
from core.settings import Settings

_DRAFT_AFTER_MS = 500


class ChatPage(QObject):
    """Shows the chat that is open in `chats`: transcript, draft, figures and title.

    The draft is stored within 0.5 s of a change, so that a crash loses no more, and when its chat is left.
    """

    chat_shown = Signal()  # another chat, or the same one rebuilt
    turn_added = Signal()  # or replaced by another version
    names_changed = Signal()  # titles, or the list of chats

    def __init__(self, app: App, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views = app.views
        self._composer = app.views.composer
        self._chats = app.chats
        self._meter = app.meter
        self.edited = ""  # id of the turn whose message is edited in the composer; empty if none is
        self._unedited = NOTHING_WRITTEN  # that message, uncounted
        self._shown = ""  # id of the chat whose draft is in the composer
        self.live: LiveAnswer | None = None  # the running answer, of whatever chat
        self._ended: LiveAnswer | None = None  # the one before
        # By chat, the files that were being read for its draft when that left the composer.
        self._files: dict[str, tuple[Path, ...]] = {}
        self._draft_timer = QTimer(self, interval=_DRAFT_AFTER_MS, singleShot=True)
        self._draft_timer.timeout.connect(self._store_draft)
        self._composer.draft_changed.connect(self._store_draft_soon)

    def keep_draft(self, turn_id: str = "") -> str:
        """Store an answer that is being edited as a version, and the composer's content as the draft, which
        are about to be replaced by others.

        A sent message that is edited is added to the draft if it was changed. Returns the new id of the turn
        `turn_id`, by default the last one: an edited answer gets another. Raises `KeyError`.
        """
        turns = self._chats.open.turns
        place = len(self._chats.open.upto(turn_id) if turn_id else turns) - 1
        self._views.transcript.save_edit()
        self._store_draft()
        written, chat = uncounted(self._composer.draft), self._chats.open
        if self.edited and written != self._unedited:
            self._chats.keep(chat.with_draft(merged((chat.draft, written))))
            self._unedited = written
        if self.edited:
            self._put_files_aside()
        return chat.turns[place].id if turns else ""

    def _store_draft_soon(self) -> None:
        if not self._draft_timer.isActive():
            self._draft_timer.start()

    def _store_draft(self) -> None:
        """Store the composer's content as the chat's draft, unless a sent message is edited."""
        self._draft_timer.stop()
        draft, chat = self._composer.draft, self._chats.open
        if not self.edited and draft != chat.draft:
            self._chats.keep(chat.with_draft(draft))

    def begin_edit(self, turn_id: str) -> None:
        """Put a sent message into the composer, whose draft is kept in the stored chat until `show_draft`."""
        turn = self._chats.open.turn(turn_id)
        if not self.edited:
            self._put_files_aside()
        self._composer.set_message(turn.user)
        self._composer.edit.document().clearUndoRedoStacks()
        self.edited, self._unedited = turn_id, uncounted(self._composer.draft)
        self.show_context(turn_id)
        is_last = turn == self._chats.open.turns[-1]
        self._views.editing_bar.show_text(strings.EDITING if is_last else strings.EDITING_EARLIER)

    def show_draft(self) -> None:
        """Put the draft of the open chat into the composer; a sent message is no longer edited."""
        if not self.edited:
            self._put_files_aside()
        chat = self._chats.open
        self.edited, self._shown = "", chat.id
        self._views.editing_bar.show_text("")
        self._composer.set_message(chat.draft, self._files.pop(chat.id, ()))

    def _put_files_aside(self) -> None:
        """Files that are being read are read again when the draft is back."""
        if paths := self._composer.chips.paths:
            self._files[self._shown] = (*self._files.get(self._shown, ()), *paths)

    def show(self) -> None:
        chat = self._chats.open
        self._views.transcript.show_turns(chat.turns, running=self.live.entry if self.live else None)
        self.show_readings()
        self.show_draft()
        self._composer.edit.document().clearUndoRedoStacks()
        self._show_figures()
        self._views.first_page.scroll_to_top()
        self._views.transcript.finder.forget()
        self._views.document.finder.forget()
        self.show_kind()
        self.show_names()
        self.chat_shown.emit()

    def show_version(self, shown_before: str, turn: Turn) -> None:
        """Show the stored `turn` in place of its version `shown_before`."""
        self._replace_turn(shown_before, turn)
        self._show_figures()
        self.show_names()
        self.turn_added.emit()

    @property
    def live_here(self) -> LiveAnswer | None:
        """The running answer, if it belongs to the open chat."""
        return self.live if self.live and self.live.chat_id == self._chats.open.id else None

    def end_live(self) -> None:
        """The running answer ended."""
        self.live, self._ended = None, self.live

    def remove_turn(self, turn: Turn) -> None:
        """Show the open chat without `turn`, which was deleted from it."""
        if turn.user.attachments or not self._chats.open.turns:
            self.show()  # later sources have other numbers
            return
        self._views.transcript.remove_turn(turn.id)
        self._show_figures()
        self.show_names()
        self.turn_added.emit()

    def _show_figures(self) -> None:
        chat, live = self._chats.open, self.live_here
        self._views.strip.reset()
        last = chat.turns[-1].answer if chat.turns else None
        ended = self._ended if chat.turns and self._ended and self._ended.is_of(chat.turns[-1].id) else None
        if shown := live or ended:
            shown.restore(self._views.strip)
        if live is None and last and last.finished:
            self._views.strip.show_stats(last.finished.stats)
        self.show_sources()
        self.show_context()

    def show_sources(self) -> None:
        """Show in the legend what the drafts of the newest complete answer came from."""
        over = [turn.answer for turn in self._chats.open.turns if turn.answer.over]
        self._views.legend.show_sources(over[-1].tokens if over else ())

    def show_context(self, without: str = "") -> None:
        """Show the used context, without `without` and later turns, which an edited message replaces."""
        chat, live = self._chats.open, self.live_here
        without = without or self.edited
        if without and chat.has(without):
            chat = chat.with_turns(chat.upto(without)[:-1]).with_context(0)
            live = None
        last_tokens = live.held_tokens if live else chat.context_used_tokens
        self._meter.show_held(held(chat, last_tokens))

    def restart_turn(self, shown_before: str, turn: Turn, running: AnswerEntry) -> None:
        """Replace the last turn `shown_before` by `turn`, whose answer is being generated, and follow it."""
        self._replace_turn(shown_before, turn, running)
        self._views.transcript.scroll_to_end()

    def _replace_turn(self, shown_before: str, turn: Turn, running: AnswerEntry | None = None) -> None:
        self._views.transcript.replace_turn(shown_before, turn, running)
        self.show_readings()

    def show_readings(self) -> None:
        """Show on each attachment which passages were read for the newest finished answer."""
        chat = self._chats.open
        for turn in chat.turns[-1:]:
            if not turn.answer.over and turn.answer.finished is None:  # its map is not read yet
                chat = chat.with_answer(turn.id, replace(turn.answer, reading=None))
        for document in documents(chat):
            reading = document.reading
            passages = () if reading is None else passages_of(reading, document.source)
            self._views.transcript.show_passages(document.turn_id, document.index, passages)

    def add_turn(self, turn: Turn, running: AnswerEntry) -> None:
        self._views.transcript.add_user(turn.id, turn.user)
        self._views.transcript.add_answer(running)
        self.turn_added.emit()

    def show_kind(self) -> None:
        """Show the first page for an empty chat, otherwise the transcript."""
        empty = not self._chats.open.turns
        self._views.show_first_page(empty)
        self._composer.set_placeholder(chat_strings.ASK_FIRST if empty else strings.ASK_NEXT)

    def show_names(self) -> None:
        """Show the title in the header, and emit `names_changed`."""
        chat = self._chats.open
        project = self._chats.projects.find(chat.project)
        new = panels_strings.new_chat_in(project.name) if project else panels_strings.NEW_CHAT
        self._views.header.set_title(chat.title or new)
        self.names_changed.emit()


@dataclass(frozen=True)
class Running:
    """A running answer.

    `replaced` is the chat's last turn before it was answered again or continued. `after` is the last token
    of an answer that is continued. `keeps_draft`: the question is not from the composer, so that keeps its
    content.
    """

    chat_id: str
    turn_id: str
    replaced: Turn | None = None
    after: Token | None = None
    keeps_draft: bool = False


class AnswerController(QObject):
    """Stores the answer that was passed to `start()` and shows it, from its first token to its end.

    An answer of a chat that is not open is stored only. Events come from `RunningAnswer`.
    """

    answer_finished = Signal(str)  # turn id, however it ended
    prefill_progressed = Signal(object)  # PrefillProgress of the visible answer
    map_changed = Signal()  # the reading map of the visible answer, or all of it is read

    def __init__(self, app: App, page: ChatPage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trouble = app.trouble
        self._views = app.views
        self._chats = app.chats
        self._page = page
        self._meter = app.meter
        self._running: Running | None = None
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

    # ---- events, as `AnswerListener`

    def begin(self) -> None:
        assert self._running
        running = self._running
        turn = self._chats.get(running.chat_id).turn(running.turn_id)
        entry = answer_entry(turn)
        self._page.live = LiveAnswer(running.chat_id, entry)
        if not self._is_shown():  # a queued message of another chat
            self._page.show_names()
            return
        if running.replaced is None:
            if not running.keeps_draft:
                self._views.composer.clear()
            self._page.add_turn(turn, entry)
        else:
            self._page.restart_turn(running.replaced.id, turn, entry)
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

    def read(self, progress: PrefillProgress) -> None:
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

    def choose(self, reading: ReadingMap) -> None:
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

    def write(self, token: Token) -> None:
        self._coalescer.add(self._placed(token))
        self._flush_soon()

    def measure(self, gauges: Gauges) -> None:
        assert self._running
        chat = self._chats.get(self._running.chat_id)
        self._chats.keep(chat.with_context(gauges.context_used_tokens))
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
                begins = not self._live.entry.has_tokens
                self._views.transcript.append_tokens(turn_id, tokens)
                if begins:
                    self.map_changed.emit()  # all that was kept is read
            else:
                self._live.entry.append(tokens)
        if all_of_it:
            self._flush_timer.stop()
        else:
            self._flush_soon()

    # ---- its end

    def _end(self) -> tuple[Running, Conversation, bool]:
        """Store the last tokens. Returns the answer, its chat, and whether that chat is open."""
        self._flush(all_of_it=True)
        assert self._running
        ended, shown = self._running, self._is_shown()
        self._running = None
        self._page.end_live()
        return ended, self._chats.get(ended.chat_id), shown

    def finish(self, finished: Finished) -> None:
        """The worker finished the answer."""
        ended, chat, shown = self._end()
        instead, self._instead = self._instead, None
        is_empty = finished.reason == "cancelled" and not finished.stats.tokens
        if is_empty and not (instead and shown) and self._undo(ended, chat, shown):
            self.answer_finished.emit(ended.turn_id)
            return
        chat = chat.finish(ended.turn_id, finished)
        self._chats.keep(chat)
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

    def cut_off(self, tokens: int, *, closing: bool) -> None:
        """The worker died or the window closes, after `tokens` tokens, which are kept."""
        self._instead = None
        ended, chat, shown = self._end()
        self._trouble.answer_lost(ended.chat_id)
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
            self._trouble.show_failure(failed, ended.chat_id, text_is_back=back)
            if not shown:
                self._views.notice_bar.show_notice(strings.failed_elsewhere(chat.title, failed.message))
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
        return self._views.composer.message() == message

    def _is_shown(self) -> bool:
        return self._running is not None and self._running.chat_id == self._chats.open.id


class AnswerListener(Protocol):
    """The receiver of an answer: chat or race.

    `begin()` comes first; `finish()`, `fail()` or `cut_off()` last, with the number of tokens where that
    decides whether the question is kept.
    """

    def begin(self) -> None: ...

    def read(self, progress: PrefillProgress) -> None: ...

    def choose(self, reading: ReadingMap) -> None: ...

    def write(self, token: Token) -> None: ...

    def measure(self, gauges: Gauges) -> None: ...

    def finish(self, finished: Finished) -> None: ...

    def fail(self, failed: Failed, tokens: int) -> None: ...

    def cut_off(self, tokens: int, *, closing: bool) -> None: ...


class RunningAnswer:
    """Passes the events of an answer to its listener.

    `listener_of` returns the listener of a request. `tell_mistake` reports a token out of order.
    """

    def __init__(
        self, listener_of: Callable[[str], AnswerListener], tell_mistake: Callable[[fx.WorkerMistake], None]
    ) -> None:
        self._listener_of = listener_of
        self._tell_mistake = tell_mistake
        self._tokens = 0
        self._lost: int | None = None

    def on_begun(self, effect: fx.AnswerBegun) -> None:
        self._tokens, self._lost = 0, None
        self._listener_of(effect.request).begin()

    def on_reading(self, event: PrefillProgress) -> None:
        self._listener_of(event.request).read(event)

    def on_map(self, event: ReadingMap) -> None:
        self._listener_of(event.request).choose(event)

    def on_token(self, token: Token) -> None:
        """Pass a token on. One out of order is dropped and reported."""
        if token.position != self._tokens:
            where = f"Token has position {token.position} where {self._tokens} comes next."
            self._tell_mistake(fx.WorkerMistake(where))
            return
        self._tokens += 1
        self._listener_of(token.request).write(token)

    def on_gauges(self, event: Gauges) -> None:
        self._listener_of(event.request).measure(event)

    def on_finished(self, event: Finished) -> None:
        self._listener_of(event.request).finish(event)

    def on_failed(self, effect: fx.AnswerFailed) -> None:
        self._listener_of(effect.failed.request).fail(effect.failed, self._tokens)

    def on_cut_off(self, effect: fx.AnswerCutOff) -> None:
        """The worker exited."""
        self._lost = self._tokens
        self._listener_of(effect.request).cut_off(self._tokens, closing=effect.closing)

    def take_lost(self) -> int | None:
        """Returns the tokens of the answer that was last cut off, once; None if there was none."""
        lost, self._lost = self._lost, None
        return lost
