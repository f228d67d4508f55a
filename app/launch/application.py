"""The Qt application: name, icon, garbage collection, Qt's own controls, and files opened from the desktop.

Overrides `event()` instead of installing an event filter, which would see every event of every widget. macOS
sends requests to open files, possibly before there is a window, and to quit (⌘Q, the Dock, logout). Qt's
default for quitting ends the event loop at once while the worker is running. If `on_quit` is set, it is
called instead and Qt waits.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QTimer, QTimerEvent
from PySide6.QtGui import QFileOpenEvent, QIcon
from PySide6.QtWidgets import QApplication

from app.session import strings
from app.theme.fonts import enlarged_ui_font
from app.theme.icons import APP_ICON

_LOG = logging.getLogger("draftlight.window")


class Application(QApplication):
    """`opened` holds files until a window accepts them. `on_quit` is called instead of quitting, if set."""

    def __init__(self, arguments: Sequence[str]) -> None:
        # The app bundle has its own name and icons, which the Dock shows.
        from_source = sys.platform == "darwin" and not getattr(sys, "frozen", False)
        if from_source:
            _name_process()
        super().__init__(list(arguments))
        self.setApplicationName(strings.APP_NAME)
        self.setApplicationDisplayName(strings.APP_NAME)
        self.setDesktopFileName("draftlight")
        if from_source or sys.platform != "darwin":
            self.setWindowIcon(QIcon(str(APP_ICON)))
        # Before any widget is created: sizes must not depend on the desktop's font.
        self.setFont(enlarged_ui_font(13))
        self._collector = Collector(self)
        self.opened = OpenedFiles(self)
        self.on_quit: Callable[[], object] | None = None

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent):
            # A link is sent as the same event, without a file.
            if event.file():
                self.opened.add(Path(event.file()))
            return True
        if event.type() == QEvent.Type.Quit and self.on_quit is not None:
            event.ignore()
            self.on_quit()
            return True
        return bool(super().event(event))


def _name_process() -> None:
    """Show the app's name in the menu bar of macOS. A failure leaves "Python" there and is logged."""
    from app.launch.macos import set_bundle_name
    from core.system.macos import Objc

    try:
        set_bundle_name(strings.APP_NAME, Objc())
    except (OSError, AttributeError):
        _LOG.warning("The menu bar could not be given the name of the app.", exc_info=True)


_EVERY_MS = 200


class Collector(QObject):
    """Runs Python's garbage collection on the main thread only, while there is an application.

    Python collects on whichever thread allocates next. The store's threads allocate, and could collect a
    widget: Qt objects destroyed on another thread stay in their thread's timer list, and the next timer ends
    the process. So automatic collection is off from the start of the application, and a timer collects by
    Python's own thresholds.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self.startTimer(_EVERY_MS)

    def timerEvent(self, event: QTimerEvent) -> None:
        collect_if_due()


def collect_if_due() -> None:
    """Collect the oldest generation that is due, which includes all younger ones."""
    due = [held > most for held, most in zip(gc.get_count(), gc.get_threshold())]
    for generation in (2, 1, 0):
        if due[generation]:
            gc.collect(generation)
            return


Taker = Callable[[list[Path]], object]


class OpenedFiles(QObject):
    """Collects the files that the desktop asks the app to open, and passes them on together.

    macOS sends them one by one, possibly before there is a window. They go to the last receiver set by
    `hand_to()`.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: list[Path] = []
        self._taker: Taker | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._deliver)

    def add(self, path: Path) -> None:
        self._waiting.append(path)
        if self._taker:
            self._timer.start()

    def hand_to(self, taker: Taker | None) -> None:
        """Pass waiting and later files to `taker`, once the loop runs. None: keep them."""
        self._taker = taker
        if taker is None:
            self._timer.stop()
        elif self._waiting:
            self._timer.start()

    def _deliver(self) -> None:
        if self._taker and self._waiting:
            paths, self._waiting = self._waiting, []
            self._taker(paths)
