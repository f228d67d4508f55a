"""Opening and closing as a process of its own: signals, exit status, nothing on stdout."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.app.stage import gone

WAIT = """
import sys
from app.launch.opening import open_window, until_closed
from app.session.turn.link_state import Phase
from tests.app.stage import FAKE, ready

async def scenario(window):
    await ready(window)
    print(window.worker.pid, file=sys.stderr, flush=True)
    return await until_closed(window)

sys.exit(open_window("starter", scenario, command=FAKE))
"""
BEGUN = """
import sys
from app.launch.opening import open_window
from core.worker.client import WorkerClient

start, FAKE = WorkerClient.start, [sys.executable, "-m", "tests.app.fake_worker"]

async def told(client):
    had_window = bool({"app.shell.window", "app.theme.theme"} & set(sys.modules))
    await start(client)
    print(had_window, client.pid, flush=True)

WorkerClient.start = told
"""
FIRST = """
import asyncio

async def scenario(window):
    while window.worker.pid is None:
        await asyncio.sleep(0.01)
    print(window.worker.pid)
    return 0

open_window("starter", scenario, command=FAKE)
"""
LATE = """
import asyncio
import sys
from app.launch.opening import open_window
from app.fields.setting_field import SettingField
from core.settings import declared

LATER = (
    "app.features.about", "app.chat.attach_html", "app.chat.attach_pdf", "app.features.models.window",
    "app.features.settings.window", "app.features.tables.window", "app.features.images.viewer",
    "app.chat.tools.card", "core.origins.index", "core.tools.client", "core.documents.parts",
    "importlib.metadata",
)

async def scenario(window):
    window.repaint()
    print([name for name in LATER if name in sys.modules])
    fields = len(window.views.inspector.findChildren(SettingField))
    for _ in range(300):
        await asyncio.sleep(0.01)
    print(fields < len(declared()) == len(window.views.inspector.findChildren(SettingField)))
    for name in ("lab", "models", "settings", "tables"):
        window.windows.show(name)
    print([name for name in LATER if name in sys.modules])
    return 0

open_window("starter", scenario, command=[sys.executable, "-c", "input()"])
"""
TRACED = """
import sys, threading
from app.launch.opening import open_window
from core.events import Attachment
from tests.app.fake_worker import said
from tests.app.stage import FAKE, ready, until

LEASE = "The rent is 8,400 euros a year and falls due on the first Monday of March."

class Told:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("core.origins.") and name != "core.origins.types":
            print(name, threading.current_thread() is threading.main_thread())

async def scenario(window):
    sys.meta_path.insert(0, Told())
    await ready(window)
    window.views.composer.attach(Attachment("lease.md", LEASE, 20))
    window.views.composer.set_text(said(LEASE))
    window.views.composer.submit()
    turns = lambda: window.controller.chats.open.turns
    await until(lambda: turns() and turns()[-1].answer.over and not window.controller.origins.is_busy)
    answer = window.views.transcript.answer(turns()[-1].id)
    await until(lambda: answer.body.marks)
    return 0

print(open_window("starter", scenario, command=FAKE))
"""
SLOW = """
import threading, time
from qasync import QEventLoop
from app.launch.opening import open_window
from tests.app.stage import FAKE, ready

tell = QEventLoop.call_soon_threadsafe

def slowly(loop, *given, **named):
    told = tell(loop, *given, **named)
    if "waitpid-" in threading.current_thread().name:
        time.sleep(0.5)
    return told

QEventLoop.call_soon_threadsafe = slowly

async def scenario(window):
    await ready(window)
    return 0

print(open_window("starter", scenario, command=FAKE), *(thread.name for thread in threading.enumerate()))
"""
NO_WINDOW = """
import app.shell.window

def fails(*given, **named):
    raise RuntimeError("a window that cannot be made")

app.shell.window.MainWindow = fails
open_window("starter", None, command=FAKE)
"""
NO_HOST = """
import app.launch.host

def fails(*given, **named):
    raise RuntimeError("a window that cannot be shown")

app.launch.host.Host = fails
open_window("starter", None, command=FAKE)
"""
FAILING = """
import asyncio, sys, threading
from pathlib import Path
from PySide6.QtCore import QTimer
from app.launch.failures import Failures
from app.launch.opening import open_window
from tests.app.stage import FAKE, until

async def scenario(window):
    QTimer.singleShot(0, lambda: 1 / 0)
    asyncio.get_running_loop().call_soon(lambda: [][1])
    threading.Thread(target=lambda: {}["thread"]).start()
    await until(lambda: window.views.banner.trouble)
    print(window.views.banner.trouble.text, *window.views.banner.trouble.log)
    print(window.worker.pid)
    raise RuntimeError("at the end")

open_window("starter", Failures(Path(sys.argv[1])).shown(scenario), command=FAKE)
"""


@pytest.mark.sweep
def test_a_failure_is_shown_and_logged_and_leaves_no_worker(tmp_path: Path) -> None:
    command, log = [sys.executable, "-c", FAILING, str(tmp_path)], tmp_path / "window.log"
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert str(log) in done.stdout, done.stderr
    assert "Traceback" in done.stdout
    for name in ("ZeroDivisionError", "IndexError", "KeyError: 'thread'", "RuntimeError: at the end"):
        assert name in log.read_text()
        assert name in done.stderr
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert done.returncode == 1
    _until_gone(int(done.stdout.split()[-1]))


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_signal_closes_the_window_in_order() -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WAIT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    line = ""
    while not line.strip().isdigit():  # Qt may say something first
        line = process.stderr.readline()
        assert line, "the window never was ready"
    worker = int(line)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out == ""
    assert "Traceback" not in err
    assert "Warning" not in err
    _until_gone(worker)


@pytest.mark.sweep
def test_a_signal_during_the_start_closes_the_window_in_order() -> None:
    """Sent by the process itself while it makes the application: nothing of the window exists then."""
    during = "import os, signal; from app.launch import opening; made = opening._application\n"
    during += "opening._application = lambda: (os.kill(os.getpid(), signal.SIGTERM), made())[1]\n"
    wait = WAIT.replace(
        "    await ready(window)\n    print(window.worker.pid, file=sys.stderr, flush=True)\n", ""
    )
    done = subprocess.run(
        [sys.executable, "-c", during + wait], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.sweep
def test_the_worker_begins_before_the_window_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", BEGUN + FIRST], capture_output=True, text=True, timeout=60)
    had_window, begun, spoken_to = done.stdout.split()
    assert (had_window, begun) == ("False", spoken_to), done.stderr


@pytest.mark.sweep
def test_what_nobody_opened_is_not_imported_before_the_window_is_there() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60)
    before, fields, after = done.stdout.splitlines()
    assert before == "[]", done.stderr
    assert fields == "True", "the rest of the inspector is made when the window is there"
    assert "app.features.tables.window" in after


@pytest.mark.sweep
def test_what_traces_is_imported_with_the_first_source_and_not_on_the_windows_thread() -> None:
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60)
    *imported, status = done.stdout.splitlines()
    assert status == "0", done.stderr
    assert "core.origins.index False" in imported
    assert {line.split()[1] for line in imported} == {"False"}


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("fails", "said"),
    [(NO_WINDOW, "a window that cannot be made"), (NO_HOST, "a window that cannot be shown")],
)
def test_a_window_that_cannot_be_opened_leaves_no_worker(fails: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEGUN + fails], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Task was destroyed" not in done.stderr
    _until_gone(int(done.stdout.split()[1]))


def test_no_thread_is_left_when_it_returns() -> None:
    """One that was still telling Qt of the worker's end ended the process by SIGABRT, now and then."""
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["0", "MainThread"], done.stderr
    assert done.returncode == 0


def _until_gone(pid: int) -> None:
    end_s = time.monotonic() + 60
    while not gone(pid):
        assert time.monotonic() < end_s, f"process {pid} is left"
        time.sleep(0.01)


def test_environment_is_left_alone_by_imports() -> None:
    code = "import os; before = dict(os.environ)\n"
    code += "import app.launch.scenario, app.main, app.launch.opening\n"
    code += "from PySide6.QtWidgets import QApplication\nassert QApplication.instance() is None\n"
    code += "assert dict(os.environ) == before"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=dict(os.environ))
