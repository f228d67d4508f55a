"""Wheels: one that is damaged, or of another lock, is fetched again and never used."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from bundle.project import Project
from bundle.supplies.lock import LockError
from bundle.supplies.wheels import LINUX, download

NAME = "one-1.0-py3-none-any.whl"
PROJECT = Project("1.2.3", "A chat app", ("one",), {})


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    """A wheel that needs nothing."""
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("one-1.0.dist-info/METADATA", "Metadata-Version: 2.4\nName: one\nVersion: 1.0\n")
        wheel.writestr("one.py", "WORD = 1\n" * 100)
    return path.read_bytes()


@pytest.fixture
def lock(tmp_path: Path, whole: bytes) -> Path:
    path = tmp_path / "lock"
    path.write_text(f"one==1.0 \\\n    --hash=sha256:{hashlib.sha256(whole).hexdigest()}\n")
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, whole: bytes) -> list[bytes]:
    """What pip brings, one a call; whole wheels when these are used up."""
    brought: list[bytes] = []

    def pip(command: list[str], *, check: bool) -> None:
        folder = Path(command[command.index("--dest") + 1])
        assert "download" in command
        assert check
        (folder / NAME).write_bytes(brought.pop() if brought else whole)

    monkeypatch.setattr(subprocess, "run", pip)
    return brought


def test_a_whole_one_is_fetched_once(
    tmp_path: Path, lock: Path, whole: bytes, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "wheels"
    assert download(PROJECT, LINUX, folder, lock) == [folder / NAME]

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("fetched again")

    monkeypatch.setattr(subprocess, "run", fail)
    (folder / "left-0.1-py3-none-any.whl").write_bytes(b"of an older lock")
    assert download(PROJECT, LINUX, folder, lock) == [folder / NAME]
    assert [path.name for path in folder.iterdir()] == [NAME]


@pytest.mark.parametrize("damage", ["cut off", "changed", "empty"])
def test_a_damaged_one_is_fetched_again(
    tmp_path: Path, lock: Path, whole: bytes, asked: list[bytes], damage: str
) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    damaged = {"cut off": whole[:-9], "changed": whole.replace(b"= 1", b"= 2"), "empty": b""}[damage]
    assert damaged != whole
    (folder / NAME).write_bytes(damaged)
    assert download(PROJECT, LINUX, folder, lock) == [folder / NAME]
    assert (folder / NAME).read_bytes() == whole


def test_one_that_stays_damaged_is_refused(
    tmp_path: Path, lock: Path, whole: bytes, asked: list[bytes]
) -> None:
    asked.append(whole[:-9])
    with pytest.raises(LockError, match=r"no wheel of one 1\.0 with a locked hash"):
        download(PROJECT, LINUX, tmp_path / "wheels", lock)
    assert not list((tmp_path / "wheels").iterdir())
