"""The folder of saved chats: limits, use, erasure, leftovers of killed processes, several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.kv import saved_files
from core.kv.saved_files import SavedFiles


@pytest.fixture
def files(tmp_path: Path) -> SavedFiles:
    return SavedFiles(tmp_path / "contexts")


def save(
    files: SavedFiles, chat: str, size_bytes: int, used_at: int, limit_bytes: int = 1 << 30, model: str = "m"
) -> str:
    path = files.path(chat, model)
    problem = files.reserve(path, size_bytes, limit_bytes)
    if not problem:
        with files.writing(path) as file:
            file.write(b"x" * size_bytes)
        os.utime(path, ns=(used_at, used_at))
    return problem


def kept(files: SavedFiles, chats: str, model: str = "m") -> str:
    return "".join(chat for chat in chats if files.path(chat, model).exists())


def test_only_the_owner_can_read(files: SavedFiles) -> None:
    assert save(files, "secret name", 10, 1) == ""
    assert files.folder.stat().st_mode & 0o777 == 0o700
    for path in files.folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert "secret" not in path.name


def test_the_least_recently_used_goes_first(files: SavedFiles) -> None:
    for at, chat in enumerate("abc"):
        assert save(files, chat, 300, at + 1, 1000) == ""
    opened = files.open(files.path("a", "m"))
    assert opened is not None
    opened.close()
    assert save(files, "d", 300, 10**19 // 2, 1000) == ""
    assert kept(files, "abcd") == "acd"
    # A replacement does not remove others for its own old size.
    assert save(files, "d", 400, 10**19 // 2, 1000) == ""
    assert kept(files, "abcd") == "acd"
    assert "limit is 0 MB" in save(files, "e", 1001, 1, 1000)
    assert kept(files, "abcd") == "acd"
    files.clean(450)
    assert kept(files, "abcd") == "d"


def test_an_almost_full_disk(files: SavedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = saved_files.shutil.disk_usage
    monkeypatch.setattr(saved_files.shutil, "disk_usage", lambda path: usage(path)._replace(free=1 << 30))
    assert save(files, "a", 1, 1) == "the disk is almost full"
    assert files.usage() == (0, 0)


def test_erasing_a_chat_takes_all_its_models(files: SavedFiles) -> None:
    save(files, "a", 1, 1)
    save(files, "a", 1, 1, model="other")
    save(files, "b", 1, 1)
    files.erase(["a", "unknown"])
    assert (kept(files, "ab"), kept(files, "ab", "other")) == ("b", "")
    assert files.erase_all() == 0
    assert files.usage() == (0, 0)


def test_what_cannot_be_erased_is_counted(files: SavedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    save(files, "a", 1, 1)
    save(files, "b", 1, 1)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert (files.erase(["a", "unknown"]), files.erase_all()) == (1, 2)
    assert kept(files, "ab") == "ab"


def test_a_failed_write_keeps_the_old_file(files: SavedFiles) -> None:
    save(files, "a", 5, 1)
    with pytest.raises(OSError), files.writing(files.path("a", "m")) as file:  # noqa: PT011, PT012
        file.write(b"half")
        raise OSError(28, "No space left on device")
    assert files.path("a", "m").read_bytes() == b"x" * 5
    assert files.usage() == (1, 5)


KILLED = """
import os, signal, sys
from pathlib import Path
from core.kv.saved_files import SavedFiles
files = SavedFiles(Path(sys.argv[1]))
path = files.path("a", "m")
assert files.reserve(path, 100, 1 << 30) == ""
with files.writing(path) as file:
    file.write(b"y" * 50)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left(files: SavedFiles) -> None:
    save(files, "a", 5, 1)
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(files.folder)], check=False, timeout=60)
    assert files.path("a", "m").read_bytes() == b"x" * 5
    assert files.usage() == (3, 105)
    files.clean(1 << 30)
    assert files.usage()[0] == 3, "another process may be writing them"
    for path in files.folder.glob(".*.tmp"):
        os.utime(path, (1, 1))
    files.clean(1 << 30)
    assert files.usage() == (1, 5)
    # Erasing a chat takes what was left of it, too.
    subprocess.run([sys.executable, "-c", KILLED, str(files.folder)], check=False, timeout=60)
    files.erase(["a"])
    assert files.usage() == (0, 0)


def test_an_open_file_stays_readable_while_another_process_replaces_it(files: SavedFiles) -> None:
    save(files, "a", 5, 1)
    opened = files.open(files.path("a", "m"))
    assert opened is not None
    with opened:
        save(SavedFiles(files.folder), "a", 7, 1)
        files.erase_all()
        assert opened.read() == b"x" * 5
    assert files.open(files.path("a", "m")) is None
