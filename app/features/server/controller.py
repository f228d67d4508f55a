"""ServerPage: fills the local server's window with its requests, and follows the opened one.

Updates the list a few times a second at most, and tokens thirty times, as in a chat.
"""

from __future__ import annotations

import time
from datetime import datetime

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QGuiApplication

from app.features.server import strings
from app.features.server.rows import facts_of, rows_of
from app.features.server.server import RequestKeeping, ServerController, ServerState, WorkerSharing
from app.features.server.window import ServerBox, ServerWindow
from app.features.side_window import on_click
from app.session.chats.coalescer import Coalescer
from app.session.chats.conversation import Answer, Turn
from app.session.turn.link_state import Link
from app.store.requests import KeptRequest
from core.errors import RequestError
from core.events import (
    Event,
    Finished,
    Message,
    PrefillProgress,
    ReadingMap,
    Token,
    api_id,
)
from core.serve.apps import Connection
from core.serve.requests import ServedRequest

_ROWS_EVERY_MS = 200
# Maximum length of a question in a bubble.
_SHOWN_CHARACTERS = 20_000


class ServerPage(QObject):
    """Lives as long as its window."""

    def __init__(
        self,
        window: ServerWindow,
        sharing: WorkerSharing,
        keeping: RequestKeeping,
        server: ServerController,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._sharing = sharing
        self._requests = sharing.requests
        self._keeping = keeping
        self._server = server
        self._opened = ""
        # The opened request if it has ended, so that it is not read again.
        self._over_one: KeptRequest | None = None
        self._over = True
        self._coalescer = Coalescer(time.monotonic)
        self._soon = QTimer(self, singleShot=True, interval=_ROWS_EVERY_MS)
        self._soon.timeout.connect(self._show_rows)
        self._flush_soon = QTimer(self, singleShot=True)
        self._flush_soon.timeout.connect(self._flush)
        stop_listening = self._requests.listen(self)
        window.destroyed.connect(lambda: stop_listening())
        window.list.row_selected.connect(self._open)
        window.shown.connect(keeping.refresh)
        window.delete_requested.connect(keeping.delete)
        on_click((window.delete_all, self._delete_all), (window.connect_app, self._connect))
        keeping.changed.connect(self._show_kept)
        keeping.loaded.connect(self._show_loaded)
        server.changed.connect(self._show_server)
        sharing.line_moved.connect(self._show_server)
        self._show_server()
        keeping.refresh()

    # ---- as `RequestListener`

    def request_changed(self, request: ServedRequest) -> None:
        """Update the list soon; a request changes with each token."""
        if not self._soon.isActive():
            self._soon.start()
        if request.id == self._opened and request.is_over:
            self._finish(request, None)

    def request_heard(self, request: str, event: Event) -> None:
        """Show an event of the opened request."""
        if request != self._opened or self._over:
            return
        match event:
            case PrefillProgress():
                self._window.transcript.show_progress(request, event)
            case ReadingMap():
                self._window.transcript.show_map(request, event, {})
            case Token():
                self._coalescer.add(event)
                self._plan_flush()
            case Finished():
                self._finish(self._requests.of(request), event)

    # ---- inside

    def follow(self, link: Link) -> None:
        """Update the model's name after a load."""
        self._show_server()

    def _show_server(self, *_: object) -> None:
        waiting = self._sharing.waiting
        state = self._server.state
        # The address has its own button, and a narrow window has little space for this text.
        words = strings.SERVING if state.address else state_words(state)
        if waiting:
            words = f"{words} {strings.in_line(waiting)}"
        if self._keeping.problem:
            words = f"{words} {self._keeping.problem}"
        elif self._keeping.is_wanted:
            words = f"{words} {strings.KEEPING}"
        model = self._sharing.gate.model
        self._window.show_server(words, state.address, api_id(model) if model else "")

    def _show_rows(self) -> None:
        self._soon.stop()
        self._window.show_rows(rows_of(self._keeping.records, datetime.now().date()))
        self._show_facts()

    def _show_kept(self) -> None:
        self._show_server()
        self._show_rows()

    def _delete_all(self) -> None:
        """Confirm the deletion of all stored requests."""
        count = self._keeping.kept_count
        if not count:
            self._keeping.delete_all()
            return
        question = self._window.ask(strings.DELETE_ALL_QUESTION, strings.delete_all_detail(count))
        question.chosen.connect(lambda _: self._keeping.delete_all())

    def _connect(self) -> None:
        model, server = self._sharing.gate.model, self._server
        if model is None or server.settings is None or not server.state.address:
            return
        address = server.state.address.removesuffix("/v1")
        to = Connection(address, server.served_key, api_id(model), model.context_tokens)
        self._window.show_connect(to, server.settings.strict)

    def _open(self, request: str) -> None:
        self._flush_soon.stop()
        self._coalescer.drain()
        self._opened, self._over_one = request, None
        one = self._now()
        transcript = self._window.transcript
        # Vectors have no answer that the transcript could show.
        self._over = one is None or one.record.is_over or one.record.embeds
        refused = one is not None and one.asked is None and bool(one.record.problem)
        gone = strings.EMBEDDED if one is not None and one.record.embeds else strings.NOT_KEPT
        gone = strings.refused(one.record.problem) if one is not None and refused else gone
        loading = self._keeping.is_loading(request)
        self._window.show_kept(one is None or one.asked is not None or loading, gone)
        if one is None or one.asked is None:
            transcript.clear()
        else:
            transcript.show_turns((_turn(one),), one.asked.settings.drafting.drafter)
            progress = next(
                (each for each in reversed(one.events) if isinstance(each, PrefillProgress)), None
            )
            if progress is not None and not self._over and not one.record.tokens:
                transcript.show_progress(request, progress)
        self._show_facts()

    def _show_loaded(self, request: str) -> None:
        """Show the opened request after its content was read."""
        if request == self._opened:
            self._open(request)

    def _now(self) -> KeptRequest | None:
        """Returns the opened request."""
        if self._over_one is None and self._opened:
            one = self._keeping.of(self._opened)
            if one is None or not one.record.is_over or self._keeping.is_loading(self._opened):
                return one
            self._over_one = one
        return self._over_one

    def _show_facts(self) -> None:
        one = self._now()
        if one is None:
            return
        effective = one.finished.effective if one.finished is not None else None
        self._window.facts.show_facts(facts_of(one.record, one.asked, effective))

    def _plan_flush(self) -> None:
        due_in_s = self._coalescer.due_in_s()
        if due_in_s is not None and not self._flush_soon.isActive():
            self._flush_soon.start(round(due_in_s * 1000))

    def _flush(self, all_of_it: bool = False) -> None:
        tokens = self._coalescer.drain() if all_of_it else self._coalescer.take()
        if tokens:
            self._window.transcript.append_tokens(self._opened, tokens)
        if not all_of_it:
            self._plan_flush()

    def _finish(self, record: ServedRequest | None, finished: Finished | None) -> None:
        """Finish the displayed answer once. A client that disconnected while waiting leaves no end."""
        if self._over or record is None:
            return
        self._over = True
        self._flush_soon.stop()
        self._flush(all_of_it=True)
        self._window.transcript.finish_answer(self._opened, finished, _note(record, finished))


def _turn(one: KeptRequest) -> Turn:
    """Returns the turn of a request whose content is stored."""
    record, asked, events, finished = one.record, one.asked, one.events, one.finished
    assert asked is not None
    tokens = tuple(each for each in events if isinstance(each, Token))
    reading = next((each for each in reversed(events) if isinstance(each, ReadingMap)), None)
    if record.is_over:
        status = "finished" if record.state == "finished" else "stopped"
        answer = Answer(tokens, status, finished, _note(record, finished))  # type: ignore[arg-type]
    else:
        answer = Answer(tokens, "writing" if tokens else "waiting", reading=reading)
    last = asked.messages[-1]
    text = last.content
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:_SHOWN_CHARACTERS]}…"
    message = Message(last.role, text, last.attachments)
    return Turn(record.id, message, answer, datetime.fromtimestamp(record.came_s))


def _note(record: ServedRequest, finished: Finished | None) -> str:
    if record.problem:
        return record.problem
    ended_early = record.state == "cancelled" or (finished is not None and finished.reason == "cancelled")
    return strings.CANCELLED_NOTE if ended_early else ""


class SettingsBox(QObject):
    """Lives as long as its box."""

    def __init__(self, server: ServerController, box: ServerBox) -> None:
        super().__init__(box)
        self._server = server
        self._box = box
        server.changed.connect(self._show)
        on_click((box.copy_key, self._copy), (box.new_key, self._renew))
        self._show(server.state)

    def _show(self, state: ServerState) -> None:
        self._box.show_state(state_words(state), bad=state.problem is not None)

    def _copy(self) -> None:
        try:
            QGuiApplication.clipboard().setText(self._server.key.get())
        except RequestError as error:
            self._box.say_of_key(str(error))
            return
        self._box.say_of_key(strings.COPIED_KEY)

    def _renew(self) -> None:
        try:
            self._server.renew_key()
        except RequestError as error:
            self._box.say_of_key(str(error))
            return
        self._box.say_of_key(strings.NEW_KEY_MADE)


def state_words(state: ServerState) -> str:
    """The server's state in a sentence."""
    if state.problem is not None:
        return f"{state.problem.message} {state.problem.hint}".strip()
    if state.status == "on":
        return strings.serving(state.address)
    return strings.STARTING if state.status == "starting" else strings.OFF
