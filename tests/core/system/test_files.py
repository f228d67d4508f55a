"""Atomic replacement and the JSON store."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from msgspec import Struct

from core.system.files import JsonStore, load_json, replacing, save_json, write_atomic


class Measured(Struct, frozen=True):
    key: str
    seconds: float


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_in_the_middle(path: Path, error: BaseException) -> None:
    with replacing(path) as file:
        file.write(b"half")
        raise error


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "chats.json"
    path.write_bytes(b"old")
    with pytest.raises(type(error)) as raised:
        fail_in_the_middle(path, error)
    assert isinstance(error, KeyboardInterrupt) or (raised.value.errno, raised.value.filename) == (
        errno.ENOSPC, str(path)
    )  # fmt: skip
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["chats.json"])


def test_the_previous_file_is_kept_and_restored_if_the_rename_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, previous = tmp_path / "table", tmp_path / "table.previous"
    write_atomic(path, b"1")
    write_atomic(path, b"2", keep=previous)
    assert (path.read_bytes(), previous.read_bytes()) == (b"2", b"1")
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if Path(source).suffix == ".tmp":
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="Input/output"):
        write_atomic(path, b"3", keep=previous)
    assert path.read_bytes() == b"2"


def test_permissions_are_private_or_those_of_the_old_file(tmp_path: Path) -> None:
    private, shared = tmp_path / "table", tmp_path / "export.md"
    write_atomic(private, b"words of a chat")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    shared.write_bytes(b"old")
    shared.chmod(0o640)
    with replacing(shared, private=False) as file:
        file.write(b"new")
    assert (stat.S_IMODE(shared.stat().st_mode), shared.read_bytes()) == (0o640, b"new")


@pytest.mark.parametrize("name", ["a" * 250 + ".md", "漢" * 80 + ".md"])
def test_the_longest_names_can_be_replaced(tmp_path: Path, name: str) -> None:
    write_atomic(tmp_path / name, b"new")
    assert names(tmp_path) == [name]


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "there.md", tmp_path / "here.md"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"key": "a"}', b"[" * 100_000, b"\xff\xfe"])
def test_damaged_json_is_ignored(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "index.json"
    path.write_bytes(content)
    assert load_json(path, Measured) is None


def test_json_on_a_disk_that_refuses_it_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    save_json(tmp_path / "file" / "index.json", {"a": 1})


def test_values_are_stored_by_key_and_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    store = JsonStore("cost-v2", Measured)
    first, second = Measured("model a", 0.5), Measured("model b", 0.25)
    assert store.load("model a") is None
    assert store.save(first)
    assert store.save(second)
    assert store.load("model a") == first
    assert sorted(store.all(), key=lambda each: each.key) == [first, second]
    assert JsonStore("cost-v3", Measured).load("model a") is None
    for path in (tmp_path / "cache" / "profiles").iterdir():  # another model's content under this name
        path.write_bytes(b'{"key": "model c", "seconds": 1.0}')
    assert store.load("model a") is None


def test_a_link_to_itself_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "loop"
    link.symlink_to(link)
    write_atomic(link, b"new")
    assert link.read_bytes() == b"new"


@pytest.mark.parametrize("refused", [False, True])
def test_on_macos_a_sync_reaches_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """Some volumes refuse F_FULLFSYNC."""
    calls: list[object] = []

    def control(descriptor: int, command: int) -> None:
        calls.append(command)
        if refused:
            raise OSError(45, "Operation not supported")

    monkeypatch.setattr("core.system.files._FULL_SYNC", 51)
    monkeypatch.setattr("core.system.files.fcntl.fcntl", control)
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync"))
    write_atomic(tmp_path / "kept", b"x")
    assert calls == ([51, "fsync"] if refused else [51]) * 2  # the file, and its folder
    assert (tmp_path / "kept").read_bytes() == b"x"
