"""The machine sleeps in mid-answer: window and worker are stopped, seconds long, and go on in any order.

Nothing is declared dead or stuck, the answer comes to its end, and no figure knows of the pause.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from core.system.clock import MOST_S

_SILENCE_S = 1.5
_PAUSE_S = 3.0
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")


def line(window: subprocess.Popen[str]) -> dict[str, Any]:
    text = window.stdout.readline()
    assert text, f"the window ended: {window.poll()}"
    said: dict[str, Any] = json.loads(text)
    return said


@pytest.mark.sweep
@pytest.mark.parametrize("first", ["window", "worker"])
def test_an_answer_survives_sleep(toy_folder: Path, first: str) -> None:
    """Who falls asleep first wakes first, a moment before the other."""
    command = [sys.executable, "-m", "tests.app.sleeper", str(toy_folder), str(_SILENCE_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as window:
        try:
            worker = line(window)["worker"]
            order = [window.pid, worker] if first == "window" else [worker, window.pid]
            for pid in order:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(_PAUSE_S)
            for pid in order:
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.3)
            seen = line(window)
            assert window.wait(30) == 0
        finally:
            window.kill()
    assert seen["troubles"] == []
    assert seen["same_worker"]
    assert (seen["status"], seen["tokens"]) == ("finished", 240)
    assert seen["took_s"] > _PAUSE_S
    assert seen["total_s"] < seen["took_s"] - _PAUSE_S + MOST_S + 0.2
    assert seen["tokens_per_s"] > 240 / (seen["took_s"] - _PAUSE_S + MOST_S + 0.2)
