"""Sidebar: the chats, and how the worker is. Knows neither store nor worker: it shows and asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QRectF, QSize, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.controls.icon_button import IconButton
from app.controls.text_label import TextLabel
from app.panels import strings
from app.panels.chat_list import ChatList
from app.panels.chat_row import ChatRow
from app.panels.worker_status import Level, WorkerStatus
from app.theme.theme import Theme

WIDTH_PX = 240
_HEADER_PX = 52


class Sidebar(QWidget):
    """240 wide with a hairline at the right."""

    new_chat_requested = Signal()
    chat_selected = Signal(str)  # the chat's id
    hide_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setFixedWidth(WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(strings.CHATS)

        hide = IconButton(theme, "sidebar", strings.HIDE_SIDEBAR)
        hide.clicked.connect(self.hide_requested)
        new_chat = IconButton(theme, "compose", strings.NEW_CHAT)
        new_chat.clicked.connect(self.new_chat_requested)
        header = QHBoxLayout()
        header.setContentsMargins(20, 0, 10, 0)
        header.setSpacing(0)
        header.addStretch(1)
        header.addWidget(hide)
        header.addWidget(new_chat)
        top = QWidget()
        top.setFixedHeight(_HEADER_PX)
        top.setLayout(header)

        self._list = ChatList(theme)
        self._list.chat_selected.connect(self.chat_selected)
        self._empty = QWidget()
        line = QHBoxLayout(self._empty)
        line.setContentsMargins(20, 12, 20, 0)
        line.addWidget(TextLabel(theme, strings.NO_CHATS, 12, 16))
        self._worker = WorkerStatus(theme)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 1, 0)
        layout.setSpacing(0)
        layout.addWidget(top)
        layout.addWidget(self._empty)
        layout.addWidget(self._list, 1)
        layout.addStretch(0)  # for the empty state, when the list is hidden
        layout.addWidget(self._worker)
        self.setTabOrder(hide, new_chat)
        self.setTabOrder(new_chat, self._list)
        theme.changed.connect(self.update)
        self.set_chats((), "")

    def set_chats(self, chats: Sequence[ChatRow], selected: str) -> None:
        """Show `chats`, newest first, `selected` (an id) marked. Emits nothing."""
        self._list.set_chats(chats, selected, datetime.now())
        self._list.setVisible(bool(chats))
        self._empty.setVisible(not chats)

    def set_worker(self, title: str, detail: str, level: Level = "ready") -> None:
        """How the worker is: which model, what it does."""
        self._worker.show_state(title, detail, level)

    def sizeHint(self) -> QSize:
        return QSize(WIDTH_PX, 640)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("sidebar"))
        painter.fillRect(QRectF(self.width() - 1, 0, 1, self.height()), self._theme.color("hair"))
