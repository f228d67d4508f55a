"""DeletedWindow: the chats that were deleted and can still be brought back. Shows what it is given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.text_label import TextLabel
from app.session.chats.archive import Summary
from app.session.chats.chats import KEPT_DELETED
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.windows.deleted import strings

_SIZE = QSize(460, 420)
_PAD_PX = 16
_ROW_PX = 30


class DeletedWindow(QWidget):
    """`show_chats` after each change."""

    shown = Signal()  # it came to the screen: what is shown may be old
    restore_requested = Signal(str)  # chat id
    erase_requested = Signal(str)  # chat id

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setWindowTitle(strings.TITLE)
        self.setAccessibleName(strings.TITLE)
        self.resize(_SIZE)
        self.note = TextLabel(theme, strings.NOTHING, 12, 16, "text2")
        self.list = QListWidget(self)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setFont(ui_font(13))
        self.list.setAccessibleName(strings.TITLE)
        self.restore_button = Button(theme, strings.RESTORE)
        self.erase_button = Button(theme, strings.ERASE, "danger")
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.erase_button)
        row.addWidget(self.restore_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(_PAD_PX, _PAD_PX, _PAD_PX, _PAD_PX)
        column.setSpacing(10)
        column.addWidget(self.note)
        column.addWidget(self.list, 1)
        column.addLayout(row)
        self.list.itemSelectionChanged.connect(self._show_buttons)
        self.list.itemActivated.connect(lambda item: self._ask(self.restore_requested))
        self.restore_button.clicked.connect(lambda: self._ask(self.restore_requested))
        self.erase_button.clicked.connect(lambda: self._ask(self.erase_requested))
        theme.changed.connect(self.update)
        self._show_buttons()

    @property
    def chosen(self) -> str:
        """The selected chat's id; empty if none is."""
        items = self.list.selectedItems()
        return str(items[0].data(Qt.ItemDataRole.UserRole)) if items else ""

    def show_chats(self, chats: Sequence[Summary], now: datetime) -> None:
        """These can be brought back; the selection stays where it can."""
        chosen = self.chosen
        self.list.clear()
        for chat in chats:
            assert chat.deleted
            gone_s = now.timestamp() - chat.deleted.timestamp()
            days_left = max(1, math.ceil(KEPT_DELETED.days - gone_s / 86_400))
            item = QListWidgetItem(strings.row(chat.title, days_left), self.list)
            item.setSizeHint(QSize(0, _ROW_PX))
            item.setData(Qt.ItemDataRole.UserRole, chat.id)
            item.setSelected(chat.id == chosen)
        if chats and not self.chosen:
            self.list.setCurrentRow(0)
        self.note.setText(strings.NOTE if chats else strings.NOTHING)
        self._show_buttons()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("window"))
        painter.end()

    def _ask(self, wish: object) -> None:
        if self.chosen:
            wish.emit(self.chosen)  # type: ignore[attr-defined]

    def _show_buttons(self) -> None:
        for button in (self.restore_button, self.erase_button):
            button.setEnabled(bool(self.chosen))
