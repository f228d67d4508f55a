"""The rows of the chat list as a Qt model, and the delegate that paints them.

Only painted rows are formatted, so that thousands of chats cost no more than their list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from PySide6.QtCore import (
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
)
from PySide6.QtWidgets import (
    QStyle,
    QStyleOptionViewItem,
    QWidget,
)

from app.controls.record_table import RowDelegate
from app.controls.shapes import draw_box, draw_ring, draw_text, report_elided
from app.panels import strings
from app.panels.chat_row import ChatRow, ProjectRow, Row, arranged, facts, spoken
from app.richtext.passage import draw_passage
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import color, theme
from app.theme.zoom import design_rect, px, zoom

ROW = Qt.ItemDataRole.UserRole
FACTS = Qt.ItemDataRole.UserRole + 1  # of a chat, in one line
INDENTED = Qt.ItemDataRole.UserRole + 2  # below its project
CHAT_MIME = "application/x-draftlight-chat"  # its id
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class ChatRows(QAbstractListModel):
    """Group titles, projects and chats. A group title is a row without `ROW` data.

    A changed list is shown by removing, inserting and changing the rows that differ, so that the others keep
    their selection.
    """

    renamed = Signal(str, str)  # chat id, title as typed
    project_renamed = Signal(str, str)  # project id, name as typed

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []
        self._places: dict[str, int] = {}
        self._now = datetime.now()
        self.found = False  # the results of a search

    def show_chats(self, chats: Sequence[ChatRow], projects: Sequence[ProjectRow], now: datetime) -> None:
        """Show projects with their chats, and the other chats in groups by age."""
        self._show(arranged(chats, projects, now), now, found=False)

    def show_results(self, title: str, results: Sequence[ChatRow], now: datetime) -> None:
        """Show search results in order under one title."""
        self._show([title, *results], now, found=True)

    def set_busy(self, chat_id: str, project_id: str) -> None:
        """Mark the chat that is being answered, or its folded project."""
        for place, row in enumerate(self._rows):
            if isinstance(row, str):
                continue
            busy = row.id == (chat_id if isinstance(row, ChatRow) else project_id if row.folded else "")
            if row.busy != busy:
                self._rows[place] = replace(row, busy=busy)
                self.dataChanged.emit(self.index(place), self.index(place))

    def index_of(self, row_id: str) -> QModelIndex:
        """The row of a chat or project; an invalid index if there is none."""
        place = self._places.get(row_id)
        return self.index(place) if place is not None else QModelIndex()

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self._rows[index.row()]
        if isinstance(row, str):
            shown = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole)
            return row if role in shown else None
        if isinstance(row, ProjectRow):
            return _project_data(row, role)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.title or strings.UNTITLED
            case Qt.ItemDataRole.EditRole | Qt.ItemDataRole.ToolTipRole:
                return row.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return spoken(row, self._now)
            case _ if role == ROW:
                return row
            case _ if role == FACTS:
                return " · ".join(facts(row, self._now))
            case _ if role == INDENTED:
                return bool(row.project) and not self.found
        return None

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row = self._rows[index.row()]
        if role != Qt.ItemDataRole.EditRole or isinstance(row, str):
            return False
        renamed = self.project_renamed if isinstance(row, ProjectRow) else self.renamed
        renamed.emit(row.id, str(value))
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], str):
            return Qt.ItemFlag.NoItemFlags
        flag = Qt.ItemFlag
        shared = flag.ItemIsEnabled | flag.ItemIsEditable | flag.ItemNeverHasChildren
        if isinstance(self._rows[index.row()], ProjectRow):
            return shared
        return shared | flag.ItemIsSelectable | flag.ItemIsDragEnabled

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        data = QMimeData()
        data.setData(CHAT_MIME, indexes[0].data(ROW).id.encode())
        return data

    def _show(self, rows: list[Row], now: datetime, *, found: bool) -> None:
        old, same_times = self._rows, self.found == found and self._now.date() == now.date()
        self._now, self.found = now, found
        fewest = min(len(old), len(rows))
        first = next((n for n in range(fewest) if _key(old[n]) != _key(rows[n])), fewest)
        rest = fewest - first
        tail = next((n for n in range(rest) if _key(old[-1 - n]) != _key(rows[-1 - n])), rest)
        end, new_end = len(old) - tail, len(rows) - tail
        if first < end:
            self.beginRemoveRows(_NOWHERE, first, end - 1)
            self._rows = [*old[:first], *old[end:]]
            self._places = _places(self._rows)
            self.endRemoveRows()
        if first < new_end:
            self.beginInsertRows(_NOWHERE, first, new_end - 1)
        self._rows, self._places = rows, _places(rows)
        if first < new_end:
            self.endInsertRows()
        kept = [*zip(old[:first], range(first), strict=True)]
        kept += zip(old[end:], range(new_end, len(rows)), strict=True)
        for row, place in kept:
            if not same_times or row != rows[place]:
                self.dataChanged.emit(self.index(place), self.index(place))


def _key(row: Row) -> str:
    """The id, or the title of a group. No id is a title."""
    return row if isinstance(row, str) else row.id


def _places(rows: Sequence[Row]) -> dict[str, int]:
    return {row.id: place for place, row in enumerate(rows) if not isinstance(row, str)}


def _project_data(row: ProjectRow, role: int) -> object:
    match role:
        case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole | Qt.ItemDataRole.ToolTipRole:
            return row.name
        case Qt.ItemDataRole.AccessibleTextRole:
            marks = (strings.COLLAPSED if row.folded else "", strings.BUSY if row.busy else "")
            parts = (row.name, strings.PROJECT, strings.project_chats(row.chats), *marks)
            return ", ".join(part for part in parts if part)
        case _ if role == ROW:
            return row
    return None


ROW_PX = 30
RESULT_PX = 48
_GROUP_PX = 30  # 12 above, a line of 14, 4 below
_INSET_PX = 8
_GROUP_LEFT_PX = 20
_DOTS_PX = 16
_BUSY_PX, _BUSY_ROOM_PX = 7, 13
_ICON_PX = 14
# The name of a project, and the title of a chat in it.
_NAME_LEFT_PX, _IN_PROJECT_PX = 40, 22


def dots_rect(row: QRect) -> QRect:
    """The rectangle of the three dots, enlarged for the mouse."""
    return QRect(row.right() - px(_INSET_PX + _DOTS_PX + 14), row.top(), px(_DOTS_PX + 16), px(ROW_PX))


def new_chat_rect(row: QRect) -> QRect:
    """The rectangle of a project's New Chat, left of the three dots."""
    dots = dots_rect(row)
    return dots.translated(-dots.width(), 0)


class ChatDelegate(RowDelegate):
    """Paints and edits the rows of `ChatRows`."""

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        row = index.data(ROW)
        if row is None:
            return QSize(0, px(_GROUP_PX))
        return QSize(0, px(RESULT_PX if isinstance(row, ChatRow) and row.passage else ROW_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        painter.scale(zoom(), zoom())
        row = index.data(ROW)
        if isinstance(row, ChatRow):
            self._paint_chat(painter, option, index, row)
        elif isinstance(row, ProjectRow):
            self._paint_project(painter, option, row)
        else:
            box = design_rect(QRectF(option.rect))
            line = QRectF(_GROUP_LEFT_PX, box.top() + 12, box.width() - _GROUP_LEFT_PX, 14)
            color = theme.color("text2")
            draw_text(painter, line, str(index.data()), ui_font(11, 600), color, Qt.AlignmentFlag.AlignLeft)
        painter.restore()

    def _paint_chat(
        self, painter: QPainter, option: QStyleOptionViewItem, index: _Index, row: ChatRow
    ) -> None:
        title, beside = str(index.data()), str(index.data(FACTS))
        left = Qt.AlignmentFlag.AlignLeft
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        pill = self._paint_ground(painter, option, selected)
        inside = pill.adjusted(12 + _IN_PROJECT_PX * bool(index.data(INDENTED)), 0, -10, 0)
        first = QRectF(inside.left(), inside.top(), inside.width(), ROW_PX)
        if selected or hovered:
            dots = icon_pixmap("more", color("accent" if selected else "text2"), _DOTS_PX, _ratio(painter))
            painter.drawPixmap(QPointF(first.right() - _DOTS_PX, first.top() + 7), dots)
            right_px: float = _DOTS_PX
        else:
            font = ui_font(11, tabular=True)
            right_px = QFontMetricsF(font).horizontalAdvance(beside)
            draw_text(painter, first, beside, font, color("text2"), Qt.AlignmentFlag.AlignRight)
        name = first.adjusted(_BUSY_ROOM_PX if row.busy else 0, 0, -right_px - 8, 0)
        if row.busy:
            self._paint_busy(painter, first)
        draw_text(painter, name, title, ui_font(13, 500 if selected else 400), color("text"), left)
        if row.passage:
            line = QRectF(inside.left(), inside.top() + 25, inside.width(), 16)
            self._paint_passage(painter, line, row)

    def _paint_ground(self, painter: QPainter, option: QStyleOptionViewItem, selected: bool) -> QRectF:
        """The pill of a selected or hovered row and the focus ring; returns the pill's rectangle."""
        pill = design_rect(QRectF(option.rect)).adjusted(_INSET_PX, 0, -_INSET_PX, 0)
        if selected or option.state & QStyle.StateFlag.State_MouseOver:
            fill = color("sel")
            fill.setAlphaF(1.0 if selected else 0.45)
            draw_box(painter, pill, 6, fill)
        focus = QStyle.StateFlag.State_HasFocus, QStyle.StateFlag.State_KeyboardFocusChange
        if all(option.state & flag for flag in focus):
            draw_ring(painter, pill, 6)
        return pill

    def _paint_busy(self, painter: QPainter, line: QRectF) -> None:
        """The dot of a chat that is being answered, at the left of `line`."""
        dot = QRectF(line.left(), line.center().y() - _BUSY_PX / 2, _BUSY_PX, _BUSY_PX)
        draw_box(painter, dot, _BUSY_PX / 2, color("accent"))

    def _paint_project(self, painter: QPainter, option: QStyleOptionViewItem, row: ProjectRow) -> None:
        ratio = _ratio(painter)
        pill = self._paint_ground(painter, option, row.current)
        top = pill.center().y() - _ICON_PX / 2
        arrow = icon_pixmap("right" if row.folded else "down", color("text2"), _ICON_PX, ratio)
        painter.drawPixmap(QPointF(pill.left() + 2, top), arrow)
        folder = icon_pixmap("folder", color("text2"), _ICON_PX, ratio)
        painter.drawPixmap(QPointF(pill.left() + _NAME_LEFT_PX - _ICON_PX - 6, top), folder)
        inside = pill.adjusted(_NAME_LEFT_PX, 0, -10, 0)
        if option.state & QStyle.StateFlag.State_MouseOver:
            right_px = 2.0 * _DOTS_PX + 16
            for name, left in (("plus", inside.right() - right_px), ("more", inside.right() - _DOTS_PX)):
                icon = icon_pixmap(name, color("text2"), _DOTS_PX, ratio)
                painter.drawPixmap(QPointF(left, pill.top() + 7), icon)
        else:
            font, count = ui_font(11, tabular=True), f"{row.chats:,}" if row.chats else ""
            right_px = QFontMetricsF(font).horizontalAdvance(count)
            draw_text(painter, inside, count, font, color("text2"), Qt.AlignmentFlag.AlignRight)
        name_box = inside.adjusted(_BUSY_ROOM_PX if row.busy else 0, 0, -right_px - 8, 0)
        if row.busy:
            self._paint_busy(painter, inside)
        draw_text(painter, name_box, row.name, ui_font(13, 500), color("text"), Qt.AlignmentFlag.AlignLeft)

    def _paint_passage(self, painter: QPainter, line: QRectF, row: ChatRow) -> None:
        """One line around the first match; matches are semibold in the title's colour."""
        first = row.marks[0][0] if row.marks else 0
        cut = row.passage.rfind(" ", 0, max(0, first - 12)) + 1
        before = "…" if cut > 1 else ""
        if before:
            report_elided(painter, line, row.passage)
        shift = len(before) - cut
        marks = [(start + shift, end + shift) for start, end in row.marks if start >= cut]
        marked = QTextCharFormat()
        marked.setFontWeight(QFont.Weight.DemiBold)
        marked.setForeground(color("text"))
        draw_passage(painter, line, before + row.passage[cut:], ui_font(11), color("text2"), marks, marked)

    def editor_name(self, index: _Index) -> str:
        return strings.PROJECT_NAME if isinstance(index.data(ROW), ProjectRow) else strings.CHAT_TITLE

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        row = QRect(option.rect.left(), option.rect.top(), option.rect.width(), px(ROW_PX))
        inset, found = px(_INSET_PX + 10), index.data(ROW)
        shift_px = _NAME_LEFT_PX - 12 if isinstance(found, ProjectRow) else _IN_PROJECT_PX
        left_px = shift_px if isinstance(found, ProjectRow) or index.data(INDENTED) else 0
        editor.setGeometry(row.adjusted(inset + px(left_px), px(3), -inset, -px(3)))


def _ratio(painter: QPainter) -> float:
    return painter.device().devicePixelRatioF() * zoom()
