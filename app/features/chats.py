"""ArchivedWindow and DeletedWindow: the chats that the sidebar does not list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct
from PySide6.QtCore import QSize

from app.controllers.chat_list import ChatListController
from app.controls.buttons import Button, Kind
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
    """`when` is the time of the last message, or the days until the deletion."""

    id: str
    title: str
    when: str
    subtitle: str = ""

    @property
    def tip(self) -> str:
        """The title, for a tooltip."""
        return self.title

    @property
    def spoken(self) -> str:
        """The text for assistive technology."""
        return f"{self.title}, {self.when}"


class ChatsWindow(SideWindow):
    """`nothing` is shown in the empty list; `when` is the title of the second column.

    Subclasses define `rows()`, which is called after each change of `listing`.
    """

    def __init__(self, title: str, note: str, nothing: str, when: str, listing: ChatListController) -> None:
        super().__init__(title, _SIZE)
        self._buttons: list[Button] = []
        columns = (
            Column("title", CHAT, 220, grows=True, below="subtitle"),
            Column("when", when, 110, right=True, ink="text2"),
        )
        self.list = RecordTable[ChatRow](title, columns)
        self.list.set_empty(nothing)
        self._row = row_of(STRETCH, gap=8, margins=(16, 10, 16, 12))
        foot = column_of(Hairline(), self._row)
        column_of(self.make_header(subtitle=note), (self.list, 1), foot, parent=self)
        self.list.row_selected.connect(self._enable)
        for signal in (listing.listed, self.shown):
            signal.connect(self._show)

    def add_button(
        self, words: str, act: Callable[[str], object], kind: Kind = "plain", *, usual: bool = False
    ) -> Button:
        """Adds a button that calls `act` with the selected chat's id; Return also does the `usual` one."""
        button = Button(words, kind)
        button.clicked.connect(lambda: act(self.list.selected))
        if usual:
            self.list.opened.connect(act)
        self._row.addWidget(button)
        self._buttons.append(button)
        self._enable()
        return button

    def rows(self) -> Sequence[ChatRow]:
        raise NotImplementedError

    def _show(self) -> None:
        """Shows the chats; the selection stays if possible."""
        self.list.show_rows(self.rows())
        self._enable()

    def _enable(self) -> None:
        for button in self._buttons:
            button.setEnabled(bool(self.list.selected))


class DeletedWindow(ChatsWindow):
    """The chats that were deleted in the last 30 days."""

    def __init__(self, listing: ChatListController, chats: Chats) -> None:
        super().__init__(DELETED, DELETED_NOTE, NONE_DELETED, TIME_LEFT, listing)
        self._chats = chats
        self.erase_button = self.add_button(ERASE, listing.erase, "danger")
        self.restore_button = self.add_button(RESTORE, listing.restore, usual=True)

    def rows(self) -> Sequence[ChatRow]:
        deleted, now = self._chats.deleted(), self._chats.steady_now()
        return [ChatRow(chat.id, chat.title, days_left(_days_left(chat, now))) for chat in deleted]


def _days_left(chat: Summary, now: datetime) -> int:
    assert chat.deleted
    gone_s = now.timestamp() - chat.deleted.timestamp()
    return max(1, math.ceil(KEPT_DELETED.days - gone_s / 86_400))
