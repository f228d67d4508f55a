"""Files from the desktop: none is lost before there is a window, and several come together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QFileOpenEvent
from pytestqt.qtbot import QtBot

from app.launch.application import Application
from app.launch.opened_files import OpenedFiles


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
