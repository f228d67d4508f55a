"""ChatList: the chats in groups, one selected. Arrow keys, Home and End move the selection.

Group titles are rows that cannot be selected. `chat_selected` tells what a person chose;
`set_chats` is silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetricsF, QPainter, QPen, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.controls.focus_ring import RING_PX
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_box, draw_text
from app.panels import strings
from app.panels.chat_row import ChatRow, grouped, time_label
from app.theme.fonts import ui_font
from app.theme.theme import Theme

_ID = Qt.ItemDataRole.UserRole
_TIME = Qt.ItemDataRole.UserRole + 1
_ROW_PX = 30
_GROUP_PX = 30  # 12 above, a line of 14, 4 below
_INSET_PX = 8
_GROUP_LEFT_PX = 20


class ChatList(QListView):
    """Rows 30 high, inset 8, radius 6."""

    chat_selected = Signal(str)  # the chat's id

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = QStandardItemModel(self)
        self._silent = False
        self.setModel(self._rows)
        self.setItemDelegate(_Row(theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        OverlayScrollBar(theme, self)
        self.setMouseTracking(True)
        self.setAccessibleName(strings.CHATS)
        self.viewport().setAutoFillBackground(False)
        theme.changed.connect(self.viewport().update)

    @property
    def selected(self) -> str:
        """The selected chat's id; empty if none is."""
        chosen = self.selectedIndexes()
        return str(chosen[0].data(_ID)) if chosen else ""

    def set_chats(self, chats: Sequence[ChatRow], selected: str, now: datetime) -> None:
        """Show `chats`, with the one whose id is `selected` marked (none if it is not there)."""
        self._silent = True
        self._rows.clear()
        chosen: QStandardItem | None = None
        for title, members in grouped(chats, now):
            heading = QStandardItem(title)
            heading.setFlags(Qt.ItemFlag.NoItemFlags)
            self._rows.appendRow(heading)
            for chat in members:
                item = QStandardItem(chat.title or strings.UNTITLED)
                item.setData(chat.id, _ID)
                item.setData(time_label(chat.when, now), _TIME)
                item.setToolTip(chat.title)
                self._rows.appendRow(item)
                if chat.id == selected:
                    chosen = item
        if chosen is not None:
            index = chosen.index()
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self._silent = False

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        # Qt's Home and Page Up land on a group title and then do not move at all.
        index = super().moveCursor(action, modifiers)
        return index if not index.isValid() or index.data(_ID) else index.siblingAtRow(index.row() + 1)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        # Not `currentChanged`: a list without a selection gets a current row by mere focus.
        super().selectionChanged(selected, deselected)
        if selected.indexes() and not self._silent:
            self.chat_selected.emit(self.selected)


class _Row(QStyledItemDelegate):
    """Paints group titles and chats."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(0, _ROW_PX if index.data(_ID) else _GROUP_PX)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        color = self._theme.color
        box = QRectF(option.rect)
        left = Qt.AlignmentFlag.AlignLeft
        title = str(index.data(Qt.ItemDataRole.DisplayRole))
        painter.save()
        if not index.data(_ID):
            line = QRectF(_GROUP_LEFT_PX, box.top() + 12, box.width() - _GROUP_LEFT_PX, 14)
            draw_text(painter, line, title, ui_font(11, 600), color("text2"), left)
            painter.restore()
            return
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        pill = box.adjusted(_INSET_PX, 0, -_INSET_PX, 0)
        if selected or hovered:
            fill = color("sel")
            fill.setAlphaF(1.0 if selected else 0.45)
            draw_box(painter, pill, 6, fill)
        focus = QStyle.StateFlag.State_HasFocus, QStyle.StateFlag.State_KeyboardFocusChange
        if all(option.state & flag for flag in focus):
            half = RING_PX / 2
            painter.setPen(QPen(color("accent_mid"), RING_PX))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.drawRoundedRect(pill.adjusted(half, half, -half, -half), 6 - half, 6 - half)
        when = str(index.data(_TIME))
        when_font = ui_font(11, tabular=True)
        when_px = QFontMetricsF(when_font).horizontalAdvance(when)
        inside = pill.adjusted(12, 0, -10, 0)
        name_box = inside.adjusted(0, 0, -when_px - 8, 0)
        draw_text(painter, name_box, title, ui_font(13, 500 if selected else 400), color("text"), left)
        draw_text(painter, inside, when, when_font, color("text2"), Qt.AlignmentFlag.AlignRight)
        painter.restore()
