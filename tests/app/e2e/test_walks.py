"""Tried as people would, on a virtual display, with real keys and a real mouse: `first_hour`, `new_user`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.app.e2e.hands import PICTURES

# On two quiet cores each visit takes one to two minutes. This is for machines with other things to do.
_LONGEST_S = 1800
_MISSING = [name for name in ("Xvfb", "xdotool", "openbox") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(2 * _LONGEST_S + 60),
    pytest.mark.skipif(sys.platform != "linux", reason="needs an X display"),
    pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}"),
]


@pytest.fixture
def display(tmp_path: Path) -> Iterator[str]:
    """A display of its own, whose number Xvfb chooses, with a window manager: without one, closing a window
    gives the keyboard to none.
    """
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"]
    with (tmp_path / "xvfb.log").open("wb") as log:
        server = subprocess.Popen(command, pass_fds=[writing], stdout=log, stderr=log)
    os.close(writing)
    with os.fdopen(reading) as told:
        number = told.readline().strip()
    assert number, (tmp_path / "xvfb.log").read_text()
    manager = subprocess.Popen(
        ["openbox"], env={**os.environ, "DISPLAY": f":{number}"}, stderr=subprocess.DEVNULL
    )
    yield f":{number}"
    for process in (manager, server):
        process.terminate()
        process.wait(10)


def visit(
    which: str,
    display: str,
    home: Path,
    who: str = "new_user",
    before: Sequence[str] = (),
    chats: str = "data",
) -> str:
    """One run of the program, by the command `before` if it is given; what it printed.

    `chats`: the folder in `home` where the chats are kept.
    """
    environment = {
        **os.environ,
        PICTURES: str(_pictures(home, f"{who}-{which}")),
        "DISPLAY": display,
        "QT_QPA_PLATFORM": "xcb",
        "QT_SCALE_FACTOR": "1",
        "DRAFTLIGHT_HOME": str(home),
    }
    environment.pop("WAYLAND_DISPLAY", None)
    command = [*before, sys.executable, "-m", f"tests.app.e2e.{who}", which, str(home / chats)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LONGEST_S)
    print(done.stdout)
    if done.returncode and "xcb" in done.stderr and "plugin" in done.stderr:
        pytest.skip(f"Qt's xcb plugin lacks a library here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr[-4_000:]
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def _pictures(home: Path, name: str) -> Path:
    """A folder for those of one visit; in the one that `PICTURES` names, if it names one."""
    folder = Path(os.environ.get(PICTURES, home / "pictures")).absolute() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def test_a_new_user(display: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "edited and asked again" in visit("first", display, home)
    assert "in the Document tab" in visit("again", display, home)


def test_the_first_hour(display: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "nothing was sent" in visit("first", display, home, "first_hour")
    assert "  closed" in visit("again", display, home, "first_hour")
    small = home / "small"
    small.mkdir()
    before = small_disk(small, home / "data")
    if subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    assert "  closed" in visit("full", display, home, "first_hour", before, small.name)


def small_disk(at: Path, copied: Path) -> list[str]:
    """Starts a command with a disk of its own at `at`, which holds a copy of `copied` but its models."""
    copy = f'find "{copied}" -mindepth 1 -maxdepth 1 ! -name models -exec cp -a -t "{at}" {{}} +'
    commands = f'mount -t tmpfs -o size=8m tmpfs "{at}" && {copy} && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", commands, "sh"]
