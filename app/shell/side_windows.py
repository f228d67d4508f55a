"""SideWindows: the windows beside the chat window, one of each kind: made when first asked for, then kept.

A closed one is hidden and comes back as it was. They belong to no other window, so that each can
lie in front; all of them go with the chat window.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget

from app.controllers.window import WindowController
from app.shell.menus.actions import Actions
from app.theme.theme import Theme


class SideWindows(QObject):
    """`add()` binds the action of the same name, which opens the window."""

    def __init__(self, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions = actions
        self._makers: dict[str, Callable[[], QWidget]] = {}
        self._open: dict[str, QWidget] = {}

    def add(self, name: str, make: Callable[[], QWidget]) -> None:
        """`name` is the declared action's; `make` gives the window, without a parent."""
        self.add_unlisted(name, make)
        self._actions.bind({name: lambda: self.show(name)})

    def add_unlisted(self, name: str, make: Callable[[], QWidget]) -> None:
        """A window that no action opens."""
        self._makers[name] = make

    def show(self, name: str) -> QWidget:
        """The window `name` in front of the others."""
        window = self._open.get(name)
        if window is None:
            window = self._open[name] = self._makers[name]()
            # The app ends when the chat window has closed, which takes its time.
            window.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()
        return window

    def find(self, name: str) -> QWidget | None:
        """The window `name` if it was asked for before."""
        return self._open.get(name)

    def close_active(self) -> bool:
        """Close the window in front, if it is not the chat window. Whether there was one."""
        active = QApplication.activeWindow()
        if active is None or active is self.parent():
            return False
        active.close()
        return True

    def close_all(self) -> None:
        """The chat window closes."""
        for window in self._open.values():
            window.close()
            window.deleteLater()
        self._open.clear()


def make_deleted(theme: Theme, controller: WindowController) -> QWidget:
    """Recently deleted."""
    from app.features.chats import DeletedWindow

    window, listing, chats = DeletedWindow(theme), controller.chat.listing, controller.chats
    window.restore_requested.connect(listing.restore)
    window.erase_requested.connect(listing.erase)
    for told in (listing.listed, window.shown):
        told.connect(lambda: window.show_chats(chats.deleted(), chats.now()))
    return window


def make_archived(theme: Theme, controller: WindowController) -> QWidget:
    """Archived chats. One that is opened stays archived until something is asked in it."""
    from app.features.chats import ArchivedWindow

    window, listing, chats = ArchivedWindow(theme), controller.chat.listing, controller.chats
    window.open_requested.connect(listing.open_requested)
    window.unarchive_requested.connect(lambda chat_id: listing.archive(chat_id, False))
    window.delete_requested.connect(listing.delete)
    for told in (listing.listed, window.shown):
        told.connect(lambda: window.show_chats(chats.archived(), datetime.now()))
    return window
