"""System libraries of PySide6: asked of the loader, reported with README's command."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.launch.libraries import (
    APT_COMMAND,
    MODULES,
    missing_libraries,
    missing_message,
    platform_names,
)

ROOT = Path(__file__).parents[3]
PLATFORMS = ("offscreen", "xcb", "wayland")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux checks its libraries")


@linux
def test_nothing_is_missing_here() -> None:
    assert missing_libraries(["offscreen"]) == []


@linux
@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_the_loader_does_not_find_is_named_once(platform: str) -> None:
    """For every module, and for the plugins of this platform alone."""
    asked: list[str] = []

    def load(path: str) -> None:
        asked.append(path)
        name = "libdraftlight-window.so.0" if platform in path else "libdraftlight-all.so.0"
        ctypes.CDLL(name)

    assert missing_libraries([platform], load) == ["libdraftlight-all.so.0", "libdraftlight-window.so.0"]
    assert all(Path(path).is_file() for path in asked)
    assert all(any(f"/{module}.abi3.so" in path for path in asked) for module in MODULES)
    others = set(PLATFORMS) - {platform}
    assert not [path for path in asked if any(f"platforms/libq{other}" in path for other in others)]


def test_every_imported_module_is_checked() -> None:
    imported = {
        module
        for path in (ROOT / "app").rglob("*.py")
        for module in re.findall(r"(?:from|import) PySide6\.(\w+)", path.read_text("utf-8"))
    }
    assert imported <= set(MODULES)


def test_a_message_has_one_command_and_it_is_in_the_readme() -> None:
    message = missing_message(["libEGL.so.1", "libxcb-cursor.so.0"])
    assert "libEGL.so.1, libxcb-cursor.so.0" in message
    assert message.count("apt-get install") == 1
    assert APT_COMMAND in message
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [line.strip() for line in readme.splitlines() if "apt-get" in line] == [APT_COMMAND]
    assert missing_message([]) == ""


@linux
def test_the_check_runs_on_an_interpreter_without_pyside_or_any_package() -> None:
    """`-S -I` hides every installed package; the module itself must still run."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    code += "import app.launch.libraries as it; sys.exit(it.main([]))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@linux
def test_the_command_exits_with_1_and_names_what_is_missing() -> None:
    code = (
        "import sys, app.launch.libraries as it\n"
        "it.missing_libraries = lambda platforms: ['libEGL.so.1', *platforms]\n"
        "sys.exit(it.main(['xcb']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert "libEGL.so.1, xcb" in done.stderr
    assert APT_COMMAND in done.stderr
    assert "Traceback" not in done.stderr


@linux
def test_platforms_are_those_of_the_wheel() -> None:
    assert set(PLATFORMS) <= set(platform_names())
