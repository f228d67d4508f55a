"""The side windows by name, and keeping all windows on a screen.

There is one side window of each kind, created when first opened and then kept. A closed one is hidden and
keeps its state. They have no parent window, so that each can be in front; all close with the chat window.

`Screens` moves windows back to a screen after one was unplugged or its resolution changed, also during sleep.
`seen()` is the rule, a pure function: the window fits the screen that most of it is on, and enough of its
title bar can be reached; otherwise it stays where the person put it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QPoint, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QApplication, QWidget


class SideWindows(QObject):
    """The open windows by name. `add()` registers how each is created."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._makers: dict[str, Callable[[], QWidget]] = {}
        self._open: dict[str, QWidget] = {}

    def add(self, name: str, make: Callable[[], QWidget]) -> None:
        """Register a window; `make` creates it without a parent."""
        self._makers[name] = make

    def show(self, name: str) -> QWidget:
        """Show the window `name` in front of the others."""
        window = self._open.get(name)
        if window is None:
            window = self._open[name] = self._makers[name]()
            # The app ends after the chat window has shut down, not with its last visible window.
            window.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()
        return window

    def find(self, name: str) -> QWidget | None:
        """Returns the window `name` if it was opened before."""
        return self._open.get(name)

    def close_active(self) -> bool:
        """Close the active window unless it is the chat window. Returns whether there was one."""
        active = QApplication.activeWindow()
        if active is None or active is self.parent():
            return False
        active.close()
        return True

    def close_all(self) -> None:
        """Close and delete all of them, with the chat window."""
        for window in self._open.values():
            window.close()
            window.deleteLater()
        self._open.clear()


# The part of the title bar that has to be on a screen.
_TITLE_PX = 30
_GRIP_PX = 120
# Some desktops move windows themselves first.
_SETTLE_MS = 300
_PLACED_BY_THE_DESKTOP = (
    Qt.WindowState.WindowMinimized | Qt.WindowState.WindowMaximized | Qt.WindowState.WindowFullScreen
)


def seen(box: QRect, screens: Sequence[QRect]) -> QRect:
    """Returns `box` or the nearest rectangle that is visible and reachable, if necessary on the
    first screen.
    """
    if not screens:
        return box
    best = max(screens, key=lambda screen: _area(screen.intersected(box)))
    size = box.size().boundedTo(best.size())
    title = QRect(box.topLeft(), QSize(size.width(), _TITLE_PX))
    for screen in screens:
        there = screen.intersected(title)
        if there.width() >= min(_GRIP_PX, size.width()) and there.height() >= _TITLE_PX // 2:
            return QRect(box.topLeft(), size)
    x = max(best.left(), min(box.x(), best.right() + 1 - size.width()))
    y = max(best.top(), min(box.y(), best.bottom() + 1 - size.height()))
    return QRect(QPoint(x, y), size)


def free_places() -> list[QRect]:
    """Returns the usable rectangle of each screen, the primary one's first."""
    primary = QGuiApplication.primaryScreen()
    screens = sorted(QGuiApplication.screens(), key=lambda screen: screen is not primary)
    return [screen.availableGeometry() for screen in screens]


class Screens(QObject):
    """Watches all windows of the application until `stop()`."""

    def __init__(self, application: QGuiApplication, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._soon = QTimer(self, interval=_SETTLE_MS, singleShot=True)
        self._soon.timeout.connect(self.look)
        application.screenRemoved.connect(self._changed)
        application.screenAdded.connect(self._watch)
        for screen in application.screens():
            self._watch(screen)

    def look(self) -> None:
        """Move every window that is off screen back to a screen."""
        places = free_places()
        for window in QApplication.topLevelWidgets():
            if window.isVisible() and _stands_by_itself(window):
                box = QRect(window.pos(), window.size())
                there = seen(box, places)
                if there != box:
                    window.resize(there.size())
                    window.move(there.topLeft())

    def stop(self) -> None:
        """Stop following the screens."""
        self._soon.stop()
        self._soon.timeout.disconnect(self.look)

    def _watch(self, screen: QScreen) -> None:
        screen.availableGeometryChanged.connect(self._changed)

    def _changed(self, _: object) -> None:
        self._soon.start()


def _stands_by_itself(window: QWidget) -> bool:
    """Whether it is a window, not a menu or tooltip, and not positioned by the desktop."""
    kind = window.windowType()
    return kind in (Qt.WindowType.Window, Qt.WindowType.Dialog) and not (
        window.windowState() & _PLACED_BY_THE_DESKTOP
    )


def _area(rectangle: QRect) -> int:
    return max(0, rectangle.width()) * max(0, rectangle.height())
