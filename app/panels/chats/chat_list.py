"""ChatList: the chats in groups or as search results, with one selected and renaming in place.

Arrow keys, Home and End skip the group titles, which cannot be selected. F2 renames, Delete deletes, the menu
key and the three dots of a row open its menu. `chat_selected` reports a person's choice; `set_chats` emits
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QWidget

from app.controls.scroll_bar import OverlayScrollBar
from app.panels.chats import strings
from app.panels.chats.chat_delegate import ROW, ChatDelegate, ChatRows, dots_rect
from app.panels.chats.chat_row import ChatRow
from app.theme.theme import Theme


class ChatList(QListView):
    """Rows are 30 px high, inset 8, radius 6; results with a passage are 48 px high."""

    chat_selected = Signal(str)  # the chat's id
    rename_requested = Signal(str, str)  # chat id, the title as typed
    delete_requested = Signal(str)  # chat id
    menu_requested = Signal(str, QPoint)  # chat id (empty: none), where on the screen

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = ChatRows(self)
        self._silent = False
        self.setModel(self._rows)
        self.setItemDelegate(ChatDelegate(theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        OverlayScrollBar(theme, self)
        self.setMouseTracking(True)
        self.setAccessibleName(strings.CHATS)
        self.viewport().setAutoFillBackground(False)
        self._rows.renamed.connect(self.rename_requested)

    @property
    def selected(self) -> str:
        """The selected chat's id; empty for none."""
        chosen = self.selectedIndexes()
        return _id(chosen[0]) if chosen else ""

    def set_chats(self, chats: Sequence[ChatRow], selected: str, now: datetime) -> None:
        """Show `chats` with the one whose id is `selected` selected."""
        self._show(lambda: self._rows.show_chats(chats, now), selected, even=True)

    def set_results(self, title: str, results: Sequence[ChatRow], selected: str, now: datetime) -> None:
        """Show search results in the given order."""
        self._show(lambda: self._rows.show_results(title, results, now), selected, even=False)

    def row(self, chat_id: str) -> ChatRow | None:
        """The displayed row of a chat; None if it is not displayed."""
        index = self._rows.index_of(chat_id)
        found = index.data(ROW) if index.isValid() else None
        return found if isinstance(found, ChatRow) else None

    def set_busy(self, chat_id: str) -> None:
        """Mark the chat that is being answered; empty for none."""
        self._rows.set_busy(chat_id)

    def rename(self, chat_id: str) -> None:
        """Edit the title in place."""
        index = self._rows.index_of(chat_id)
        if index.isValid():
            self.scrollTo(index)
            self.edit(index)

    def select_first(self) -> None:
        """Select the first chat, as an arrow key would."""
        for place in range(self._rows.rowCount()):
            index = self._rows.index(place)
            if _id(index):
                self.setFocus(Qt.FocusReason.ShortcutFocusReason)
                self.setCurrentIndex(index)
                return

    # ---- keys and mouse

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and self.selected:
            self.delete_requested.emit(self.selected)
            event.accept()
        elif event.text().strip() and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # for the composer; Qt would search the list for it
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and _id(index):
            dots = dots_rect(self.visualRect(index))
            if dots.contains(event.position().toPoint()):
                self.menu_requested.emit(_id(index), self.viewport().mapToGlobal(dots.bottomLeft()))
                return
        if event.button() == Qt.MouseButton.LeftButton:  # the right button opens the menu only
            super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            chosen = self.selectedIndexes()
            place = self.visualRect(chosen[0]).bottomLeft() if chosen else QPoint(0, 0)
            self.menu_requested.emit(self.selected, self.viewport().mapToGlobal(place))
        else:
            self.menu_requested.emit(_id(self.indexAt(event.pos())), event.globalPos())

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        # Qt's Home and Page Up stop at a group title.
        index = super().moveCursor(action, modifiers)
        return index if not index.isValid() or _id(index) else index.siblingAtRow(index.row() + 1)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        # Not `currentChanged`: focus alone sets the current row of a list without a selection.
        super().selectionChanged(selected, deselected)
        if selected.indexes() and not self._silent:
            self.chat_selected.emit(self.selected)

    def _show(self, fill: object, selected: str, *, even: bool) -> None:
        assert callable(fill)
        self._silent = True
        scrolled = self.verticalScrollBar().value()
        self.setUniformItemSizes(even)
        fill()
        index = self._rows.index_of(selected)
        if index.isValid():
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self._silent = False
        if even:
            self.verticalScrollBar().setValue(scrolled)
        if index.isValid():
            self.scrollTo(index)


def _id(index: QModelIndex) -> str:
    row = index.data(ROW) if index.isValid() else None
    return row.id if isinstance(row, ChatRow) else ""
