"""A window over the real worker in a process of its own, which a test stops and continues.

Says one JSON line when it writes an answer, and one with all that was seen when that is over.
`python -m tests.app.sleeper MODEL_FOLDER SILENCE_S`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from app.launch.application import Application
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.stage import last, play, ready, until

_TOKENS = 240


async def scene(window: MainWindow) -> None:
    await ready(window, 60)
    values = [("sampling.max_tokens", _TOKENS), ("drafting.drafter", "off")]
    window.views.inspector.set_settings(assign_all(Settings(), values))
    troubles: list[str] = []
    heard = window.views.banner.show_trouble

    def note(trouble: object) -> None:
        troubles.append(getattr(trouble, "title", ""))
        heard(trouble)  # type: ignore[arg-type]

    window.views.banner.show_trouble = note  # type: ignore[method-assign,assignment]
    pid, began_s = window.worker.pid, time.perf_counter()
    ask(window, "go on")
    await until(lambda: len(last(window).tokens) > 3)
    print(json.dumps({"worker": pid}), flush=True)
    await until(lambda: window.controller.link.phase is Phase.READY, 60)
    took_s = time.perf_counter() - began_s
    await asyncio.sleep(1.5)  # for whatever comes late: heartbeats, a watch that ran out
    finished = last(window).finished
    assert finished
    stats = finished.stats
    seen = {
        "same_worker": window.worker.pid == pid,
        "status": last(window).status,
        "tokens": len(last(window).tokens),
        "troubles": troubles,
        "took_s": took_s,
        "total_s": stats.total_s,
        "tokens_per_s": stats.tokens_per_s,
    }
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    application = Application(["sleeper"])
    play(application, scene, command=worker_command(), model=sys.argv[1], silence_s=float(sys.argv[2]))
