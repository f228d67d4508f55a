"""DeletedWindow: the chats that were deleted and can still be brought back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.session.chats.archive import Summary
from app.session.chats.chats import KEPT_DELETED
from app.theme.theme import Theme
from app.windows.chats import strings
from app.windows.chats.chats_window import ChatsWindow


class DeletedWindow(ChatsWindow):
    """`show_chats` after each change."""

    restore_requested = Signal(str)  # chat id
    erase_requested = Signal(str)  # chat id

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.DELETED, strings.DELETED_NOTE, strings.NONE_DELETED, parent)
        self.erase_button = self.add_button(strings.ERASE, self.erase_requested, "danger")
        self.restore_button = self.add_button(strings.RESTORE, self.restore_requested, usual=True)

    def show_chats(self, chats: Sequence[Summary], now: datetime) -> None:
        """These can be brought back."""
        self.show_rows([(chat.id, strings.deleted_row(chat.title, _days_left(chat, now))) for chat in chats])


def _days_left(chat: Summary, now: datetime) -> int:
    assert chat.deleted
    gone_s = now.timestamp() - chat.deleted.timestamp()
    return max(1, math.ceil(KEPT_DELETED.days - gone_s / 86_400))
