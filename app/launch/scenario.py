"""Steps for scenarios that use the window without a person: wait for the model, ask, wait.

They go through what a person goes through (the composer's text and its Return key) and fail
with `ScenarioFailed`, whose message is for the terminal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from app.launch import strings
from app.session.chats.conversation import Answer
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import Origin

_LOOK_EVERY_S = 0.01


class ScenarioFailed(Exception):
    """What was expected did not happen."""


class Deadline:
    """One allowance of time for all steps of a scenario."""

    def __init__(self, allowed_s: float) -> None:
        self.allowed_s = allowed_s
        self._end_s = time.monotonic() + allowed_s

    async def until(self, window: MainWindow, condition: Callable[[], bool], failure: str) -> None:
        """Wait for `condition`. Raises `ScenarioFailed` if time is up or the worker is gone."""
        while not condition():
            if window.controller.link.phase in (Phase.DEAD, Phase.NO_MODEL, Phase.CLOSED):
                trouble = window.views.banner.trouble
                said = f"{trouble.title} {trouble.text}" if trouble else window.controller.link.phase.value
                raise ScenarioFailed(f"{strings.WORKER_FAILED}: {said}")
            if time.monotonic() > self._end_s:
                raise ScenarioFailed(failure)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def until_ready(self, window: MainWindow) -> None:
        """Wait for the model, or for the answer that is under way."""
        failure = strings.no_model_in_time(self.allowed_s)
        await self.until(window, lambda: window.controller.link.phase is Phase.READY, failure)


def ask(window: MainWindow, question: str) -> str:
    """Type `question` and press Return; the id of the turn that began. Raises `ScenarioFailed`."""
    edit = window.views.composer.edit
    edit.set_text(question)
    for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
        key = QKeyEvent(kind, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier, "\r")
        QApplication.sendEvent(edit, key)
    turns = window.controller.chats.open.turns
    if not turns or turns[-1].answer.over or turns[-1].user.content != question.strip():
        raise ScenarioFailed(f"{strings.WORKER_FAILED}: {window.views.composer.blocked_reason}")
    return turns[-1].id


def answer_of(window: MainWindow, turn_id: str) -> Answer | None:
    """The answer as recorded so far; None if the turn was taken back."""
    chat = window.controller.chats.open
    return chat.turn(turn_id).answer if chat.has(turn_id) else None


def point_at_token(window: MainWindow, turn_id: str, origin: Origin) -> bool:
    """Move the mouse onto a token of `origin` that can be seen; False if there is none.

    Of those that are a word of their own, the last on the lowest line: its tooltip hides least.
    """
    answer = answer_of(window, turn_id)
    shown = window.views.transcript.answer(turn_id)
    if shown is None:
        return False
    body = shown.body
    seen = body.visibleRegion().boundingRect()
    candidates = []
    for number, token in enumerate(answer.tokens if answer else ()):
        place = body.token_rect(number)
        if token.origin == origin and token.text.strip().isalpha() and place and len(token.text) > 3:
            spot = place.center()
            if seen.contains(spot.toPoint()):
                candidates.append((spot.y(), number, spot))
    if not candidates:
        return False
    spot = max(candidates, key=lambda candidate: candidate[:2])[2]
    button, keys = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    move = QMouseEvent(QEvent.Type.MouseMove, spot, body.mapToGlobal(spot), button, button, keys)
    QApplication.sendEvent(body, move)
    return True
