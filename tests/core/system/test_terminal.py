"""One Ctrl-C ends the process, whatever its work makes of it, and nothing is left behind after."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.system.terminal import STOPPED, ProgressLine, VisibleText, until_ctrl_c, write_raw

# What may happen to a KeyboardInterrupt, and a call that no signal ends.
BUSY = {
    "caught by a library": """
while True:
    try: time.sleep(60)
    except: pass
""",
    "lost in a destructor": """
class Slow:
    def __del__(self): time.sleep(0.05)
while True:
    Slow()
""",
    "in a call that goes on": """
import ctypes
library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
library.pthread_mutex_init(mutex, None)
library.pthread_mutex_lock(mutex)
library.pthread_mutex_lock(mutex)
""",
}
BLOCK = """
import sys, time
from core.system.terminal import until_ctrl_c
def work():
    print("begun", flush=True)
{busy}
until_ctrl_c(work, lambda: print("Paused.", flush=True))
"""


@contextmanager
def child(code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `code` and has said its first word; it ends with the block."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("busy", BUSY.values(), ids=BUSY)
def test_it_ends_whatever_it_is_doing(busy: str) -> None:
    with child(BLOCK.format(busy=busy.replace("\n", "\n    "))) as process:
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=10)
        assert (process.returncode, said) == (STOPPED, "Paused.\n")


def test_where_ctrl_c_is_ignored_it_stays_ignored() -> None:
    ignored = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    with child(ignored + BLOCK.format(busy="    time.sleep(0.5)") + "print('ended')") as process:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=10)
        assert (process.returncode, said) == (0, "ended\n")


def test_the_result_and_the_error_of_the_work_are_passed_on() -> None:
    threads = threading.active_count()
    assert until_ctrl_c(lambda: 7, lambda: None) == 7
    with pytest.raises(ZeroDivisionError):
        until_ctrl_c(lambda: 1 // 0, lambda: None)
    assert threading.active_count() == threads


def test_control_characters_are_escaped_but_for_our_own() -> None:
    raw = io.BytesIO()
    stream = VisibleText(raw, "utf-8", newline="")
    print("a\x1b[31m\r\x9b2J\x7f\x00é\tb", file=stream)
    write_raw(stream, "\r\x1b[K")
    assert raw.getvalue().decode() == "a\\u001b[31m\\u000d\\u009b2J\\u007f\\u0000é\tb\n\r\x1b[K"


@pytest.mark.sweep
def test_no_name_reaches_the_terminal_raw(tmp_path: Path) -> None:
    """The names of a listed, an imported and a missing model."""
    folder = tmp_path / "home" / "data" / "models" / "bad\x1b[31m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "\x1b]0;x\x07", "draftlight_name": "\x9b"}))
    environment = {**os.environ, "DRAFTLIGHT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    for words in (
        ["models", "list"],
        ["models", "import", str(folder)],
        ["generate", "--model=\x1b[2J", "--prompt=x"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "core.cli", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        text = (done.stdout + done.stderr).decode()
        assert "\\u001b[" in text, words
        assert not any(character != "\n" and not character.isprintable() for character in text), words


@pytest.mark.parametrize(("words", "shown"), [("模a" * 9, "模a" * 6), ("\x07" * 9, "\\u0007" * 3 + "\\")])
def test_progress_fits_the_terminal_of_stderr(
    monkeypatch: pytest.MonkeyPatch, words: str, shown: str
) -> None:
    ends = pty.openpty()
    termios.tcsetwinsize(ends[1], (24, 20))
    with open(ends[0], "rb", buffering=0) as seen, open(ends[1], "w", encoding="utf-8") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        ProgressLine().say(words)
        assert seen.read(200).decode() == f"\r\x1b[K{shown}"
