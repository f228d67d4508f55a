"""A window in a home that is read-only, or on a full disk: it shows the chats, warns, and saves later."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.store.library import Library
from app.store.preferences import PreferencesFile
from tests.app.store.chats import chat_of

_USER = 65534
# Modules may be imported from a home of root; nothing may be written.
_AS_USER = (
    *("setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
WINDOW = """
import asyncio, sys
from app.launch.opening import open_window
from core.system.paths import data_dir
from tests.app.stage import asked, ready, shown, until
from tests.app.store.chats import chat_of

def warned(window):  # the banner has other warnings, too: tables cannot be saved
    held = window.controller.trouble._troubles.held
    return any(each.title == "The chats cannot be saved." for each in held)

async def scenario(window):
    await ready(window)
    await until(lambda: warned(window))
    window.controller.chat.select("c1")
    assert shown(window) == chat_of(1).turns[0].answer.text
    await asked(window, "Say hello.")
    assert warned(window)
    window.app_settings.set("look.token_colors", "origins")
    print("asked", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await until(lambda: not window.controller.home.library.waiting())
    await until(lambda: not warned(window))
    return 0

sys.exit(open_window(sys.argv[1], scenario, folder=data_dir()))
"""


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["read-only", "full"])
def test_chats_are_shown_and_saved_later(kind: str, toy_folder: Path) -> None:
    root = os.geteuid() == 0
    with ExitStack() as at_end:
        place = Path(
            at_end.enter_context(tempfile.TemporaryDirectory())
        )  # pytest's are closed to other users
        place.chmod(0o755)
        model, home = shutil.copytree(toy_folder, place / "toy"), place / "home"
        home.mkdir()
        if kind == "full":
            mount = ("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(home))
            if not root or subprocess.run(mount, capture_output=True).returncode:
                pytest.skip("only root can mount a small disk")
            at_end.callback(subprocess.run, ["umount", str(home)], check=True)
        library = Library(home / "data")
        library.save(chat_of(1))
        assert library.close()
        paths = [home, *home.rglob("*")]
        for path in paths:
            os.chown(path, _USER if root else -1, -1)
        if kind == "full":
            (home / "other").write_bytes(bytes(shutil.disk_usage(home).free))
        for path in paths if kind == "read-only" else ():
            path.chmod(path.stat().st_mode & ~0o222)
            at_end.callback(path.chmod, path.stat().st_mode | 0o200)
        before = (home / "data" / "chats.db").read_bytes()
        window = subprocess.Popen(
            [*(_AS_USER if root else ()), sys.executable, "-c", WINDOW, str(model)],
            env={**os.environ, "DRAFTLIGHT_HOME": str(home), "HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = window.stdout.readline()
        unchanged = (home / "data" / "chats.db").read_bytes() == before
        for path in paths:
            path.chmod(path.stat().st_mode | 0o200)
        (home / "other").unlink(missing_ok=True)
        _, errors = window.communicate("\n", timeout=300)
        assert (window.returncode, said, unchanged) == (0, "asked\n", True), errors
        library = Library(home / "data")
        at_end.callback(library.close)
        assert library.problem is None
        assert PreferencesFile(home / "data").now.settings.look.token_colors == "origins"
        assert len(library.load("c1").turns) == len(chat_of(1).turns) + 1
