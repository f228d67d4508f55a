"""ArchivedWindow and DeletedWindow: the chats that the sidebar does not list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from PySide6.QtCore import QSize, Signal, SignalInstance
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons import Button, Kind
from app.controls.record_table import Column, RecordTable, paint_names
from app.features.side_window import Hairline, SideWindow
from app.panels.chat_row import time_label
from app.session.chats.archive import Summary
from app.session.chats.chats import KEPT_DELETED
from app.theme.measures import set_margins, set_spacing
from app.theme.theme import Theme

DELETED = "Recently Deleted"
DELETED_NOTE = "Deleted chats are kept here for 30 days."
NONE_DELETED = "No chat was deleted in the last 30 days."
RESTORE = "Restore"
ERASE = "Delete Now"

ARCHIVED = "Archived Chats"
ARCHIVED_NOTE = "Archived chats are not in the sidebar. Search finds them."
NONE_ARCHIVED = "No chat is archived."
OPEN = "Open"
UNARCHIVE = "Unarchive"
DELETE = "Delete"

CHAT = "Chat"
LAST_USED = "Last used"
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
    """`note` is shown with chats, `nothing` without any; `when` is the title of the second column."""

    def __init__(self, theme: Theme, title: str, note: str, nothing: str, when: str) -> None:
        super().__init__(theme, title, _SIZE)
        self._texts = note, nothing
        self._buttons: list[Button] = []
        columns = (
            Column("title", CHAT, 220, grows=True, paint=paint_names),
            Column("when", when, 110, right=True, ink="text2"),
        )
        self.list = RecordTable[ChatRow](theme, title, columns)
        foot = QWidget()
        column = QVBoxLayout(foot)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(Hairline(theme))
        self._row = QHBoxLayout()
        set_margins(self._row, 16, 10, 16, 12)
        set_spacing(self._row, 8)
        self._row.addStretch(1)
        column.addLayout(self._row)
        self.make_column((self.make_header(subtitle=nothing), 0), (self.list, 1), (foot, 0))
        self.list.row_selected.connect(lambda _: self._enable())

    def add_button(
        self, words: str, wish: SignalInstance, kind: Kind = "plain", *, usual: bool = False
    ) -> Button:
        """Adds a button that emits `wish` with the selected chat; Return also emits the `usual` one."""
        button = Button(self._theme, words, kind)
        button.clicked.connect(lambda: wish.emit(self.list.selected))
        if usual:
            self.list.opened.connect(wish)
        self._row.addWidget(button)
        self._buttons.append(button)
        self._enable()
        return button

    def show_rows(self, rows: Sequence[ChatRow]) -> None:
        """Shows the chats; the selection stays if possible."""
        self.list.show_rows(rows)
        self.titles.say(self._texts[0 if rows else 1])
        self._enable()

    def _enable(self) -> None:
        for button in self._buttons:
            button.setEnabled(bool(self.list.selected))


class ArchivedWindow(ChatsWindow):
    """`show_chats` after each change."""

    open_requested = Signal(str)  # chat id
    unarchive_requested = Signal(str)  # chat id
    delete_requested = Signal(str)  # chat id

    def __init__(self, theme: Theme) -> None:
        texts = (ARCHIVED_NOTE, NONE_ARCHIVED, LAST_USED)
        super().__init__(theme, ARCHIVED, *texts)
        self.delete_button = self.add_button(DELETE, self.delete_requested, "danger")
        self.unarchive_button = self.add_button(UNARCHIVE, self.unarchive_requested)
        self.open_button = self.add_button(OPEN, self.open_requested, usual=True)

    def show_chats(self, chats: Sequence[Summary], now: datetime) -> None:
        """Shows the archived chats."""
        self.show_rows([ChatRow(chat.id, chat.title, time_label(chat.when, now)) for chat in chats])


class DeletedWindow(ChatsWindow):
    """`show_chats` after each change."""

    restore_requested = Signal(str)  # chat id
    erase_requested = Signal(str)  # chat id

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, DELETED, DELETED_NOTE, NONE_DELETED, TIME_LEFT)
        self.erase_button = self.add_button(ERASE, self.erase_requested, "danger")
        self.restore_button = self.add_button(RESTORE, self.restore_requested, usual=True)

    def show_chats(self, chats: Sequence[Summary], now: datetime) -> None:
        """Shows the deleted chats."""
        self.show_rows([ChatRow(chat.id, chat.title, days_left(_days_left(chat, now))) for chat in chats])


def _days_left(chat: Summary, now: datetime) -> int:
    assert chat.deleted
    gone_s = now.timestamp() - chat.deleted.timestamp()
    return max(1, math.ceil(KEPT_DELETED.days - gone_s / 86_400))
