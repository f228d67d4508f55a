"""A window that was used leaves nothing that `draftlight uninstall` does not know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WINDOW = """
import sys
from app.launch.opening import open_window
from app.launch.scenario import Deadline, answer_of, ask
from core.system.paths import data_dir

async def scenario(window):
    deadline = Deadline(120)
    await deadline.until_ready(window)
    turn = ask(window, "What is a tide table?")
    await deadline.until(window, lambda: (answer := answer_of(window, turn)) and answer.over, "no answer")
    return 0

sys.exit(open_window(sys.argv[1], scenario, folder=data_dir()))
"""


@pytest.mark.sweep
def test_nothing_is_left(tmp_path: Path, toy_folder: Path) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "DRAFTLIGHT_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    for command in (
        ["-c", WINDOW, str(toy_folder)],
        ["-m", "core.cli", "generate", "--model", str(toy_folder), "--prompt", "Hello"],
        ["-m", "core.cli", "doctor"],
    ):
        subprocess.run([sys.executable, *command], env=environment, capture_output=True, timeout=250)
    assert (home / "data" / "chats.db").exists()
    command = [sys.executable, "-m", "core.cli", "uninstall", "--yes"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    left = [str(path.relative_to(home)) for path in home.rglob("*")] if home.exists() else []
    assert left == []
