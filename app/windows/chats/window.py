"""ArchivedWindow and DeletedWindow: the chats that the sidebar does not list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.controls.buttons.button import Button, Kind
from app.controls.text_label import TextLabel
from app.panels.chats.chat_row import time_label
from app.session.chats.archive import Summary
from app.session.chats.chats import KEPT_DELETED
from app.theme.measures import set_font, set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import px
from app.windows.chats import strings
from app.windows.side_window import SideWindow

_SIZE = QSize(460, 420)
_PAD_PX = 16
_ROW_PX = 30


class ChatsWindow(SideWindow):
    """`note` is shown above the chats, `nothing` without any."""

    def __init__(
        self, theme: Theme, title: str, note: str, nothing: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(theme, title, _SIZE, parent=parent)
        self._texts = note, nothing
        self._buttons: list[Button] = []
        self.note = TextLabel(theme, nothing, 12, 16, "text2")
        self.list = QListWidget(self)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        set_font(self.list, 13)
        self.list.setAccessibleName(title)
        self._row = QHBoxLayout()
        self._row.addStretch(1)
        column = QVBoxLayout(self)
        set_margins(column, _PAD_PX, _PAD_PX, _PAD_PX, _PAD_PX)
        set_spacing(column, 10)
        column.addWidget(self.note)
        column.addWidget(self.list, 1)
        column.addLayout(self._row)
        self.list.itemSelectionChanged.connect(self._show_buttons)

    @property
    def chosen(self) -> str:
        """The selected chat's id; empty if none is selected."""
        items = self.list.selectedItems()
        return str(items[0].data(Qt.ItemDataRole.UserRole)) if items else ""

    def add_button(self, words: str, wish: object, kind: Kind = "plain", *, usual: bool = False) -> Button:
        """Adds a button that emits `wish` with the selected chat; Return also emits the `usual` one."""
        button = Button(self._theme, words, kind)
        button.clicked.connect(lambda: self._ask(wish))
        if usual:
            self.list.itemActivated.connect(lambda item: self._ask(wish))
        self._row.addWidget(button)
        self._buttons.append(button)
        button.setEnabled(False)
        return button

    def show_rows(self, rows: Sequence[tuple[str, str]]) -> None:
        """Shows pairs of chat id and text; the selection stays if possible."""
        chosen = self.chosen
        self.list.clear()
        for chat_id, words in rows:
            item = QListWidgetItem(words, self.list)
            item.setSizeHint(QSize(0, px(_ROW_PX)))
            item.setData(Qt.ItemDataRole.UserRole, chat_id)
            item.setSelected(chat_id == chosen)
        if rows and not self.chosen:
            self.list.setCurrentRow(0)
        note, nothing = self._texts
        self.note.setText(note if rows else nothing)
        self._show_buttons()

    def _ask(self, wish: object) -> None:
        if self.chosen:
            wish.emit(self.chosen)  # type: ignore[attr-defined]

    def _show_buttons(self) -> None:
        for button in self._buttons:
            button.setEnabled(bool(self.chosen))


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
        """Shows the archived chats."""
        self.show_rows(
            [(chat.id, strings.archived_row(chat.title, time_label(chat.when, now))) for chat in chats]
        )


class DeletedWindow(ChatsWindow):
    """`show_chats` after each change."""

    restore_requested = Signal(str)  # chat id
    erase_requested = Signal(str)  # chat id

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.DELETED, strings.DELETED_NOTE, strings.NONE_DELETED, parent)
        self.erase_button = self.add_button(strings.ERASE, self.erase_requested, "danger")
        self.restore_button = self.add_button(strings.RESTORE, self.restore_requested, usual=True)

    def show_chats(self, chats: Sequence[Summary], now: datetime) -> None:
        """Shows the deleted chats."""
        self.show_rows([(chat.id, strings.deleted_row(chat.title, _days_left(chat, now))) for chat in chats])


def _days_left(chat: Summary, now: datetime) -> int:
    assert chat.deleted
    gone_s = now.timestamp() - chat.deleted.timestamp()
    return max(1, math.ceil(KEPT_DELETED.days - gone_s / 86_400))
