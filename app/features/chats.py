"""DeletedWindow: the chats that were deleted in the last 30 days."""

from __future__ import annotations

import math
from datetime import datetime

from msgspec import Struct
from PySide6.QtCore import QSize

from app.controllers.chat_list import ChatListController
from app.controls.buttons import Button, on_click
from app.controls.record_table import Column, RecordTable
from app.features.side_window import Hairline, SideWindow
from app.session.chats.archive import Summary
from app.session.chats.chats import KEPT_DELETED, Chats
from app.theme.measures import STRETCH, column_of, row_of

DELETED = "Recently Deleted"
DELETED_NOTE = "Deleted chats are kept here for 30 days."
NONE_DELETED = "No Deleted Chats"
RESTORE = "Restore"
ERASE = "Delete Now"
CHAT = "Chat"
TIME_LEFT = "Time left"


def days_left(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"


_SIZE = QSize(520, 440)


class ChatRow(Struct, frozen=True):
    """`when`: the days until the deletion, in words."""

    id: str
    title: str
    when: str

    @property
    def tip(self) -> str:
        return self.title

    @property
    def spoken(self) -> str:
        return f"{self.title}, {self.when}"


class DeletedWindow(SideWindow):
    """The list is shown again after each change of `listing`."""

    def __init__(self, listing: ChatListController, chats: Chats) -> None:
        super().__init__(DELETED, _SIZE)
        self._chats = chats
        columns = (
            Column("title", CHAT, 220, grows=True),
            Column("when", TIME_LEFT, 110, right=True, ink="text2"),
        )
        self.list = RecordTable[ChatRow](DELETED, columns)
        self.list.set_empty(NONE_DELETED)
        self.erase_button, self.restore_button = Button(ERASE, "danger"), Button(RESTORE)
        buttons = row_of(STRETCH, self.erase_button, self.restore_button, gap=8, margins=(16, 10, 16, 12))
        foot = column_of(Hairline(), buttons)
        column_of(self.make_header(subtitle=DELETED_NOTE), (self.list, 1), foot, parent=self)
        on_click(
            (self.erase_button, lambda: listing.erase(self.list.selected)),
            (self.restore_button, lambda: listing.restore(self.list.selected)),
        )
        self.list.opened.connect(listing.restore)
        self.list.row_selected.connect(self._enable)
        for signal in (listing.listed, self.shown):
            signal.connect(self._show)
        self._enable()

    def _show(self) -> None:
        """Shows the chats; the selection stays if possible."""
        deleted, now = self._chats.deleted(), self._chats.steady_now()
        self.list.show_rows(
            [ChatRow(each.id, each.title, days_left(_days_left(each, now))) for each in deleted]
        )
        self._enable()

    def _enable(self) -> None:
        for button in (self.erase_button, self.restore_button):
            button.setEnabled(bool(self.list.selected))


def _days_left(chat: Summary, now: datetime) -> int:
    assert chat.deleted
    gone_s = now.timestamp() - chat.deleted.timestamp()
    return max(1, math.ceil(KEPT_DELETED.days - gone_s / 86_400))
