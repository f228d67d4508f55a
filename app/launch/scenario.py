"""Scenarios: a program that uses the real window like a person, for smoke tests, pictures and benchmarks.

A scenario types into the composer and presses Return. It raises `ScenarioFailed`, whose message is printed to
the terminal. Qt is imported inside the functions, so that `run_scenario` can name missing libraries instead
of failing on an import.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from app.launch import strings
from app.launch.display import display_problem, go_offscreen_without_display
from app.session.chats.conversation import Answer
from app.session.turn.link_state import Phase
from core.events import Origin

if TYPE_CHECKING:
    from app.shell.window import MainWindow
    from app.theme.theme import Scheme

_LOOK_EVERY_S = 0.01


class ScenarioFailed(Exception):
    """The window did not behave as expected."""


def run_scenario(
    scenario: Callable[[MainWindow], Awaitable[None]],
    model: str = "starter",
    *,
    scheme: Scheme = "system",
    command: Sequence[str] | None = None,
) -> int:
    """Opens the window, offscreen if there is no display, and runs `scenario` in it.

    `command` starts the worker (None: the usual one). Returns the exit status: 0, or 1 after a message on
    stderr.
    """
    go_offscreen_without_display(os.environ, sys.platform)
    if problem := display_problem(os.environ, sys.platform):
        print(problem, file=sys.stderr)
        return 1
    from app.launch.opening import open_window

    async def whole(window: MainWindow) -> int:
        try:
            await scenario(window)
        except ScenarioFailed as failure:
            print(f"draftlight: {failure}", file=sys.stderr)
            return 1
        return 0

    return open_window(model, whole, scheme=scheme, command=command)


class Deadline:
    """The time allowed for all steps of a scenario."""

    def __init__(self, allowed_s: float) -> None:
        self.allowed_s = allowed_s
        self._end_s = time.monotonic() + allowed_s

    async def until(self, window: MainWindow, condition: Callable[[], bool], failure: str) -> None:
        """Waits for `condition`. Raises `ScenarioFailed` after the deadline or if the worker exits."""
        while not condition():
            if window.controller.link.phase in (Phase.DEAD, Phase.NO_MODEL, Phase.CLOSED):
                trouble = window.views.banner.trouble
                said = f"{trouble.title} {trouble.text}" if trouble else window.controller.link.phase.value
                raise ScenarioFailed(f"{strings.WORKER_FAILED}: {said}")
            if time.monotonic() > self._end_s:
                raise ScenarioFailed(failure)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def until_ready(self, window: MainWindow) -> None:
        """Waits until the model is loaded and no answer is in progress."""
        failure = strings.no_model_in_time(self.allowed_s)
        await self.until(window, lambda: window.controller.link.phase is Phase.READY, failure)


def ask(window: MainWindow, question: str) -> str:
    """Types `question` and presses Return; returns the id of the new turn. Raises `ScenarioFailed`."""
    from PySide6.QtCore import QEvent, Qt
    from PySide6.QtGui import QKeyEvent
    from PySide6.QtWidgets import QApplication

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
    """Returns the answer so far; None if the turn was removed."""
    chat = window.controller.chats.open
    return chat.turn(turn_id).answer if chat.has(turn_id) else None


def point_at_token(window: MainWindow, turn_id: str, origin: Origin) -> bool:
    """Moves the mouse onto a visible token of `origin`; False if there is none.

    Prefers the last whole word on the lowest line, where the tooltip hides least.
    """
    from PySide6.QtCore import QEvent, Qt
    from PySide6.QtGui import QMouseEvent
    from PySide6.QtWidgets import QApplication

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
