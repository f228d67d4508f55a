"""Files of the start that are pipes, sockets, devices, folders or dangling links: a sentence, and no wait."""

from __future__ import annotations

import logging
import os
import socket
import time
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.launch.failures import Failures
from app.launch.instance import Instance
from app.store.faults import saving_trouble
from app.store.library import Library
from app.store.preferences import PreferencesFile
from core.cli.arguments import UsageError, read_config
from core.system.files import KeyFileError, load_json, open_regular, read_key

KINDS = ("pipe", "socket", "device", "folder", "link")
NAMED = {
    **dict.fromkeys(("pipe", "socket", "device"), "a pipe, a socket or a device."),
    "folder": "a folder.",
    "link": "a link to /nowhere/Draftlight, which does not exist.",
}
pytestmark = pytest.mark.timeout(120)  # one that waits for a writer fails


def make(path: Path, kind: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(path.parent)  # its address may have 100 characters
            server.bind(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/nowhere/Draftlight")
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_reading_one_fails_at_once(home: Path, kind: str) -> None:
    path = make(home / "file.json", kind)
    with pytest.raises(OSError):  # noqa: PT011  # each kind has its own
        open_regular(path)
    assert load_json(path, dict) is None
    with pytest.raises(KeyFileError, match=r"file\.json"):
        read_key(path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "link"])
def test_the_command_line_names_its_config(home: Path, kind: str) -> None:
    make(home / "config.toml", kind)
    with pytest.raises(
        UsageError, match=r"config\.toml cannot be read: (it is a pipe, a socket or a dev|Is a dir)"
    ):
        read_config()


@pytest.mark.parametrize("kind", KINDS)
def test_preferences_start_anew_and_say_so(home: Path, kind: str) -> None:
    make(home / "data" / "preferences.json", kind)
    preferences = PreferencesFile(home / "data")
    assert preferences.problem or kind == "link"  # a link that leads nowhere is written through
    preferences.close()


def failure_of(library: Library) -> str:
    """Why nothing can be saved, once the writer has tried."""
    until = time.monotonic() + 60
    while library.failure is None and time.monotonic() < until:
        time.sleep(0.01)
    return saving_trouble(library.failure)


@pytest.mark.parametrize("kind", KINDS)
def test_chats_name_the_database(home: Path, kind: str) -> None:
    make(home / "data" / "chats.db", kind)
    library = Library(home / "data")
    try:
        assert library.summaries() == []
        assert library.problem
        assert library.problem.remedy == "repair"
        assert library.problem.reason in failure_of(library)
        assert f"Instead of the file chats.db there is {NAMED[kind]}" in library.problem.reason
    finally:
        library.close()


def test_a_data_folder_whose_link_leads_nowhere_is_named(home: Path) -> None:
    make(home / "data", "link")
    library = Library(home / "data")
    try:
        said = failure_of(library)
        assert str(home / "data") in said
        assert "a link to /nowhere/Draftlight, which does not exist" in said
    finally:
        library.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_lock_is_taken(qapp: QApplication, home: Path, kind: str) -> None:
    make(home / "data" / "window.lock", kind)
    instance = Instance(home / "data")
    assert instance.claim()
    instance.release()


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_the_log_does_not_stop_the_start(
    home: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    make(home / "data" / "window.log", kind)
    log = logging.getLogger()
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr("sys.excepthook", None)
    monkeypatch.setattr("threading.excepthook", None)
    Failures(home / "data")
    logging.getLogger("draftlight.window").error("A failure")
    assert "A failure" in capfd.readouterr().err
