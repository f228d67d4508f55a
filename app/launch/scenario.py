"""Scenarios: a program that uses the real window like a person, for smoke tests, pictures and benchmarks.

A scenario types into the composer and presses Return. It raises `ScenarioFailed`, whose message is printed to
the terminal. Qt is imported inside the functions, so that `run_scenario` can name missing libraries instead
of failing on an import.

The smoke test is the real window, the real worker, one question, all three origins. It prints one JSON line
of figures to stdout and returns 0 only if the answer finished, tokens of every origin arrived, and the window
shows exactly their text.

The screenshot is a picture of the real window during an answer, for the README and for reviews: a document is
attached, one question about it is answered, and the window is grabbed during the second answer, with the
mouse on an accepted token.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.launch.display import display_problem, go_offscreen_without_display
from app.session.chats.conversation import Answer
from app.session.turn.link_state import Phase
from core.events import Attachment, Origin
from core.settings import assign, assign_all

if TYPE_CHECKING:
    from app.shell.window import MainWindow
    from app.theme.theme import Scheme

TEXT_DIFFERS = "The text in the window is not the text of the tokens."
WORKER_FAILED = "The worker failed"


NO_ANSWER = "The answer was not finished within {seconds:.0f} s."
MISSING_ORIGINS = "No token of these origins arrived: {origins}."
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
                raise ScenarioFailed(f"{WORKER_FAILED}: {said}")
            if time.monotonic() > self._end_s:
                raise ScenarioFailed(failure)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def until_ready(self, window: MainWindow) -> None:
        """Waits until the model is loaded and no answer is in progress."""
        failure = f"The model was not ready within {self.allowed_s:.0f} s."
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
        raise ScenarioFailed(f"{WORKER_FAILED}: {window.views.composer.blocked_reason}")
    return turns[-1].id


def answer_of(window: MainWindow, turn_id: str) -> Answer | None:
    """Returns the answer's present state; None if the turn was removed."""
    chat = window.controller.chats.open
    return chat.turn(turn_id).answer if chat.has(turn_id) else None


def _has(window: MainWindow, turn_id: str, tokens: int = 1 << 30) -> bool:
    """Whether the answer ended or has that many tokens."""
    answer = answer_of(window, turn_id)
    return answer is None or answer.over or len(answer.tokens) >= tokens


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


SMOKE_TIMEOUT_S = 180.0
MAX_TOKENS = 96
# A drafter without tables: one with them would draft the whole answer in the next run, so that no token
# would be written without a draft, and it would use what the person's chats taught it.
_SETTINGS = [("sampling.max_tokens", MAX_TOKENS), ("drafting.drafter", "ngram-simple")]
# The answer begins in the model's own words (normal) and then repeats the list (drafts that
# are accepted, each followed by the verifier's own token).
QUESTION = (
    "Repeat this list exactly, twice:\n"
    "1. The north berth is for the night ferry only.\n"
    "2. The south berth is for the mail boat only.\n"
    "3. The outer berth is for fishing boats only.\n"
    "4. The inner berth is for the harbour tug only."
)
_ORIGINS = ("accepted", "bonus", "normal")


def run_smoke(
    model: str = "starter", *, timeout_s: float = SMOKE_TIMEOUT_S, command: Sequence[str] | None = None
) -> int:
    """Runs the smoke test. Returns 0 if it succeeded within `timeout_s`, else 1 after a message on stderr.

    `command` starts the worker (None: the usual one).
    """

    async def scenario(window: MainWindow) -> None:
        print(await _ask_once(window, timeout_s), flush=True)

    return run_scenario(scenario, model, command=command)


async def _ask_once(window: MainWindow, timeout_s: float) -> str:
    """Returns the JSON line. Raises `ScenarioFailed`."""
    deadline = Deadline(timeout_s)
    await deadline.until_ready(window)
    inspector = window.views.inspector
    inspector.set_settings(assign_all(inspector.settings, _SETTINGS))
    turn_id = ask(window, QUESTION)
    await deadline.until(window, lambda: _has(window, turn_id), NO_ANSWER.format(seconds=timeout_s))
    answer = answer_of(window, turn_id)
    if answer is None or answer.finished is None:
        trouble = window.views.banner.trouble
        raise ScenarioFailed(f"{WORKER_FAILED}: {trouble.title if trouble else ''}")
    origins = {token.origin for token in answer.tokens}
    if missing := [origin for origin in _ORIGINS if origin not in origins]:
        raise ScenarioFailed(MISSING_ORIGINS.format(origins=", ".join(missing)))
    if window.views.transcript.answer_text(turn_id) != answer.text:
        raise ScenarioFailed(TEXT_DIFFERS)
    finished = answer.finished
    record = {
        "ok": True,
        "model": finished.effective.model,
        "drafter": finished.effective.drafter,
        "reason": finished.reason,
        "shown_tokens": len(answer.tokens),
        "stats": finished.stats,
    }
    return msgspec.json.encode(record).decode()


RESOURCES = Path(__file__).resolve().parents[2] / "resources"
PICTURE_TIMEOUT_S = 420.0
FIRST_QUESTION = "Here is our handbook. What is it about? Answer in two sentences."
SECOND_QUESTION = "What are the three conditions for sailing in fog? Quote the handbook."
FIRST_TOKENS, SECOND_TOKENS = 80, 320
# Enough for an answer of several lines that is still running.
GRAB_AFTER_TOKENS = 60
_TOOLTIP_S = 0.6


def run_screenshot(
    out: str, scheme: Scheme = "system", model: str = "starter", *, command: Sequence[str] | None = None
) -> int:
    """Saves the picture to `out`. Returns 0, or 1 after a message on stderr.

    `command` starts the worker (None: the usual one).
    """
    return run_scenario(lambda window: _picture(window, Path(out)), model, scheme=scheme, command=command)


def document() -> str:
    """Returns the handbook that the questions are about."""
    return (RESOURCES / "screenshot" / "handbook.txt").read_text("utf-8")


async def _picture(window: MainWindow, out: Path) -> None:
    """Asks, waits, points and grabs. Raises `ScenarioFailed`."""
    deadline = Deadline(PICTURE_TIMEOUT_S)
    late = NO_ANSWER.format(seconds=PICTURE_TIMEOUT_S)
    inspector, composer = window.views.inspector, window.views.composer
    await deadline.until_ready(window)
    window.columns.set_wants(sidebar=True, inspector=True)  # closed at the first start
    window.app_settings.set("look.token_colors", "drafts")
    composer.attach(Attachment("Harbour handbook", document()))
    inspector.set_settings(assign(inspector.settings, "sampling.max_tokens", FIRST_TOKENS))
    ask(window, FIRST_QUESTION)
    await deadline.until_ready(window)
    inspector.set_settings(assign(inspector.settings, "sampling.max_tokens", SECOND_TOKENS))
    turn_id = ask(window, SECOND_QUESTION)
    await deadline.until(window, lambda: _has(window, turn_id, GRAB_AFTER_TOKENS), late)
    if not point_at_token(window, turn_id, "accepted"):
        raise ScenarioFailed(MISSING_ORIGINS.format(origins="accepted"))
    await asyncio.sleep(_TOOLTIP_S)
    if not window.grab().save(str(out)):
        raise ScenarioFailed(f"The picture could not be saved to {out}.")
