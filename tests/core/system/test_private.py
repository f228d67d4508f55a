"""Private files: 0600 and 0700 whatever the umask, and existing ones tightened."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.system import private


@pytest.fixture(params=[0, 0o022, 0o277], ids=["open", "usual", "closed"])
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Set once pytest has made the test's own folder, into which its user must be able to write."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.usefixtures("umask")
def test_new_files_and_folders_are_private(tmp_path: Path) -> None:
    folder = private.make_folder(tmp_path / "home" / "data" / "tables")
    with open(folder / "opened", "ab", opener=private.opener) as file:
        file.write(b"words")
    private.make_file(folder / "made")
    assert [mode(each) for each in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3
    assert [mode(each) for each in folder.iterdir()] == [0o600] * 2


@pytest.mark.usefixtures("umask")
def test_the_files_beside_a_database_are_private(tmp_path: Path) -> None:
    with closing(sqlite3.connect(private.make_file(tmp_path / "chats.db"))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE words (word)")
        names = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert names == dict.fromkeys(("chats.db", "chats.db-wal", "chats.db-shm"), 0o600)


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(OSError, match="data"):
        private.make_folder(tmp_path / "data")
    with pytest.raises(OSError, match="data"):
        private.make_folder(tmp_path / "data" / "tables")


def test_existing_files_are_tightened_when_opened(tmp_path: Path) -> None:
    for name, opened in (("a", True), ("b", False)):
        path = tmp_path / name
        path.write_bytes(b"old")
        path.chmod(0o644)
        if opened:
            with open(path, "ab", opener=private.opener) as file:
                file.write(b"!")
        else:
            private.make_file(path)
        assert (mode(path), path.read_bytes()[:3]) == (0o600, b"old")


def test_an_old_home_is_tightened_without_its_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home / "data" / "models", home / "cache"):
        folder.mkdir(parents=True)
    elsewhere.write_bytes(b"another program's")
    elsewhere.chmod(0o644)
    (home / "data" / "link").symlink_to(elsewhere)
    (home / "data" / "loop").symlink_to(home / "data")
    os.mkfifo(home / "data" / "pipe", 0o666)
    for name in ("config.toml", "data/models/run.sh", "cache/x.json"):
        (home / name).write_bytes(b"x")
        (home / name).chmod(0o755)
    home.chmod(0o755)
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(home))
    private.tighten_home()
    found = {path.relative_to(tmp_path): mode(path) for path in (home, *home.glob("*"), *home.glob("*/*"))}
    assert {str(path) for path, bits in found.items() if bits & 0o077} == {"home/data/link", "home/data/loop"}
    assert (mode(home / "data" / "models" / "run.sh"), mode(elsewhere)) == (0o700, 0o644)


def test_a_home_with_other_content_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir(0o755)
    (tmp_path / "letter.txt").write_bytes(b"x")
    (tmp_path / "letter.txt").chmod(0o644)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    private.tighten_home()
    assert [mode(tmp_path / name) for name in (".", "data", "letter.txt")] == [0o755, 0o700, 0o644]
