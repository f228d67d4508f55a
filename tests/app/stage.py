"""Playing scenes in the real window: a Qt application, qasync's loop, a worker process.

After each scene nothing may be left: no task, no process, no window, no unraised error.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QInputDialog, QLineEdit, QWidget
from qasync import QEventLoop
from shiboken6 import isValid

from app.chat.answer import AnswerView
from app.launch.scenario import ask
from app.session.chats.conversation import Answer
from app.session.turn.link_state import Phase
from app.shell.window import START_SIZE, MainWindow
from app.store.library import Home
from core.events import Cancel, Command
from core.settings import assign
from tests.thinned import asked as asked_marks

FAKE = [sys.executable, "-m", "tests.app.fake_worker"]
# No event handler may use more CPU time of the UI thread. The goal is 50 ms, which building the settings
# panel misses on a slow machine. Measured by `make test-quiet` only: work beside the tests lengthens it.
BLOCK_MS = 150.0
Scene = Callable[[MainWindow], Awaitable[None]]


class Stage:
    """Opens the window, again and again if a test wants to: what is open is closed before.

    Chats are kept in `folder`; without one they are forgotten. A scene may block the UI thread for `block_ms`
    of CPU time at most, which is measured if tests that need an idle machine were asked for.
    """

    def __init__(self) -> None:
        self._window: MainWindow | None = None
        self._watchdog: Watchdog | None = None

    async def open(
        self,
        *,
        command: Sequence[str] = FAKE,
        silence_s: float = 15.0,
        model: str = "starter",
        folder: Path | None = None,
        block_ms: float = BLOCK_MS,
    ) -> MainWindow:
        """A window whose worker is just being started."""
        await self.close()
        window = self._window = MainWindow(model, command, silence_s=silence_s, home=Home(folder))
        if window.controller.home.preferences.now.window is None:
            window.resize(START_SIZE)  # the screen of tests is smaller than any that people have
            window.columns.set_wants(sidebar=True, inspector=True)  # closed at the first start
        window.show()
        window.start()
        self._watchdog = Watchdog(block_ms) if {"quiet"} in asked_marks else None
        return window

    async def ready(self, **given: Any) -> MainWindow:
        """A window that questions can be asked in."""
        window = await self.open(**given)
        await ready(window)
        return window

    async def close(self) -> None:
        """Close the window, and look for what is left."""
        window, self._window = self._window, None
        if window is None:
            return
        if self._watchdog:
            self._watchdog.stop()
        pid = window.worker.pid
        await window.shut_down()
        window.deleteLater()
        assert not (self._watchdog and self._watchdog.verdict), self._watchdog and self._watchdog.verdict
        assert pid is None or gone(pid)
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, 5.0, "a task is left")


def perform(
    application: QApplication, scenes: Callable[[Stage], Awaitable[None]], errors: Sequence[str] = ()
) -> None:
    """Play `scenes` in a loop of their own. `errors` are the messages of what the loop has to report."""
    found: list[str] = []
    loop = QEventLoop(application)
    loop.set_exception_handler(
        lambda _, context: found.append(str(context.get("exception") or context["message"]))
    )
    asyncio.set_event_loop(loop)

    async def whole() -> None:
        stage = Stage()
        try:
            await scenes(stage)
        finally:
            await stage.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    try:
        with loop:
            loop.run_until_complete(whole())
    finally:
        asyncio.set_event_loop(None)
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert found == list(errors)
    assert application.topLevelWidgets() == []


def play(application: QApplication, scene: Scene, *, errors: Sequence[str] = (), **given: Any) -> None:
    """Play `scene` in a window that was opened as `given` says (`Stage.open`)."""

    async def scenes(stage: Stage) -> None:
        await scene(await stage.open(**given))

    perform(application, scenes, errors)


_watching: list[Watchdog] = []


class Watchdog:
    """Measures how long the UI thread blocks: its CPU time in ms between two ticks of a timer.

    CPU time, not wall time, because other processes must not count; nor do collections of Python's garbage,
    which scan everything that pytest has loaded. On Linux another thread keeps a stack from the middle of the
    longest block. The limit is scaled by the machine's speed.
    """

    _TICK_MS = 5

    def __init__(self, limit_ms: float) -> None:
        self.longest_ms = 0.0
        self.stack = ""
        self._stack = ""  # of the present block
        self._limit_ms = limit_ms * _slowness()
        self._main = threading.get_ident()
        self._last_s = self._collection_s = time.thread_time()
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        gc.callbacks.append(self._collecting)
        _watching.append(self)
        self._timer.start(self._TICK_MS)
        if hasattr(time, "pthread_getcpuclockid"):
            self._watcher.start()

    @property
    def verdict(self) -> str:
        """Where the UI thread was blocked beyond the limit; empty if it was not."""
        if self.longest_ms <= self._limit_ms:
            return ""
        return f"The UI thread was blocked for {self.longest_ms:.0f} ms:\n{self.stack}"

    def skip(self, seconds: float) -> None:
        """Do not count this CPU time."""
        self._last_s += seconds

    def stop(self) -> None:
        """End the measurement."""
        _watching.remove(self)
        self._tick()
        self._timer.stop()
        gc.callbacks.remove(self._collecting)
        self._ended.set()

    def _tick(self) -> None:
        now_s = time.thread_time()
        blocked_ms = (now_s - self._last_s) * 1000
        self._last_s = now_s
        stack, self._stack = self._stack, ""
        if blocked_ms > self.longest_ms:
            self.longest_ms, self.stack = blocked_ms, stack

    def _collecting(self, phase: str, _: object) -> None:
        if threading.get_ident() != self._main:
            return
        if phase == "start":
            self._collection_s = time.thread_time()
        else:
            self.skip(time.thread_time() - self._collection_s)

    def _watch(self) -> None:
        clock = time.pthread_getcpuclockid(self._main)
        with tempfile.TemporaryFile("w+") as file:
            while not self._ended.wait(0.005):
                blocked_ms = (time.clock_gettime(clock) - self._last_s) * 1000
                if blocked_ms > self._limit_ms / 2 and not self._stack:
                    # Not `sys._current_frames`: Python 3.11 crashes if frames of a running thread are read.
                    file.seek(0)
                    file.truncate()
                    faulthandler.dump_traceback(file)
                    file.seek(0)
                    threads = file.read().split("\n\n")
                    own = next((each for each in threads if f"{self._main:016x}" in each), "")
                    ours = [line for line in own.splitlines() if "/app/" in line]
                    self._stack = "\n".join(ours[:4] or own.splitlines()[:4])


@cache
def _slowness() -> float:
    """CPU time of a loop relative to the machine that the limit was set on; at least 1."""

    def loop_s() -> float:
        began_s, total = time.thread_time(), 0
        for number in range(100_000):
            total += number % 7
        return time.thread_time() - began_s

    return max(1.0, min(loop_s() for _ in range(5)) / 0.0024)


@contextmanager
def not_counted() -> Iterator[None]:
    """The watchdog does not count the CPU time of what is inside: the test's own work on what it sees."""
    began_s = time.thread_time()
    yield
    for watchdog in _watching:
        watchdog.skip(time.thread_time() - began_s)


def sent(window: MainWindow, *kinds: type) -> list[Any]:
    """The commands of these kinds that the window sends from now on; `Cancel` if it cancels an `ask()`."""
    commands: list[Any] = []
    send, ask = window.worker.send, window.worker.ask

    def note(command: Command) -> None:
        if isinstance(command, kinds):
            commands.append(command)

    def listen(command: Command, after: Any = None) -> None:
        note(command)
        send(command, after)

    async def listen_and_ask(command: Command, kind: type, progress: Any = lambda event: None) -> Any:
        note(command)
        try:
            return await ask(command, kind, progress)
        except asyncio.CancelledError:
            note(Cancel(""))
            raise

    window.worker.send, window.worker.ask = listen, listen_and_ask  # type: ignore[method-assign]
    return commands


async def until(condition: Callable[[], bool], timeout_s: float = 60.0, what: str = "") -> None:
    """Wait for `condition`, letting the window live."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, what or "nothing happened"
        await asyncio.sleep(0.01)


async def ready(window: MainWindow, timeout_s: float = 120.0) -> None:
    """Wait until a question can be asked."""
    try:
        await until(lambda: window.controller.link.phase is Phase.READY, timeout_s)
    except AssertionError:
        why = f"never ready: {window.controller.link}, {window.views.banner.trouble}"
        raise AssertionError(why) from None


async def asked(window: MainWindow, question: str) -> Answer:
    """The answer to `question`, when it is over; if it was refused, the last one."""
    await ready(window)
    ask(window, question)
    await ready(window)
    return _last(window)


async def answering(window: MainWindow, question: str = "write 100000 slowly", tokens: int = 4) -> None:
    """Ask, and wait for so many tokens of the answer."""
    await ready(window)
    ask(window, question)
    await until(lambda: len(last(window).tokens) > tokens or last(window).over, what="no answer begins")


async def stop(window: MainWindow) -> Answer:
    """Stop the answer that is being written. Returns what there is of it."""
    window.controller.asking.readiness.stop_running()
    await ready(window)
    return _last(window)


def _last(window: MainWindow) -> Answer:
    return last(window) if window.controller.chats.open.turns else Answer()


async def kill(window: MainWindow, number: signal.Signals = signal.SIGKILL) -> int:
    """Kill the worker and wait until the window knows. Returns the pid that it had."""
    pid = window.worker.pid
    assert pid
    os.kill(pid, number)
    await until(lambda: window.controller.link.phase is Phase.DEAD, what="its death is not noticed")
    return pid


def last(window: MainWindow) -> Answer:
    """The last answer of the open chat."""
    return window.controller.chats.open.turns[-1].answer


def answer_view(window: MainWindow, turn: int = -1) -> AnswerView:
    """An answer of the open chat in the transcript, the last one if none is named."""
    view = window.views.transcript.answer(window.controller.chats.open.turns[turn].id)
    assert view is not None
    return view


def set_value(window: MainWindow, key: str, value: object) -> None:
    """Choose a setting of the open chat in the inspector."""
    window.views.inspector.change_settings(assign(window.views.inspector.settings, key, value))


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
    """A key as the window system delivers it, so that shortcuts see it. Arrow keys as on macOS."""
    window.activateWindow()
    if key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right):
        modifiers |= Qt.KeyboardModifier.KeypadModifier

    # A widget inside has no window of its own; without one Qt takes the active one, and aborts if none is.
    top = window.window()

    def click() -> None:
        QTest.keyPress(top.windowHandle(), key, modifiers)
        # The key may have closed the window: keyClick would send its release to a deleted one.
        if isValid(top) and top.isVisible():
            QTest.keyRelease(top.windowHandle(), key, modifiers)

    await outside_of_tasks(click)


async def click(widget: QWidget) -> None:
    await outside_of_tasks(lambda: QTest.mouseClick(widget, Qt.MouseButton.LeftButton))


def drop(widget: QWidget, *what: Path | QMimeData) -> None:
    """Drag files, or data that no file has, over `widget` and let go."""
    data = next((each for each in what if isinstance(each, QMimeData)), QMimeData())
    if paths := [each for each in what if isinstance(each, Path)]:
        data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    place, action = QPointF(widget.rect().center()), Qt.DropAction.CopyAction
    held = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place.toPoint(), action, data, *held)
    QApplication.sendEvent(widget, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(widget, QDropEvent(place, action, data, *held))


async def sheet(window: QWidget, kind: type[QDialog] = QFileDialog) -> QDialog:
    """The sheet that is open on `window`, once it is."""

    def found() -> list[QDialog]:
        return [each for each in window.findChildren(kind) if each.isVisible()]

    await until(lambda: bool(found()), what="no sheet opened")
    (dialog,) = found()
    # No other window waits for it, and no nested event loop runs.
    assert dialog.windowModality() == Qt.WindowModality.WindowModal
    assert dialog.parent() is window
    return dialog


async def choose_in_sheet(window: QWidget, *paths: Path) -> None:
    """Choose files, a folder or the file to write in the open sheet. None: cancel."""
    dialog = await sheet(window)
    if paths:
        (name,) = (each for each in dialog.findChildren(QLineEdit) if each.objectName() == "fileNameEdit")
        name.setText(" ".join(f'"{path}"' for path in paths) if len(paths) > 1 else str(paths[0]))
    await outside_of_tasks(dialog.accept if paths else dialog.reject)


async def type_name(window: QWidget, name: str) -> None:
    """Type a name in the open sheet and confirm it."""
    dialog = await sheet(window, QInputDialog)
    assert isinstance(dialog, QInputDialog)
    dialog.setTextValue(name)
    await outside_of_tasks(dialog.accept)


async def outside_of_tasks(action: Callable[[], Any]) -> Any:
    """Returns the result of `action`, which runs as Qt delivers an event.

    QTest processes events, and no task may run inside another task's step.
    """
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def act() -> None:
        try:
            done.set_result(action())
        except BaseException as error:
            done.set_exception(error)

    loop.call_soon(act)
    return await done
