"""Playing scenes in the real window: a Qt application, qasync's loop, a worker process.

After each scene nothing may be left: no task, no process, no window, no unraised error.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from qasync import QEventLoop

from app.session.chats.conversation import Answer
from app.session.turn.link_state import Phase
from app.shell.window import START_SIZE, MainWindow
from app.store.home import Home
from app.theme.theme import Theme

FAKE = [sys.executable, "-m", "tests.app.fake_worker"]
Scene = Callable[[MainWindow], Awaitable[None]]


def play(
    application: QApplication,
    scene: Scene,
    *,
    command: Sequence[str] = FAKE,
    silence_s: float = 15.0,
    model: str = "starter",
    folder: Path | None = None,
    errors: Sequence[str] = (),
) -> None:
    """Open the window, play `scene`, close it, and look for what is left.

    Chats are kept in `folder`; without one they are forgotten. `errors` are the messages of the exceptions
    that the loop has to report.
    """
    found: list[str] = []
    loop = QEventLoop(application)
    loop.set_exception_handler(
        lambda _, context: found.append(str(context.get("exception") or context["message"]))
    )
    asyncio.set_event_loop(loop)

    async def whole() -> None:
        window = MainWindow(Theme("light"), model, command, silence_s=silence_s, home=Home(folder))
        if window.controller.home.preferences.now.window is None:
            window.resize(START_SIZE)  # the screen of tests is smaller than any that people have
            window.columns.set_wants(sidebar=True, inspector=True)  # closed at the first start
        window.show()
        window.start()
        try:
            await scene(window)
        finally:
            pid = window.worker.pid
            await window.shut_down()
            window.deleteLater()
        assert pid is None or gone(pid)
        await asyncio.sleep(0.02)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    try:
        with loop:
            loop.run_until_complete(whole())
    finally:
        asyncio.set_event_loop(None)
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert found == list(errors)
    assert application.topLevelWidgets() == []


async def until(condition: Callable[[], bool], timeout_s: float = 10.0, what: str = "") -> None:
    """Wait for `condition`, letting the window live."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, what or "nothing happened"
        await asyncio.sleep(0.01)


async def ready(window: MainWindow, timeout_s: float = 10.0) -> None:
    """Wait until a question can be asked."""
    await until(lambda: window.controller.link.phase is Phase.READY, timeout_s, "never ready")


def last(window: MainWindow) -> Answer:
    """The last answer of the open chat."""
    return window.controller.chats.open.turns[-1].answer


def shown(window: MainWindow) -> str:
    """The last answer as the transcript shows it."""
    return window.views.transcript.answer_text(window.controller.chats.open.turns[-1].id)


def gone(pid: int) -> bool:
    """Whether there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def press(
    window: QWidget, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    """A key as the window system delivers it, so that shortcuts see it."""
    window.activateWindow()
    await _outside_of_tasks(lambda: QTest.keyClick(window.windowHandle(), key, modifiers))


async def click(widget: QWidget) -> None:
    """The left button."""
    await _outside_of_tasks(lambda: QTest.mouseClick(widget, Qt.MouseButton.LeftButton))


async def _outside_of_tasks(action: Callable[[], object]) -> None:
    # QTest processes events, and no task may run inside another task's step.
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def act() -> None:
        action()
        done.set_result(None)

    loop.call_soon(act)
    await done
