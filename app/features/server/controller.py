"""ServerPage: fills the local server's window with its requests, and follows the opened one.

Requests are listed until Draftlight quits. The list is updated a few times a second at most, and tokens
thirty times, as in a chat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QGuiApplication

from app.chat.entry import AnswerEntry, answer_entry
from app.chat.image_files import ImageFiles
from app.chat.intents import Intent, OpenImage
from app.chat.reading_state import now_s
from app.controllers.answering import TokenBatches
from app.controls.buttons import on_click
from app.features.server import strings
from app.features.server.conversation import turns_of
from app.features.server.pictures import ServedPictures
from app.features.server.rows import rows_of
from app.features.server.server import ServerController, ServerState, WorkerSharing
from app.features.server.window import ServerWindow
from app.session.chats.conversation import Answer
from app.session.turn.link_state import Link
from core.errors import RequestError
from core.events import (
    Event,
    Finished,
    Image,
    PrefillProgress,
    ReadingMap,
    Token,
    api_id,
)
from core.serve.apps import Connection
from core.serve.served_requests import ServedRequest

_ROWS_EVERY_MS = 200


class ServerPage(QObject):
    """Lives as long as its window. `show_images` opens images of a message, one of them by its index, of
    `files`, those of the opened request.
    """

    def __init__(
        self,
        window: ServerWindow,
        sharing: WorkerSharing,
        server: ServerController,
        show_images: Callable[[Sequence[Image], int, ImageFiles], object],
    ) -> None:
        super().__init__(window)
        self._show_images = show_images
        self._window = window
        self._sharing = sharing
        self._requests = sharing.requests
        self._server = server
        self._opened = ""
        self._over = True
        self._batches = TokenBatches(self._write, self)
        self._soon = QTimer(self, singleShot=True, interval=_ROWS_EVERY_MS)
        self._soon.timeout.connect(self._show_rows)
        stop_listening = self._requests.listen(self)
        window.destroyed.connect(lambda: stop_listening())
        self._pictures = pictures = ServedPictures(self)
        window.transcript.images = self.files = ImageFiles(pictures, self)
        window.transcript.intent.connect(self._on_intent)
        pictures.changed.connect(self._show_again)
        for end in (pictures.stop, self.files.close):
            window.destroyed.connect(lambda _, end=end: end())
        window.list.row_selected.connect(lambda request: self._open(request))
        panel = window.panel
        on_click(
            (window.clear, self._clear), (panel.copy_key, self._copy_key), (panel.new_key, self._renew_key)
        )
        server.changed.connect(self._show_server)
        sharing.line_moved.connect(self._show_server)
        self._show_server()
        self._show_rows()

    def follow(self, link: Link) -> None:
        self._show_server()

    # ---- as `RequestListener`

    def request_changed(self, request: ServedRequest) -> None:
        """Update the list soon; a request changes with each token."""
        if not self._soon.isActive():
            self._soon.start()
        if request.id != self._opened or self._over:
            return
        if request.is_over:
            self._finish(request, None)
        else:
            self._window.transcript.show_waiting(request.id, _waits_for(request))

    def request_heard(self, request: str, event: Event) -> None:
        if request != self._opened or self._over:
            return
        match event:
            case PrefillProgress():
                self._window.transcript.show_progress(request, event)
            case ReadingMap():
                self._window.transcript.show_map(request, event, {})
            case Token():
                self._batches.add(event)
            case Finished():
                self._finish(self._requests.of(request), event)

    # ---- the server

    def _show_server(self, *_: object) -> None:
        waiting, state, server = self._sharing.waiting, self._server.state, self._server
        # The address has its own button, and a narrow window has little space for this text.
        words = strings.SERVING if state.address else state_words(state)
        if waiting:
            words = f"{words} {strings.in_line(waiting)}"
        model = self._sharing.gate.model
        self._window.show_server(words, state.address, api_id(model) if model else "")
        self._window.panel.show_state(state_words(state), bad=state.problem is not None)
        to = None
        if model is not None and server.settings is not None and state.address:
            address = state.address.removesuffix("/v1")
            to = Connection(address, server.served_key, api_id(model), model.context_tokens, model.sees)
        strict = server.settings is not None and server.settings.strict
        self._window.panel.connect_box.show_connection(to, strict=strict)

    def _copy_key(self) -> None:
        try:
            QGuiApplication.clipboard().setText(self._server.key.get())
        except RequestError as error:
            self._window.panel.say_of_key(str(error))
            return
        self._window.panel.say_of_key(strings.COPIED_KEY)

    def _renew_key(self) -> None:
        try:
            self._server.renew_key()
        except RequestError as error:
            self._window.panel.say_of_key(str(error))
            return
        self._window.panel.say_of_key(strings.NEW_KEY_MADE)

    # ---- requests

    def _show_rows(self) -> None:
        self._soon.stop()
        self._window.show_rows(rows_of(self._requests.all, datetime.now().date()))

    def _clear(self) -> None:
        self._requests.clear()
        self._show_rows()

    def _on_intent(self, intent: Intent) -> None:
        if isinstance(intent, OpenImage):
            self._show_images(intent.images, intent.index, self.files)

    def _show_again(self) -> None:
        """Show the opened request with the pictures that were made meanwhile."""
        self._open(self._opened, opens=False)

    def _open(self, request: str, *, opens: bool = True) -> None:
        self._batches.end(write=False)
        self._opened = request
        record, asked = self._requests.of(request), self._requests.asked(request)
        transcript = self._window.transcript
        # Vectors have no answer that the transcript could show.
        self._over = record is None or record.is_over or record.embeds
        if record is None or asked is None:
            self._pictures.read([])
            transcript.clear()
            self._window.show_answer(record is None, _why_gone(record) if record else "")
            return
        self._window.show_answer(True)
        answer = _answer(record, self._requests.events(request))
        if opens:
            images = [image for message in asked.messages for image in message.images]
            self._pictures.read([] if self._over else images)
        came = datetime.fromtimestamp(record.came_s)
        turns = turns_of(asked, answer, came, self._pictures.is_kept)
        entry = answer_entry(turns[-1], asked.settings.drafting.drafter)
        if not self._over:
            _read_again(entry, self._requests.events(request))
            entry.show_waiting(_waits_for(record))
        transcript.show_turns(turns, running=entry)

    def _write(self, tokens: Sequence[Token]) -> None:
        self._window.transcript.append_tokens(self._opened, tokens)

    def _finish(self, record: ServedRequest | None, finished: Finished | None) -> None:
        """Finish the displayed answer once. A client that disconnected while waiting leaves no end."""
        if self._over or record is None:
            return
        self._over = True
        self._batches.end()
        self._window.transcript.finish_answer(self._opened, finished, _note(record, finished))


def _why_gone(record: ServedRequest) -> str:
    if record.embeds:
        return strings.EMBEDDED
    return strings.refused(record.problem) if record.problem else strings.NOT_KEPT


def _answer(record: ServedRequest, events: Sequence[Event]) -> Answer:
    finished = next((each for each in reversed(events) if isinstance(each, Finished)), None)
    tokens = tuple(each for each in events if isinstance(each, Token))
    reading = next((each for each in reversed(events) if isinstance(each, ReadingMap)), None)
    if record.is_over:
        status = "finished" if record.state == "finished" else "stopped"
        return Answer(tokens, status, finished, _note(record, finished))  # type: ignore[arg-type]
    return Answer(tokens, "writing" if tokens else "waiting", reading=reading)


def _read_again(entry: AnswerEntry, events: Sequence[Event]) -> None:
    """Give `entry` the events of a prefill, at the times at which they came after each other."""
    reports = [each for each in events if isinstance(each, PrefillProgress)]
    begun_s = now_s() - (reports[-1].time_s if reports else 0.0)
    at_s = begun_s
    for event in events:
        if isinstance(event, PrefillProgress):
            at_s = begun_s + event.time_s
            entry.reading_state.show_progress(event, at_s)
        elif isinstance(event, ReadingMap):
            entry.reading_state.show_map(event, (), at_s)


def _waits_for(record: ServedRequest) -> str:
    """What a request is waiting for, in words; empty while its answer is written."""
    if record.state == "writing":
        return ""
    queued = record.state == "waiting" and record.position
    return f"{strings.waiting(record.position) if queued else strings.STATES[record.state]}…"


def _note(record: ServedRequest, finished: Finished | None) -> str:
    if record.problem:
        return record.problem
    ended_early = record.state == "cancelled" or (finished is not None and finished.reason == "cancelled")
    return strings.CANCELLED_NOTE if ended_early else ""


def state_words(state: ServerState) -> str:
    if state.problem is not None:
        return f"{state.problem.message} {state.problem.hint}".strip()
    if state.status == "on":
        return strings.serving(state.address)
    return strings.STARTING if state.status == "starting" else strings.OFF
