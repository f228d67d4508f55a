"""One Draftlight a data directory: as objects, and as processes that people start and that crash."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QLockFile, QTimer
from PySide6.QtNetwork import QLocalServer, QLocalSocket
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.launch.instance import Instance, is_own
from app.launch.opening import open_window
from core.errors import RequestError

WINDOW = """
import asyncio, sys
from pathlib import Path
from app.launch.opening import open_window
from tests.app.stage import FAKE, ready

async def scenario(window):
    await ready(window)
    print("ready", file=sys.stderr, flush=True)
    composer = window.views.composer
    while not composer.attachments:
        await asyncio.sleep(0.02)
    got = composer.attachments[-1]  # a draft that was saved before a crash has its own
    print("got", got.name, got.text.strip(), file=sys.stderr, flush=True)
    await window.closed()
    return 0

files = [Path(name) for name in sys.argv[2:]]
sys.exit(open_window("starter", scenario, command=FAKE, folder=Path(sys.argv[1]), files=files))
"""


def start(folder: Path, *files: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WINDOW, str(folder), *map(str, files)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def until_says(process: subprocess.Popen[str], word: str) -> str:
    assert process.stderr
    lines = []
    for line in process.stderr:
        if line.startswith(word):
            return line
        lines.append(line)
    raise AssertionError(f"the window never said {word}: {''.join(lines)}")


@pytest.mark.parametrize("has_window", [True, False])
def test_the_second_is_heard_by_the_first(qtbot: QtBot, tmp_path: Path, has_window: bool) -> None:
    first, heard = Instance(tmp_path), list[list[Path]]()
    assert first.claim()
    if has_window:
        first.hear(heard.append)
    script = (
        "import sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication;"
        "from app.launch.instance import Instance; app = QCoreApplication([]);"
        "other = Instance(Path(sys.argv[1])); assert not other.claim(); other.hand_over([Path('a.txt')])"
    )
    second = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    qtbot.waitUntil(lambda: second.poll() is not None, timeout=60_000)
    first.hear(heard.append)
    assert heard == [[Path.cwd() / "a.txt"]]
    assert second.returncode == 0
    first.release()
    again = Instance(tmp_path)
    assert again.claim()
    again.release()


@pytest.mark.sweep
def test_a_start_while_the_first_closes_is_the_next_first(qtbot: QtBot, tmp_path: Path) -> None:
    notes, first = tmp_path / "notes.txt", Instance(tmp_path / "data")
    notes.write_text("High water at noon.")
    assert first.claim()
    first.turn_away()
    second = start(tmp_path / "data", notes)
    try:
        qtbot.waitUntil(lambda: bool(first.findChildren(QLocalSocket)), timeout=60_000)
        qtbot.waitUntil(lambda: not first.findChildren(QLocalSocket), timeout=60_000)
        first.release()
        assert until_says(second, "got").startswith("got notes.txt")
    finally:
        second.terminate()
        second.communicate(timeout=60)


SECOND = """
import sys
from pathlib import Path
from app.launch import instance, opening
instance.PATIENCE_S, opening._SILENT_S = float(sys.argv[2]), 0.5
sys.exit(opening.open_window("starter", None, folder=Path(sys.argv[1])))
"""


@pytest.mark.sweep
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("patience_s", "state"), [(1.0, "draftlight: "), (600.0, "Draftlight is already")])
def test_a_second_start_that_gets_no_answer_ends_on_a_signal(
    qapp: QApplication, tmp_path: Path, number: signal.Signals, patience_s: float, state: str
) -> None:
    first = Instance(tmp_path)
    assert first.claim()  # and runs no event loop, like a window that hangs
    command = [sys.executable, "-c", SECOND, str(tmp_path), str(patience_s)]
    second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        said = until_says(second, state)
        second.send_signal(number)
        assert second.wait(60) == 128 + number
        assert "delete" not in said
    finally:
        second.kill()
        second.communicate()
        first.release()


def test_a_second_start_waits_for_one_that_does_not_listen_yet(qtbot: QtBot, tmp_path: Path) -> None:
    """On a busy machine some time passes between the first one's lock and its socket."""
    address = Instance(tmp_path).address
    lock = QLockFile(str(tmp_path / "window.lock"))
    assert lock.tryLock(0)
    script = (
        "import sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication;"
        "from app.launch.instance import Instance; app = QCoreApplication([]);"
        "other = Instance(Path(sys.argv[1])); assert not other.claim();"
        "asked = lambda: print('asked', file=sys.stderr, flush=True);"
        "print('got', other.hand_over([Path('a.txt')], asked), file=sys.stderr)"
    )
    second = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    for _ in range(3):
        until_says(second, "asked")
    server = QLocalServer()
    server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
    assert server.listen(address)
    connections: list[QLocalSocket] = []
    server.newConnection.connect(lambda: connections.append(server.nextPendingConnection()))
    qtbot.waitUntil(lambda: bool(connections) and connections[-1].canReadLine(), timeout=60_000)
    connections[-1].write(b"heard /somewhere\n")
    connections[-1].flush()
    assert until_says(second, "got") == "got /somewhere\n"
    assert second.wait(60) == 0
    second.communicate()
    server.close()
    lock.unlock()


def test_what_is_no_request_changes_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    first, heard = Instance(tmp_path), list[list[Path]]()
    assert first.claim()
    first.hear(heard.append)
    stranger = QLocalSocket()
    stranger.connectToServer(first.address)
    assert stranger.waitForConnected(1_000)
    stranger.write(b"GET / HTTP/1.0\r\n")
    stranger.flush()
    qtbot.waitUntil(lambda: stranger.state() == QLocalSocket.LocalSocketState.UnconnectedState)
    assert heard == []
    first.release()


def test_two_data_directories_do_not_meet(qapp: QApplication, tmp_path: Path) -> None:
    one, two = Instance(tmp_path / "one"), Instance(tmp_path / "two")
    assert one.claim()
    assert two.claim()
    assert one.address != two.address
    one.release()
    two.release()


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_second_start_and_a_start_after_a_crash(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("High water at noon.")
    folder = tmp_path / "data"
    first = start(folder)
    try:
        until_says(first, "ready")
        second = start(folder, notes)
        _, said = second.communicate(timeout=30)
        assert second.returncode == 0, said
        assert not said.startswith("ready")
        assert f"already running (from {Path(__file__).parents[3]})" in said
        assert until_says(first, "got") == "got notes.txt High water at noon.\n"
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=30)
    # Its lock and its socket are left, and stop nobody; files come along at the start, too.
    assert (folder / "window.lock").exists()
    third = start(folder, notes)
    try:
        until_says(third, "ready")
        assert until_says(third, "got").startswith("got notes.txt")
        third.send_signal(signal.SIGTERM)
        third.communicate(timeout=30)
        assert third.returncode == 0
    finally:
        if third.poll() is None:
            third.kill()
            third.communicate(timeout=30)
    assert not (folder / "window.lock").exists()


def test_a_lock_of_a_process_that_is_gone_is_no_lock(qapp: QApplication, tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait(10)
    time.sleep(0.01)
    (tmp_path / "window.lock").write_text(f"{child.pid}\npython\n{os.uname().nodename}\n")
    instance = Instance(tmp_path)
    assert instance.claim()
    instance.release()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody can write to")
def test_where_no_folder_can_be_made_every_instance_is_the_first(qapp: QApplication) -> None:
    instance = Instance(Path("/proc/nowhere/data"))
    assert instance.claim()
    instance.release()


def test_the_socket_is_in_a_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = os.umask(0)
    try:
        address = Path(Instance(tmp_path / "data").address)
    finally:
        os.umask(before)
    assert address.parent.parent == tmp_path
    assert stat.S_IMODE(address.parent.stat().st_mode) == 0o700
    address.parent.chmod(0o777)
    assert stat.S_IMODE(Path(Instance(tmp_path / "data").address).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("squatted", ["folder", "link", "file"])
def test_another_users_folder_receives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: QApplication, squatted: str
) -> None:
    """The predictable name exists before the first start, and belongs to somebody else."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    place, owner = tmp_path / f"draftlight-{os.geteuid()}", os.geteuid()
    if squatted == "folder":
        place.mkdir(0o700)
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        place.rename(place.with_name(f"draftlight-{owner + 1}"))
    elif squatted == "link":
        (tmp_path / "elsewhere").mkdir(0o700)
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.touch(0o600)
    first = Instance(tmp_path / "data")
    assert first.claim()  # works without a socket
    with pytest.raises(RequestError, match="belongs to another user"):
        Instance(tmp_path / "data").hand_over([tmp_path / "letter.txt"])
    boxes = list[str]()
    QTimer.singleShot(0, lambda: (boxes.append(qapp.activeModalWidget().text()), qapp.closeAllWindows()))
    assert open_window("starter", None, folder=tmp_path / "data") == 1  # stderr is no terminal here
    assert "belongs to another user" in boxes[0]
    assert not any(path.is_socket() for path in tmp_path.rglob("*"))
    first.release()


def test_a_connection_of_another_user_is_refused(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, heard = Instance(tmp_path), list[list[Path]]()
    assert first.claim()
    first.hear(heard.append)
    address, owner = first.address, os.geteuid()
    stranger = QLocalSocket()
    stranger.connectToServer(address)
    assert stranger.waitForConnected(1_000)
    monkeypatch.setattr("app.launch.instance.trusted_users", lambda: {owner + 1})
    assert not is_own(stranger)
    stranger.write(b'{"files": []}\n')
    stranger.flush()
    qtbot.waitUntil(lambda: stranger.state() == QLocalSocket.LocalSocketState.UnconnectedState)
    assert heard == []
    first.release()
    with socket.socket(socket.AF_UNIX) as server:  # in place of the first instance's
        server.bind(address)
        server.listen()
        with pytest.raises(RequestError, match="does not answer"):
            Instance(tmp_path).hand_over([tmp_path / "letter.txt"])
        with server.accept()[0] as connection:
            assert connection.recv(100) == b""
