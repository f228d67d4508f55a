"""The smoke test: the real window, the real worker, one question, all three origins.

Prints one JSON line of figures to stdout and returns 0 only if the answer finished, tokens of
every origin arrived, and the window shows exactly what they say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from app.launch import strings
from app.launch.display import display_problem, go_offscreen_without_display

if TYPE_CHECKING:
    from app.shell.window import MainWindow

TIMEOUT_S = 180.0
MAX_TOKENS = 96
# A drafter that remembers nothing: one that does would guess the whole answer the next time, and leave
# no token that is written without a draft; and what the person's chats taught it would be mixed with this.
_SETTINGS = [
    ("sampling.max_tokens", MAX_TOKENS),
    ("drafting.drafter", "ngram-simple"),
]
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
    model: str = "starter", *, timeout_s: float = TIMEOUT_S, command: Sequence[str] | None = None
) -> int:
    """0 if everything happened within `timeout_s`, else 1 with a message on stderr.

    `command` starts the worker (None: the usual one).
    """
    go_offscreen_without_display(os.environ, sys.platform)
    if problem := display_problem(os.environ, sys.platform):
        print(problem, file=sys.stderr)
        return 1
    from app.launch.opening import open_window
    from app.launch.scenario import ScenarioFailed

    async def scenario(window: MainWindow) -> int:
        try:
            line = await _ask_once(window, timeout_s)
        except ScenarioFailed as failure:
            print(f"draftlight: {failure}", file=sys.stderr)
            return 1
        print(line, flush=True)
        return 0

    return open_window(model, scenario, command=command)


async def _ask_once(window: MainWindow, timeout_s: float) -> str:
    """The JSON line. Raises `ScenarioFailed`."""
    from app.launch.scenario import Deadline, ScenarioFailed, answer_of, ask
    from core.settings import assign_all

    deadline = Deadline(timeout_s)
    await deadline.until_ready(window)
    inspector = window.views.inspector
    inspector.set_settings(assign_all(inspector.settings, _SETTINGS))
    turn_id = ask(window, QUESTION)

    def over() -> bool:
        answer = answer_of(window, turn_id)
        return answer is None or answer.over

    await deadline.until(window, over, strings.no_answer_in_time(timeout_s))
    answer = answer_of(window, turn_id)
    if answer is None or answer.finished is None:
        trouble = window.views.banner.trouble
        raise ScenarioFailed(f"{strings.WORKER_FAILED}: {trouble.title if trouble else ''}")
    origins = {token.origin for token in answer.tokens}
    if missing := [origin for origin in _ORIGINS if origin not in origins]:
        raise ScenarioFailed(strings.missing_origins(", ".join(missing)))
    if window.views.transcript.answer_text(turn_id) != answer.text:
        raise ScenarioFailed(strings.TEXT_DIFFERS)
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
