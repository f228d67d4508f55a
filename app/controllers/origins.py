"""OriginsController: shows the origins of the open chat's answers, also while one is generated."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QObject, QTimer

from app.controllers.answering import AnswerController
from app.controllers.app import App
from app.controllers.page import ChatPage
from app.session.origins import ChatOrigins, load_tracer

# Time in each turn of the event loop, so that no frame waits.
_SLICE_S = 0.004


class OriginsController(QObject):
    """Traces the open chat in slices, between other events, whenever it has changed.

    What traces is loaded on a thread, with the first chat that has sources.
    """

    def __init__(
        self, app: App, page: ChatPage, answering: AnswerController, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._origins = ChatOrigins()
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._step)
        self._written = answering.tokens_written
        self._hears_tokens = False
        self._loading: asyncio.Task[None] | None = None
        for changed in (page.turn_added, answering.answer_finished):
            changed.connect(self._follow)
        page.chat_shown.connect(self._show_all)

    @property
    def is_busy(self) -> bool:
        """Whether something is not traced yet."""
        return self._timer.isActive() or (self._loading is not None and not self._loading.done())

    async def close(self) -> None:
        """End the tracing. Safe to call twice."""
        if self._loading is not None:
            await asyncio.wait({self._loading})
        self._timer.stop()

    def _follow(self) -> None:
        self._origins.follow(self._app.chats.open)
        if self._origins.has_sources and self._loading is None:
            self._loading = asyncio.ensure_future(self._load())
        elif self._loading is not None and self._loading.done():
            self._timer.start()
        # The tokens of a chat without sources cost nothing.
        if self._origins.has_sources != self._hears_tokens:
            self._hears_tokens = self._origins.has_sources
            (self._written.connect if self._hears_tokens else self._written.disconnect)(self._follow)

    def _show_all(self) -> None:
        """The transcript was rebuilt: show the origins that are traced already."""
        self._follow()
        for turn in self._app.chats.open.turns:
            self._app.views.transcript.show_origins(turn.id, self._origins.of(turn.id))

    async def _load(self) -> None:
        await asyncio.to_thread(load_tracer)
        self._timer.start()

    def _step(self) -> None:
        changed, done = self._origins.step(_SLICE_S)
        for turn_id in changed:
            self._app.views.transcript.show_origins(turn_id, self._origins.of(turn_id))
        if done:
            self._timer.stop()
