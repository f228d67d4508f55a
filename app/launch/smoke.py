"""The smoke test: the real window, the real worker, one question, all three origins.

Prints one JSON line of figures to stdout and returns 0 only if the answer finished, tokens of every origin
arrived, and the window shows exactly their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from app.launch import strings
from app.launch.scenario import Deadline, ScenarioFailed, answer_of, ask, run_scenario
from core.settings import assign_all

if TYPE_CHECKING:
    from app.shell.window import MainWindow

TIMEOUT_S = 180.0
MAX_TOKENS = 96
# A drafter without tables: one with them would draft the whole answer in the next run, so that no token
# would be written without a draft, and it would use what the person's chats taught it.
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
    """Returns 0 if all of it succeeded within `timeout_s`, else 1 after a message on stderr.

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
