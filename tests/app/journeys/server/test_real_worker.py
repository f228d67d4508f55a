"""Chat and local server over a real worker with a tiny model: they wait for each other, nothing is mixed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from app.session.turn.link_state import Phase
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.stage import Stage, answering, last, ready, until

SETTINGS = assign_all(Settings(), [("sampling.max_tokens", 400), ("prefill.mode", "off")])


async def test_a_client_asks_while_the_chat_answers_and_the_worker_is_killed(
    stage: Stage, toy_folder: Path
) -> None:
    window = await stage.ready(command=worker_command(), model=str(toy_folder))
    base = await switch_on(window)
    alone = await Asked(base, "the harbour", max_tokens=24, temperature=0).whole()
    assert alone.is_whole
    assert alone.text
    window.views.inspector.set_settings(SETTINGS)
    await answering(window, "Tell a long story.")
    beside = Asked(base, "the harbour", max_tokens=24, temperature=0)
    await until(lambda: len(window.controller.sharing.answers.sent) == 1)
    await beside.whole()
    assert last(window).over
    assert beside.text == alone.text
    await ready(window)
    running = Asked(base, "go on", max_tokens=480, drafter="off", temperature=0)
    await until(lambda: bool(running.text))
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await running.whole()
    assert running.error == "worker_failed"
    again = await Asked(base, "the harbour", max_tokens=24, temperature=0).whole()
    assert again.text == alone.text
    assert window.worker.pid != pid
    assert window.controller.link.phase is Phase.READY
