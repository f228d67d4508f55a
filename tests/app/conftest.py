"""Every test of the window fails if it leaves a widget, a running timer or a pending task behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.chat.transcript.transcript import Transcript
from app.launch.application import Application
from app.richtext.markdown.unshown import LOG as UNSHOWN
from app.theme.theme import Theme


def _settle() -> None:
    """Deliver what is posted, deferred deletions included, and collect what nobody holds."""
    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        QCoreApplication.processEvents()
        gc.collect()


def _top_level_widgets() -> set[QWidget]:
    return {widget for widget in QApplication.topLevelWidgets() if isValid(widget)}


def _running_timers() -> list[QTimer]:
    return [o for o in gc.get_objects() if isinstance(o, QTimer) and isValid(o) and o.isActive()]


@pytest.fixture(scope="session")
def qapp_cls() -> type[QApplication]:
    """Tests run in the application that people run."""
    return Application


@pytest.fixture(scope="session", autouse=True)
def _imports_are_not_searched() -> None:
    """What was imported before the first test is no leak; frozen, it costs the collector nothing."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compares before and after; what was there before (a module's own fixture) may stay."""
    threads = set(threading.enumerate())
    widgets = _top_level_widgets() if QApplication.instance() else set()
    yield
    for thread in set(threading.enumerate()) - threads:
        # asyncio's own watcher of a child that has ended: it needs a moment to end itself. Early
        # releases of Python 3.11 call it waitpid-7, others asyncio-waitpid-7.
        if "waitpid-" in thread.name:
            thread.join(5.0)
    assert set(threading.enumerate()) <= threads, "a thread is still running"
    if QApplication.instance() is None:
        return
    _settle()
    left = list(_top_level_widgets() - widgets)
    assert not left, f"widgets left behind: {[(type(w).__name__, w.objectName()) for w in left]}"
    timers = _running_timers()
    assert not timers, f"timers still running: {[(t.objectName(), t.parent()) for t in timers]}"
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    assert not asyncio.all_tasks(loop), "a task is still pending"


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


@pytest.fixture(autouse=True)
def unshown() -> Iterator[list[str]]:
    """What could not be shown. A test that expects some takes it from the list; what is left fails."""
    kept = _Kept()
    UNSHOWN.addHandler(kept)
    yield kept.said
    UNSHOWN.removeHandler(kept)
    assert not kept.said


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    """A light theme of its own for each test, whatever the machine's is: switching it disturbs no other."""
    return Theme("light")


@pytest.fixture
def transcript(qtbot: QtBot, theme: Theme) -> Transcript:
    """An empty transcript on the screen, and no pointer over it."""
    QCursor.setPos(5000, 5000)
    widget = Transcript(theme)
    qtbot.addWidget(widget)
    widget.resize(800, 600)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget
