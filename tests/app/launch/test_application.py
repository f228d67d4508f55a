"""The application's name and icon, on Linux and from source on a Mac."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QTimer, QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.launch.application import Application, OpenedFiles
from app.launch.display import use_utf8_locale
from app.store.library import Library
from tests.app.stage import Stage
from tests.app.store.chats import chat_of


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_it_has_a_name_and_an_icon(platform: str) -> None:
    """On a Mac without its runtime, as here, the name in the menu bar stays, and nothing fails."""
    code = (
        "import sys\nfrom app.launch.application import Application\n"
        f"sys.platform = {platform!r}\n"
        "made = Application(['draftlight'])\n"
        "assert not made.windowIcon().pixmap(128, 128).isNull()\n"
        "print(made.applicationName(), made.applicationDisplayName(), made.desktopFileName())"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Draftlight Draftlight draftlight\n"


def test_the_bundle_keeps_its_own_icon() -> None:
    code = (
        "import sys\nfrom app.launch.application import Application\n"
        "sys.platform, sys.frozen = 'darwin', True\n"
        "assert Application(['draftlight']).windowIcon().isNull()"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    use_utf8_locale(environment)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


class Cyclic:
    """Says which thread it ended on."""

    ended_on: list[threading.Thread]

    def __init__(self, ended_on: list[threading.Thread]) -> None:
        self.ended_on = ended_on
        self.me = self

    def __del__(self) -> None:
        self.ended_on.append(threading.current_thread())


def work() -> None:
    """As the store's threads do: makes enough objects for a collection."""
    held = [[number] for number in range(200_000)]
    assert held


def test_a_thread_that_makes_many_objects_collects_nothing(qapp: QApplication) -> None:
    ended_on: list[threading.Thread] = []
    Cyclic(ended_on)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended_on == []
    held = []
    for _ in range(100):  # the timer: younger generations first, in the end the oldest
        held.append([[number] for number in range(20_000)])
        QTest.qWait(210)
        if ended_on:
            break
    assert ended_on == [threading.main_thread()]


@pytest.mark.sweep
def test_timers_of_garbage_end_with_it(qapp: QApplication) -> None:
    """Before, this ended the process now and then: the timer fired for an object that was gone."""
    for _ in range(50):
        owner = QObject()
        timer = QTimer(owner, interval=1)
        timer.start()
        owner.me = timer, owner
        del owner, timer
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        qapp.processEvents()
    gc.collect()


@pytest.mark.sweep
async def test_the_store_collects_nothing_before_and_after_a_window(stage: Stage, tmp_path: Path) -> None:
    """The store is opened before its window is made, and closed after it: its threads run then, too."""
    ended_on: list[threading.Thread] = []

    def store(folder: Path) -> None:
        library = Library(folder)
        library.save(chat_of(1))
        Cyclic(ended_on)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        library.close()

    store(tmp_path / "before")
    await stage.open(folder=tmp_path / "chats")
    await stage.close()
    store(tmp_path / "after")
    gc.collect()
    assert set(ended_on) == {threading.main_thread()}


@pytest.fixture
def files(qapp: Application) -> Iterator[OpenedFiles]:
    yield qapp.opened
    qapp.opened.hand_to(None)


def opened(path: str) -> None:
    """As macOS has it delivered."""
    QCoreApplication.sendEvent(QCoreApplication.instance(), QFileOpenEvent(path))


def test_what_comes_early_waits_and_what_comes_together_is_handed_over_together(
    files: OpenedFiles, qtbot: QtBot
) -> None:
    opened("/a/early.md")
    taken: list[list[Path]] = []
    files.hand_to(taken.append)
    assert taken == []
    qtbot.waitUntil(lambda: taken == [[Path("/a/early.md")]])
    opened("/a/one.txt")
    opened("/a/two.txt")
    qtbot.waitUntil(lambda: len(taken) == 2)
    assert taken[1] == [Path("/a/one.txt"), Path("/a/two.txt")]


def test_a_link_is_no_file(files: OpenedFiles, qtbot: QtBot) -> None:
    taken: list[list[Path]] = []
    files.hand_to(taken.append)
    QCoreApplication.sendEvent(QCoreApplication.instance(), QFileOpenEvent(QUrl("https://example.invalid/")))
    opened("/a/one.txt")
    qtbot.waitUntil(lambda: bool(taken))
    assert taken == [[Path("/a/one.txt")]]


def test_after_the_end_nothing_is_handed_over(files: OpenedFiles, qtbot: QtBot) -> None:
    taken: list[list[Path]] = []
    files.hand_to(taken.append)
    opened("/a/one.txt")
    files.hand_to(None)
    qtbot.wait(20)
    assert taken == []
