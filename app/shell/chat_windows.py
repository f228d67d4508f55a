"""The windows of chats that the sidebar does not list, made when they are first asked for."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtWidgets import QWidget

from app.controllers.window import WindowController
from app.theme.theme import Theme


def make_deleted(theme: Theme, controller: WindowController) -> QWidget:
    """Recently deleted."""
    from app.windows.chats.window import DeletedWindow

    window, listing, chats = DeletedWindow(theme), controller.chat.listing, controller.chats
    window.restore_requested.connect(listing.restore)
    window.erase_requested.connect(listing.erase)
    for told in (listing.listed, window.shown):
        told.connect(lambda: window.show_chats(chats.deleted(), chats.now()))
    return window


def make_archived(theme: Theme, controller: WindowController) -> QWidget:
    """Archived chats. One that is opened stays archived until something is asked in it."""
    from app.windows.chats.window import ArchivedWindow

    window, listing, chats = ArchivedWindow(theme), controller.chat.listing, controller.chats
    window.open_requested.connect(listing.open_chat)
    window.unarchive_requested.connect(lambda chat_id: listing.archive(chat_id, False))
    window.delete_requested.connect(listing.delete)
    for told in (listing.listed, window.shown):
        told.connect(lambda: window.show_chats(chats.archived(), datetime.now()))
    return window
