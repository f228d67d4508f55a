"""A picture of the real window during an answer, for the README and for reviews.

A document is attached, one question about it is answered, and the window is grabbed during the second answer,
with the mouse on an accepted token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.launch import strings
from app.launch.scenario import (
    Deadline,
    ScenarioFailed,
    answer_of,
    ask,
    point_at_token,
    run_scenario,
)
from core.events import Attachment
from core.settings import assign

if TYPE_CHECKING:
    from app.shell.window import MainWindow
    from app.theme.theme import Scheme

RESOURCES = Path(__file__).resolve().parents[2] / "resources"
TIMEOUT_S = 420.0
FIRST_QUESTION = "Here is our handbook. What is it about? Answer in two sentences."
SECOND_QUESTION = "What are the three conditions for sailing in fog? Quote the handbook."
FIRST_TOKENS, SECOND_TOKENS = 80, 320
# Enough for an answer of several lines that is still running.
GRAB_AFTER_TOKENS = 60
_TOOLTIP_S = 0.6


def run_screenshot(
    out: str,
    scheme: Scheme = "system",
    model: str = "starter",
    *,
    command: Sequence[str] | None = None,
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
    deadline = Deadline(TIMEOUT_S)
    late = strings.no_answer_in_time(TIMEOUT_S)
    inspector, composer = window.views.inspector, window.views.composer
    await deadline.until_ready(window)
    window.columns.set_wants(sidebar=True, inspector=True)  # closed at the first start
    window.app_settings.set("look.tint", "always")
    composer.attach(Attachment("Harbour handbook", document()))
    inspector.set_settings(assign(inspector.settings, "sampling.max_tokens", FIRST_TOKENS))
    ask(window, FIRST_QUESTION)
    await deadline.until_ready(window)
    inspector.set_settings(assign(inspector.settings, "sampling.max_tokens", SECOND_TOKENS))
    turn_id = ask(window, SECOND_QUESTION)

    def long_enough() -> bool:
        answer = answer_of(window, turn_id)
        return answer is None or answer.over or len(answer.tokens) >= GRAB_AFTER_TOKENS

    await deadline.until(window, long_enough, late)
    if not point_at_token(window, turn_id, "accepted"):
        raise ScenarioFailed(strings.missing_origins("accepted"))
    await asyncio.sleep(_TOOLTIP_S)
    if not window.grab().save(str(out)):
        raise ScenarioFailed(strings.not_saved(str(out)))
