"""Every test of the window fails if it leaves a widget, a running timer or a pending task behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QTimer
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.chat.transcript import Transcript
from app.launch.application import Application
from app.richtext.markdown.piece import LOG as UNSHOWN
from app.theme.theme import Theme
from app.theme.theme import theme as app_theme

# `make test-looks` repeats the journeys, light at 100% and 1440x900, in another scheme, percent and size.
LOOK = os.environ.get("DRAFTLIGHT_TEST_LOOK", "").split()


def _deliver() -> None:
    """What is posted, deferred deletions included."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    QCoreApplication.processEvents()


def _top_level_widgets() -> set[QWidget]:
    return {widget for widget in QApplication.topLevelWidgets() if isValid(widget)}


def _running_timers() -> list[QTimer]:
    return [o for o in gc.get_objects() if isinstance(o, QTimer) and isValid(o) and o.isActive()]


@pytest.fixture(scope="session")
def qapp_cls() -> type[QApplication]:
    """Tests run in the application that people run."""
    return Application


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> QApplication:
    """The application with the style sheet of the light theme."""
    app_theme.set_scheme("light")
    QLocale.setDefault(QLocale("en_US"))  # numbers in fields, whatever the machine's region
    return qapp


@pytest.fixture(scope="module", autouse=True)
def _what_was_there_is_not_searched() -> None:
    """What was imported or cached before a module's tests is no leak; frozen, it costs no collection time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compares before and after; what was there before (a module's own fixture) may stay."""
    threads = set(threading.enumerate())
    widgets = _top_level_widgets() if QApplication.instance() else set()
    yield
    # Python must not collect on other threads while there is an application (app/launch/application.py).
    assert not (QApplication.instance() and gc.isenabled()), "the test enabled Python's collector"
    for thread in set(threading.enumerate()) - threads:
        # asyncio's own watcher of a child that has ended: it needs a moment to end itself. Early
        # releases of Python 3.11 call it waitpid-7, others asyncio-waitpid-7.
        if "waitpid-" in thread.name:
            thread.join(5.0)
    assert set(threading.enumerate()) <= threads, "a thread is still running"
    if QApplication.instance() is None:
        return
    if "qapp" not in request.fixturenames:
        assert _top_level_widgets() <= widgets, "a test that makes widgets takes the fixture qapp"
        return
    # What is deleted late, or only collected, may hold what is deleted later.
    for _ in range(3):
        _deliver()
        gc.collect()
        left = list(_top_level_widgets() - widgets)
        timers = _running_timers()
        if not left and not timers:
            break
    assert not left, f"widgets left behind: {[(type(w).__name__, w.objectName()) for w in left]}"
    assert not timers, f"timers still running: {[(t.objectName(), t.parent()) for t in timers]}"
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    assert not asyncio.all_tasks(loop), "a task is still pending"


@pytest.fixture(autouse=True)
def _theme_is_reset() -> Iterator[None]:
    yield
    app_theme.set_motion("system")
    if app_theme.scheme != "light":
        app_theme.set_scheme("light")
    app_theme.set_zoom(1.0)


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
def stage(qapp: QApplication) -> None:
    """Asked for by async tests that open windows themselves, with the `Stage` of their loop."""


@pytest.fixture
def window(qapp: QApplication) -> None:
    """Asked for by async tests, which get a window that is ready, over the fake worker."""


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Plays an async test as the scenes of a stage, which is its argument `stage` or opens `window`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from tests.app.stage import Stage, perform  # most tests need no window

    named = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def scenes(stage: Stage) -> None:
        if "stage" in named:
            named["stage"] = stage
        if LOOK:
            app_theme.set_scheme(LOOK[0])
            app_theme.set_zoom(int(LOOK[1]) / 100)
        if "window" in named:
            named["window"] = await stage.ready()
            if LOOK:
                named["window"].resize(*map(int, LOOK[2].split("x")))
                _deliver()
        await pyfuncitem.obj(**named)

    perform(pyfuncitem.funcargs["qapp"], scenes)
    return True


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    """The application's theme, light at 100%."""
    return app_theme


@pytest.fixture
def transcript(qtbot: QtBot) -> Transcript:
    """An empty transcript on the screen, and no pointer over it."""
    QCursor.setPos(5000, 5000)
    widget = Transcript()
    qtbot.addWidget(widget)
    widget.resize(800, 600)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget
