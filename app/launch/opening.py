"""Opens the window: application, theme, event loop, and an orderly shutdown of all of them.

A scenario is a coroutine that gets the open window: a normal run waits until it is closed, the smoke test
sends one question.

The worker's process is started first, so that it imports its modules while the window imports its own.
"""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox
from qasync import QEventLoop

from app.launch.application import Application
from app.launch.instance import Instance
from app.session import strings
from core.errors import RequestError, WorkerError
from core.system.children import absolute_reference
from core.worker.client import WINDOW_NICENESS, WorkerClient

if TYPE_CHECKING:  # most of the imports: done after the worker has started
    from app.shell.window import MainWindow
    from app.theme.theme import Scheme


ALREADY_RUNNING = (
    "Draftlight is already running (from {program}); its window comes to the front.\n"
    "Quit it first to start another copy, or set DRAFTLIGHT_HOME to use another data folder."
)
WAITING = "Draftlight is already running but busy; waiting for its answer. Ctrl+C ends this."
_SILENT_S = 3.0
# The window has been painted by then.
_FIRST_PAINTED_MS = 500
# Its child has exited, so this is short. A child that cannot be ended must not keep the process.
_WATCHER_S = 2.0
_AGAIN_MS = 200

Scenario = Callable[["MainWindow"], Awaitable[int]]


def open_window(
    model: str,
    scenario: Scenario,
    *,
    scheme: Scheme = "system",
    command: Sequence[str] | None = None,
    folder: Path | None = None,
    files: Sequence[Path] = (),
) -> int:
    """Open the window, run `scenario` in it, close it; the scenario's result is the exit status.

    Chats and preferences are kept in `folder`; without one they last for this run only. If a window
    with that folder is open already, that one comes to the front and gets `files`, and this returns
    at once; if that one is closing, this waits. Closing waits for the worker, so no process and no thread
    is left when this returns.
    """
    with _signals(signal.SIGTERM) as early:
        application = _application()
        instance = Instance(folder) if folder else None
        if instance and not instance.claim() and (status := _hand_over(instance, files, early)) is not None:
            return status
        for file in files:
            application.opened.add(file.resolve())
        loop = QEventLoop(application)
        asyncio.set_event_loop(loop)
        try:
            with loop:
                # Relative to this process's folder; the worker runs in another one.
                model = absolute_reference(model)
                live = _live(application, loop, scheme, model, scenario, command, folder, instance, early)
                return int(loop.run_until_complete(live))
        finally:
            asyncio.set_event_loop(None)
            _join_watchers()
            if instance:
                instance.release()


@contextmanager
def _signals(*numbers: int) -> Iterator[list[int]]:
    """Collects these signals, so that one during the start closes the window as soon as there is one.

    The event loop's handlers replace this one while it runs. Only the main thread may set handlers.
    """
    came: list[int] = []
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = [signal.signal(number, lambda number, frame: came.append(number)) for number in numbers]
    try:
        yield came
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


def _join_watchers() -> None:
    """Wait for asyncio's child-watcher threads, which finally report to the loop.

    They report through Qt. A thread that Python ends inside Qt aborts the process (SIGABRT).
    """
    for thread in threading.enumerate():
        # Early releases of Python 3.11 call it waitpid-7, others asyncio-waitpid-7.
        if "waitpid-" in thread.name:
            thread.join(_WATCHER_S)


async def until_closed(window: MainWindow) -> int:
    """The scenario of a normal run."""
    await window.closed()
    return 0


async def _live(
    application: Application,
    loop: QEventLoop,
    scheme: Scheme,
    model: str,
    scenario: Scenario,
    command: Sequence[str] | None,
    folder: Path | None,
    instance: Instance | None,
    early: Sequence[int],
) -> int:
    started = await _started(command)
    try:
        from app.launch.host import Host
        from app.theme.theme import theme

        theme.set_scheme(scheme)
        window = _window(model, command, folder, started)
    except BaseException:
        # No other owner of the worker and its tasks exists yet.
        if started:
            started.kill()
            await started.stop()
        raise
    host: Host | None = None
    signals = (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ()
    try:
        # Everything allocated until now lives to the end. Freezing it spares the collector the scan, which
        # would also run during scrolling.
        gc.freeze()
        host = Host(application, window, instance=instance)
        for number in signals:
            loop.add_signal_handler(number, window.close_now)
        window.show()
        window.start()
        if early:
            QTimer.singleShot(0, window, window.close_now)
        QTimer.singleShot(_FIRST_PAINTED_MS, window.views.inspector, window.views.inspector.fill_rest)
        return await scenario(window)
    finally:
        await window.shut_down()
        if host is not None:
            host.stop()
        for number in signals:
            loop.remove_signal_handler(number)
        window.deleteLater()


async def _started(command: Sequence[str] | None) -> WorkerClient | None:
    """Start a worker while the window is created; returns None if the window is to report the failure."""
    client = WorkerClient(command, niceness=WINDOW_NICENESS)
    try:
        await client.start()
    except WorkerError:
        return None
    return client


def _window(
    model: str, command: Sequence[str] | None, folder: Path | None, started: WorkerClient | None
) -> MainWindow:
    from app.shell.window import MainWindow
    from app.store.library import Home

    return MainWindow(model, command, started=started, home=Home(folder))


def _hand_over(instance: Instance, files: Sequence[Path], early: Sequence[int]) -> int | None:
    """Returns the exit status, or None once the other instance has ended and this one is the first.

    `early`: signals that came before. SIGINT and SIGTERM end the wait and the message.
    """
    with _signals(signal.SIGINT, signal.SIGTERM) as ended:
        ended.extend(early)
        say_at = time.monotonic() + _SILENT_S

        def give_up() -> bool:
            nonlocal say_at
            if time.monotonic() > say_at:
                say_at = math.inf
                print(WAITING, file=sys.stderr, flush=True)
            return bool(ended)

        while not ended:
            try:
                program = instance.hand_over(files, give_up)
            except RequestError as error:
                if ended:
                    break
                if instance.claim(_AGAIN_MS):
                    return None
                print(f"draftlight: {error.message} {error.hint}", file=sys.stderr, flush=True)
                if sys.stderr is None or not sys.stderr.isatty():  # started from the desktop
                    _show_error(error, ended)
                return _status(ended) or 1
            if program is not None:
                print(ALREADY_RUNNING.format(program=program), file=sys.stderr)
                return 0
            if instance.claim(_AGAIN_MS):
                return None
        return _status(ended)


def _status(signals: Sequence[int]) -> int:
    """The exit status of a process that ends by the first of `signals`, as shells have it; 0 without any."""
    return 128 + signals[0] if signals else 0


def _show_error(error: RequestError, ended: Sequence[int]) -> None:
    """Show `error` until it is closed or a signal has come."""
    box = QMessageBox(QMessageBox.Icon.NoIcon, strings.APP_NAME, error.message)
    box.setInformativeText(error.hint)
    # Python's signal handlers run between its instructions, so the timer also lets them run.
    timer = QTimer(box, interval=_AGAIN_MS)
    timer.timeout.connect(lambda: box.reject() if ended else None)
    timer.start()
    box.exec()
    timer.stop()
    box.deleteLater()


def _application() -> Application:
    existing = QApplication.instance()
    if isinstance(existing, Application):
        return existing
    application = Application([strings.APP_NAME])
    # The loop ends when the worker has ended, not when the window is hidden.
    application.setQuitOnLastWindowClosed(False)
    return application
