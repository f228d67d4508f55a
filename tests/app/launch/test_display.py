"""Whether a window can be opened, asked before Qt is imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.launch.display import XCB, display_problem, go_offscreen_without_display, is_loadable


def everything(library: str) -> bool:
    return True


def test_no_display_is_named() -> None:
    problem = display_problem({}, "linux", everything)
    assert "DISPLAY" in problem
    assert "QT_QPA_PLATFORM=offscreen" in problem


@pytest.mark.parametrize(
    "environment", [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}, {"QT_QPA_PLATFORM": "offscreen"}]
)
def test_a_display_or_a_platform_is_enough(environment: dict[str, str]) -> None:
    assert display_problem(environment, "linux", everything) == ""


def test_missing_xcb_libraries_are_named_with_their_packages() -> None:
    missing = {"libxcb-cursor.so.0", "libxkbcommon-x11.so.0"}
    problem = display_problem({"DISPLAY": ":0"}, "linux", lambda library: library not in missing)
    assert "apt-get install libxkbcommon-x11-0 libxcb-cursor0" in problem
    assert "1 more" in problem


@pytest.mark.parametrize(
    "environment", [{"WAYLAND_DISPLAY": "w"}, {"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}]
)
def test_xcb_is_not_asked_for_where_it_is_not_used(environment: dict[str, str]) -> None:
    assert display_problem(environment, "linux", lambda library: library not in XCB) == ""


def test_without_egl_qt_cannot_even_be_imported() -> None:
    problem = display_problem({"QT_QPA_PLATFORM": "offscreen"}, "linux", lambda library: "EGL" not in library)
    assert "libegl1" in problem


def test_elsewhere_nothing_is_asked() -> None:
    assert display_problem({}, "darwin", lambda library: False) == ""


def test_the_loader_is_really_asked() -> None:
    assert is_loadable("libc.so.6" if sys.platform.startswith("linux") else "libSystem.dylib")
    assert not is_loadable("libdraftlight-does-not-exist.so.0")


def test_going_offscreen_only_without_a_display() -> None:
    environment = {"DISPLAY": ":0"}
    go_offscreen_without_display(environment, "linux")
    assert environment == {"DISPLAY": ":0"}
    environment = {}
    go_offscreen_without_display(environment, "linux")
    assert environment == {"QT_QPA_PLATFORM": "offscreen"}


def test_the_entry_point_says_it_and_does_not_abort() -> None:
    code = "import sys\nfrom app.main import run\nassert 'PySide6' not in sys.modules\nsys.exit(run())"
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    if not sys.platform.startswith("linux"):
        pytest.skip("other systems always have a display")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode == 1
    assert "needs a display" in done.stderr
    assert done.stdout == ""
