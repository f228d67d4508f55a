"""Whether a window can be opened, checked before Qt is imported."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.launch.display import answers_connection, display_problem, go_offscreen_without_display
from app.launch.libraries import APT_COMMAND

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a display")
NAMES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "XDG_SESSION_TYPE")


def lacking(libraries: str, platform: str = "") -> Callable[[list[str]], list[str]]:
    """As if `platform` lacked these libraries; empty: every platform."""
    return lambda platforms: libraries.split() if not platform or platform in platforms else []


def is_there(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("environment", "system", "missing", "said"),
    [
        ({}, "linux", "", ["DISPLAY", "QT_QPA_PLATFORM=offscreen"]),
        ({"DISPLAY": ":0"}, "linux", "", []),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", "", []),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", "", []),
        (
            {"DISPLAY": ":0"},
            "linux",
            "libxcb-cursor.so.0 libxkbcommon-x11.so.0",
            ["libxcb-cursor.so.0, libxkb", APT_COMMAND],
        ),
        ({"QT_QPA_PLATFORM": "cocoa"}, "linux", "", ["“cocoa”", "xcb"]),
        ({}, "darwin", "libEGL.so.1", []),
    ],
)
def test_what_a_window_needs(environment: dict[str, str], system: str, missing: str, said: list[str]) -> None:
    if system != "darwin" and not sys.platform.startswith(system):
        pytest.skip("other systems always have a display")
    problem = display_problem(environment, system, lacking(missing), lambda platform: True)
    assert bool(problem) is bool(said)
    assert all(words in problem for words in said), problem


@linux
@pytest.mark.parametrize(
    "environment", [{"WAYLAND_DISPLAY": "w"}, {"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}]
)
def test_libraries_of_another_platform_are_not_needed(environment: dict[str, str]) -> None:
    assert not display_problem(environment, "linux", lacking("libxcb.so.1", "xcb"), lambda platform: True)


@linux
@pytest.mark.parametrize(
    ("chosen", "missing", "answers", "used", "said"),
    [
        ("", "", ["xcb"], "xcb", ""),
        ("", "", ["wayland"], "wayland", ""),
        ("", "", ["xcb", "wayland"], "", ""),  # where both work the choice is Qt's
        ("", "wayland", ["xcb"], "xcb", ""),
        ("wayland", "", ["xcb"], "wayland", "WAYLAND_DISPLAY=w"),
        ("wayland;xcb", "", ["xcb"], "wayland;xcb", ""),
    ],
)
def test_the_display_that_answers_is_used_and_a_chosen_one_never_changed(
    chosen: str, missing: str, answers: list[str], used: str, said: str
) -> None:
    environment = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"} | ({"QT_QPA_PLATFORM": chosen} if chosen else {})
    lacks = lacking("libwayland-client.so.0", missing) if missing else lacking("")
    problem = display_problem(environment, "linux", lacks, answers.__contains__)
    assert environment.get("QT_QPA_PLATFORM", "") == used
    assert said in problem
    assert bool(problem) is bool(said)


def test_going_offscreen_only_without_a_display() -> None:
    for environment, name in (({"DISPLAY": ":0"}, "DISPLAY"), ({}, "QT_QPA_PLATFORM")):
        go_offscreen_without_display(environment, "linux")
        assert list(environment) == [name]


def start(**display: str) -> subprocess.CompletedProcess[str]:
    """The window's entry point in a process of its own, with exactly these displays."""
    code = "import sys\nfrom app.main import run\nassert 'PySide6' not in sys.modules\nsys.exit(run())"
    environment = {name: value for name, value in os.environ.items() if name not in NAMES}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**environment, **display})


@linux
@pytest.mark.parametrize(
    ("display", "said"),
    [
        ({}, "needs a display"),
        ({"DISPLAY": ":7654"}, "DISPLAY=:7654"),
        ({"WAYLAND_DISPLAY": "wayland-7"}, "WAYLAND_DISPLAY=wayland-7"),
    ],
)
def test_a_display_that_does_not_answer_ends_with_a_message(
    tmp_path: Path, display: dict[str, str], said: str
) -> None:
    """Missing libraries are named instead. A compositor that crashed leaves its socket."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "wayland-7"))
    done = start(**display, XDG_RUNTIME_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert said in done.stderr or "system libraries" in done.stderr
    assert len(done.stderr.splitlines()) < 8
    assert "Traceback" not in done.stderr


@linux
@pytest.mark.skipif(not is_there("libxcb.so.1"), reason="needs libxcb")
def test_an_x_server_that_is_not_there_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":7654")
    assert not answers_connection("xcb")


@linux
@pytest.mark.skipif(not is_there("libwayland-client.so.0"), reason="needs libwayland-client")
def test_a_compositor_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.launch.display.PATIENCE_S", 0.3)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-8")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "wayland-8"))
        silent.listen()
        assert not answers_connection("wayland")
    for thread in threading.enumerate():
        if thread.name == "display-probe":
            thread.join(10)  # it ends with the socket
