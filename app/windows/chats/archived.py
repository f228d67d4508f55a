"""ArchivedWindow: the chats that are archived: to be opened, listed again or deleted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.panels.chats.chat_row import time_label
from app.session.chats.archive import Summary
from app.theme.theme import Theme
from app.windows.chats import strings
from app.windows.chats.chats_window import ChatsWindow


class ArchivedWindow(ChatsWindow):
    """`show_chats` after each change."""

    open_requested = Signal(str)  # chat id
    unarchive_requested = Signal(str)  # chat id
    delete_requested = Signal(str)  # chat id

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.ARCHIVED, strings.ARCHIVED_NOTE, strings.NONE_ARCHIVED, parent)
        self.delete_button = self.add_button(strings.DELETE, self.delete_requested, "danger")
        self.unarchive_button = self.add_button(strings.UNARCHIVE, self.unarchive_requested)
        self.open_button = self.add_button(strings.OPEN, self.open_requested, usual=True)

    def show_chats(self, chats: Sequence[Summary], now: datetime) -> None:
        """These are archived."""
        self.show_rows(
            [(chat.id, strings.archived_row(chat.title, time_label(chat.when, now))) for chat in chats]
        )
