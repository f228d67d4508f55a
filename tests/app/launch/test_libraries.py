"""System libraries of PySide6: read from the wheel, mapped to packages, reported with README's command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.launch.libraries import (
    APT_COMMAND,
    MODULES,
    PACKAGES,
    linked_libraries,
    missing_message,
    platform_names,
    read_needed,
)

ROOT = Path(__file__).parents[3]
PLATFORMS = ("offscreen", "xcb", "wayland")
# Python itself, dpkg and apt need these, so every Debian has them.
LOADER = "ld-linux-x86-64.so.2 libc.so.6 libdl.so.2 libgcc_s.so.1 libm.so.6 libpthread.so.0"
BASE = {*LOADER.split(), "libresolv.so.2", "librt.so.1", "libstdc++.so.6", "libz.so.1"}
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux checks its libraries")


@linux
def test_every_library_that_pyside_links_has_a_package() -> None:
    linked = linked_libraries(PLATFORMS)
    assert {"libEGL.so.1", "libGL.so.1", "libglib-2.0.so.0", "libfontconfig.so.1", "libdbus-1.so.3"} <= linked
    assert linked - BASE == set(PACKAGES)


@linux
def test_offscreen_needs_no_xcb_and_no_wayland() -> None:
    offscreen = linked_libraries(["offscreen"])
    assert "libEGL.so.1" in offscreen
    assert not [name for name in offscreen if "xcb" in name or "wayland" in name]
    assert "libxcb-cursor.so.0" in linked_libraries(["xcb"])
    assert "libwayland-client.so.0" in linked_libraries(["wayland"])


@linux
def test_the_loader_agrees_with_what_was_read() -> None:
    """A process that imports every module and opens the window's platform maps no other system library."""
    code = (
        f"import importlib\nfor name in {MODULES!r}: importlib.import_module('PySide6.' + name)\n"
        "from PySide6.QtWidgets import QApplication, QLabel\n"
        "application = QApplication([]); label = QLabel('text'); label.show(); label.grab()\n"
        "print(open('/proc/self/maps').read())"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    mapped = {Path(line.split()[-1]).name for line in done.stdout.splitlines() if ".so" in line}
    for library in linked_libraries(["offscreen"]) - {"ld-linux-x86-64.so.2"}:
        stem = library.partition(".so")[0]
        assert any(name.startswith(stem) for name in mapped), library


def test_every_imported_module_is_checked() -> None:
    imported = {
        module
        for folder in ("app", "tests")
        for path in (ROOT / folder).rglob("*.py")
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
    assert "and 3 more" in missing_message([f"lib{number}.so" for number in range(9)])


@linux
def test_the_check_runs_on_an_interpreter_without_pyside_or_any_package() -> None:
    """`-S -I` hides every installed package; the module itself must still run."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    code += "import app.launch.libraries as it; sys.exit(it.main([]))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@linux
def test_the_command_exits_with_1_and_names_what_is_missing() -> None:
    """As on a machine without the libraries: the loader finds none of those in PACKAGES."""
    code = (
        "import sys, app.launch.libraries as it\n"
        f"it.is_loadable = lambda name: name in {BASE}\n"
        "sys.exit(it.main(['xcb']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert "libEGL.so.1" in done.stderr
    assert APT_COMMAND in done.stderr
    assert "Traceback" not in done.stderr


@linux
def test_platforms_are_those_of_the_wheel() -> None:
    assert set(PLATFORMS) <= set(platform_names())


def test_files_that_are_not_elf_link_nothing(tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("INPUT(libm.so.6)")
    assert read_needed(path) == ([], [])
