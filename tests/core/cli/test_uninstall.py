"""`draftlight uninstall`: removes Draftlight's own files in its own folders and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from core.cli import main

DATA = (
    *("models/one/weights.safetensors", "tables/0123456789abcdef-n04-0001.safetensors", "chats.db"),
    *("chats.db-wal", "chats-damaged-20260101-000000.db", "backups/chats-20260101.db", "requests.db"),
    *("preferences.json", "preferences.json.77", "server.key", "lab/2026-01-01 10-00-00/results.json"),
)
CACHE = (
    *("profiles/cost-1.json", "families/2", "transformers.json", "digests.json", "lib/3/libgfortran.so.5"),
    "vectors/0123456789abcdef-0123.safetensors",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in use: files in data, cache and config."""
    home = tmp_path / "home"
    for folder, names in (("data", DATA), ("cache", CACHE), (".", ("config.toml",))):
        for name in names:
            path = home / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("content")
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(home))
    return home


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_everything_is_listed_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall", "--yes"]) == 0
    printed = capsys.readouterr().out
    for name in ("data/models", "data/chats.db", "cache/profiles", "config.toml"):
        assert str(home / name) in printed
    assert not home.exists()
    assert main(["uninstall", "--yes"]) == 0
    assert "keeps no files" in capsys.readouterr().out


def test_files_of_others_in_the_same_folders_stay(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`DRAFTLIGHT_HOME` may be a folder that the user keeps documents in, with a folder `data`, too."""
    own = ("thesis.docx", "data/survey.csv", "data/modelsheet.xlsx", "cache/notes.md", "data/config.toml")
    for name in own:
        (home / name).write_text("mine")
    assert main(["uninstall", "--yes"]) == 0
    assert files(home) == set(own)
    assert "other files" in capsys.readouterr().out


def test_links_are_removed_and_not_followed(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "weights.safetensors").write_text("large")
    (home / "data" / "models" / "linked").symlink_to(outside, target_is_directory=True)
    (home / "data" / "chats-old").symlink_to(outside / "weights.safetensors")
    assert main(["uninstall", "--yes"]) == 0
    assert files(outside) == {"weights.safetensors"}
    assert not home.exists()


def test_nothing_is_removed_without_a_confirmation(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(home)
    command = [sys.executable, "-m", "core.cli", "uninstall"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 1
    assert "--yes" in done.stderr
    assert files(home) == before


@pytest.mark.parametrize(("answer", "status"), [("n", 1), ("", 1), ("y", 0)])
def test_the_answer_at_the_terminal_decides(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert main(["uninstall"]) == status
    assert home.exists() is bool(status)


def test_a_running_draftlight_is_left_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(home)
    with FileLock(home / "data" / "chats.lock"):
        assert main(["uninstall", "--yes"]) == 1
    assert "is running" in capsys.readouterr().err
    assert before <= files(home)


def test_what_cannot_be_removed_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    assert main(["uninstall", "--yes"]) == 1
    said = capsys.readouterr()
    assert f"{home / 'data' / 'models'} could not be removed" in said.err
    assert "Removed." not in said.out
    assert not (home / "data" / "chats.db").exists()
