"""Keeps windows on a screen after one was unplugged or its resolution changed, also during sleep.

`seen()` is the rule, a pure function: the window fits the screen that most of it is on, and enough of its
title bar can be reached; otherwise it stays where the person put it.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QPoint, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QApplication, QWidget

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
        """Move every window that cannot be seen back to a screen."""
        places = free_places()
        for window in QApplication.topLevelWidgets():
            if window.isVisible() and _stands_by_itself(window):
                box = QRect(window.pos(), window.size())
                there = seen(box, places)
                if there != box:
                    window.resize(there.size())
                    window.move(there.topLeft())

    def stop(self) -> None:
        """Stop watching."""
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
