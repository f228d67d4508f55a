"""Garbage is collected on the window's thread only: a Qt object that ends elsewhere ends the process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.shell.collector import Collector


@pytest.fixture
def collector(qapp: QApplication) -> Iterator[Collector]:
    made = Collector(qapp)
    made.start()
    yield made
    made.stop()
    made.setParent(None)
    made.deleteLater()


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


def test_a_thread_that_makes_many_objects_collects_nothing(collector: Collector) -> None:
    ended_on: list[threading.Thread] = []
    Cyclic(ended_on)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended_on == []
    for _ in range(200):  # as the timer would: younger generations first, in the end the oldest
        collector.collect_if_due()
        held = [[number] for number in range(1000)]
        assert held
    assert ended_on == [threading.main_thread()]


def test_timers_of_garbage_end_with_it(collector: Collector, qapp: QApplication) -> None:
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


def test_python_collects_again_when_the_window_is_gone(qapp: QApplication) -> None:
    made = Collector(qapp)
    made.start()
    assert not gc.isenabled()
    made.stop()
    assert gc.isenabled()
    made.deleteLater()
