"""Garbage is collected on the window's thread only: a Qt object that ends elsewhere ends the process."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.shell.window import MainWindow
from app.store.library import Library
from tests.app.stage import play
from tests.app.store.chats import chat_of


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


def test_timers_of_garbage_end_with_it(qapp: QApplication) -> None:
    """Before, this ended the process now and then: the timer fired for an object that was gone."""
    for _ in range(50):
        owner = QObject()
        timer = QTimer(owner, interval=1)
        timer.start()
        owner.me = timer, owner  # type: ignore[attr-defined]
        del owner, timer
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        qapp.processEvents()
    gc.collect()


@pytest.mark.sweep
def test_the_store_collects_nothing_before_and_after_a_window(qapp: QApplication, tmp_path: Path) -> None:
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

    async def scene(window: MainWindow) -> None:
        pass

    store(tmp_path / "before")
    play(qapp, scene, folder=tmp_path / "chats")
    store(tmp_path / "after")
    gc.collect()
    assert set(ended_on) == {threading.main_thread()}
