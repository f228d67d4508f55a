"""The bundle's entry module: the executable it takes for its own, and the calls it answers."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from draftlight.__main__ import own_executable, tracker_pipe
from tests.processes import needs_programs_in

ROOT = Path(__file__).parents[2]


def launch(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "packaging" / "launcher"), str(ROOT)])
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "draftlight", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": path}
    )


def test_the_executable_is_this_process_own() -> None:
    assert own_executable() == os.path.realpath(sys.executable)


def test_it_is_the_command_line_of_draftlight() -> None:
    done = launch("--version")
    assert (done.returncode, done.stderr) == (0, "")
    wrong = launch("no-such-command")
    assert wrong.returncode == 2
    assert "no-such-command" in wrong.stderr


def test_the_worker_is_the_same_executable() -> None:
    code = (
        "import sys, draftlight.__main__ as entry, core.cli, core.worker.client as client\n"
        "sys.executable = '/nowhere/python3'\n"
        "core.cli.main = lambda: print(*client.worker_command()) or 0\n"
        "sys.exit(entry.run())"
    )
    done = launch(code=code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [os.path.realpath(sys.executable), "--worker"]


def test_a_failure_is_a_traceback_and_status_1() -> None:
    code = (
        "import sys, draftlight.__main__ as entry, core.cli\n"
        "def fail(): raise ZeroDivisionError('one by none')\n"
        "core.cli.main = fail\n"
        "sys.exit(entry.run())"
    )
    done = launch(code=code)
    assert done.returncode == 1
    assert "ZeroDivisionError: one by none" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "pipe"),
    [
        (["-I", "-c", "from multiprocessing.resource_tracker import main;main(7)"], 7),
        (["-c", "from multiprocessing.resource_tracker import main; main(12)"], 12),
        (["-c", "import os; os.remove('x')"], None),
        (["-c", "from multiprocessing.resource_tracker import main;main(7);evil()"], None),
        (["--worker"], None),
        ([], None),
    ],
)
def test_only_the_resource_tracker_is_answered(arguments: list[str], pipe: int | None) -> None:
    assert tracker_pipe(arguments) == pipe


def test_a_spawned_lock_works_with_the_executable_as_interpreter(tmp_path: Path) -> None:
    needs_programs_in(tmp_path)
    # What tqdm does on a Mac: a lock of the spawn kind starts the tracker by sys.executable.
    script = tmp_path / "draftlight"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m draftlight "$@"\n')
    script.chmod(0o755)
    code = (
        "import multiprocessing.spawn as spawn, multiprocessing as mp\n"
        f"spawn.set_executable({str(script)!r})\n"
        "from multiprocessing import resource_tracker as rt\n"
        "lock = mp.get_context('spawn').RLock()\n"
        "import os; os.kill(rt._resource_tracker._pid, 0); print('alive')"
    )
    done = launch(code=code)
    assert (done.stdout.strip(), done.stderr) == ("alive", "")
