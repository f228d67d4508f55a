"""The side windows, one of each kind, created when first opened and then kept.

A closed window is hidden and keeps its state. They have no parent window, so that each can be in front; all
of them close with the chat window.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget

from app.shell.controller import WindowController
from app.theme.theme import Theme


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


def make_deleted(theme: Theme, controller: WindowController) -> QWidget:
    """Creates the window of recently deleted chats."""
    from app.features.chats import DeletedWindow

    window, listing, chats = DeletedWindow(theme), controller.chat.listing, controller.chats
    window.restore_requested.connect(listing.restore)
    window.erase_requested.connect(listing.erase)
    for signal in (listing.listed, window.shown):
        signal.connect(lambda: window.show_chats(chats.deleted(), chats.now()))
    return window


def make_archived(theme: Theme, controller: WindowController) -> QWidget:
    """Creates the window of archived chats. An opened chat stays archived until a question is sent."""
    from app.features.chats import ArchivedWindow

    window, listing, chats = ArchivedWindow(theme), controller.chat.listing, controller.chats
    window.open_requested.connect(listing.open_chat)
    window.unarchive_requested.connect(lambda chat_id: listing.archive(chat_id, False))
    window.delete_requested.connect(listing.delete)
    for signal in (listing.listed, window.shown):
        signal.connect(lambda: window.show_chats(chats.archived(), datetime.now()))
    return window
