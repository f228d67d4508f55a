"""After the window and commands used a home, none of its files is readable by others, whatever the umask, and
none has text of a chat that was deleted permanently."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

WINDOW = """
import os, sys
from pathlib import Path
from app.launch.opening import open_window
from core.system.paths import data_dir
from app.store.copies import Backups
from tests.app.stage import asked, until

async def scenario(window):
    await asked(window, "Say heliotrope." * 40)
    chats, library = window.controller.chats, window.controller.home.library
    await until(library.flush)
    Backups(data_dir() / "chats.db").make()
    secret = chats.open.id
    window.controller.chat.start()
    await asked(window, "Say hello.")
    assert any(b"heliotrope" in each.read_bytes() for each in data_dir().rglob("*") if each.is_file())
    chats.purge(secret)
    await until(library.flush)
    window.controller.home.preferences.change(model_offered=True)
    return 0

sys.exit(open_window(sys.argv[1], scenario, folder=data_dir()))
"""


@pytest.mark.sweep
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_used_home_is_its_owners_only(tmp_path: Path, toy_folder: Path, umask: int) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "DRAFTLIGHT_HOME": str(home), "HOME": str(tmp_path)}
    for words in (
        ["-c", WINDOW, str(toy_folder)],
        ["-m", "core.cli", "generate", "--model", str(toy_folder), "--prompt", "hi", "--max-tokens", "4"],
        ["-m", "core.cli", "models", "import", str(toy_folder)],
        ["-m", "core.cli", "models", "list"],
    ):
        subprocess.run(
            [sys.executable, *words], env=environment, umask=umask, check=True, capture_output=True
        )
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in (home, *home.rglob("*"))}
    names = {path.name for path in found}
    assert {"chats.db", "preferences.json", "imported.json", "families", "tables"} <= names
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}
    assert [path for path in found if path.is_file() and b"heliotrope" in path.read_bytes()] == []
