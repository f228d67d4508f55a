"""ChatList: the projects and chats, or search results, with one chat selected and renaming in place.

Arrow keys, Home and End skip the group titles. On a project they move the focus only; the selected chat is
the open one. Left, Right, Space and Return fold and unfold a project; Left on a chat goes to its project. F2
renames, Delete deletes, the menu key and the three dots of a row open its menu. Chats are dragged to a
project, or to the chats outside. `chat_selected` reports a person's choice; `set_chats` emits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QContextMenuEvent,
    QDrag,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QWidget

from app.controls.keys import held
from app.controls.record_table import EditedInPlace
from app.controls.scroll_bar import lay_bars_over
from app.panels import strings
from app.panels.chat_delegate import (
    CHAT_MIME,
    ROW,
    ChatDelegate,
    ChatRows,
    dots_rect,
    new_chat_rect,
)
from app.panels.chat_row import ChatRow, ProjectRow
from app.theme.theme import color
from app.theme.zoom import design_rect, painter_on

_FLAG = QItemSelectionModel.SelectionFlag
_FOLDING_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class ChatList(EditedInPlace, QListView):
    """Rows are 30 px high, inset 8, radius 6; results with a passage are 48 px high."""

    chat_selected = Signal(str)  # the chat's id
    delete_requested = Signal(str)  # chat id
    menu_requested = Signal(str, QPoint)  # id of a chat or project (empty: none), where on the screen
    move_requested = Signal(str, str)  # chat id, project id (empty: out of its project)
    project_folded = Signal(str, bool)  # project id, wanted
    project_delete_requested = Signal(str)  # project id
    new_chat_requested = Signal(str)  # project id

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = ChatRows(self)
        self._silent = False
        self._drop: str | None = None  # the project that a dragged chat would move to; empty: none
        self.setModel(self._rows)
        self.setItemDelegate(ChatDelegate(self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        lay_bars_over(self)
        self.setMouseTracking(True)
        self.setAccessibleName(strings.CHATS)
        self.viewport().setAutoFillBackground(False)
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDropIndicatorShown(False)
        self.rename_requested = self._rows.renamed
        self.project_renamed = self._rows.project_renamed

    @property
    def selected(self) -> str:
        """The selected chat's id; empty for none."""
        chosen = self.selectedIndexes()
        return _id(chosen[0]) if chosen else ""

    def set_chats(
        self, chats: Sequence[ChatRow], selected: str, now: datetime, projects: Sequence[ProjectRow] = ()
    ) -> None:
        """Show `projects` and `chats` with the one whose id is `selected` selected."""
        fill = partial(self._rows.show_chats, chats, projects, now)
        self.change_rows(lambda: self._show(fill, selected, even=True))

    def set_results(self, title: str, results: Sequence[ChatRow], selected: str, now: datetime) -> None:
        """Show search results in the given order."""
        fill = partial(self._rows.show_results, title, results, now)
        self.change_rows(lambda: self._show(fill, selected, even=False))

    def row(self, chat_id: str) -> ChatRow | None:
        """The displayed row of a chat; None if it is not displayed."""
        found = self._rows.index_of(chat_id).data(ROW)
        return found if isinstance(found, ChatRow) else None

    def project(self, project_id: str) -> ProjectRow | None:
        """The displayed row of a project; None if it is not displayed."""
        return _project(self._rows.index_of(project_id))

    def set_busy(self, chat_id: str, project_id: str = "") -> None:
        """Mark the chat that is being answered, or its folded project; empty for none."""
        self.change_rows(lambda: self._rows.set_busy(chat_id, project_id))

    def rename(self, row_id: str) -> None:
        """Edit the title of a chat or the name of a project in place."""
        index = self._rows.index_of(row_id)
        if index.isValid():
            self.scrollTo(index)
            self.edit(index)

    def focus_project(self, project_id: str) -> None:
        """Move the focus to a project."""
        index = self._rows.index_of(project_id)
        if index.isValid():
            self.setFocus(Qt.FocusReason.OtherFocusReason)
            self.selectionModel().setCurrentIndex(index, _FLAG.NoUpdate)
            self.scrollTo(index)

    def select_first(self) -> None:
        """Select the first chat, as an arrow key would."""
        for place in range(self._rows.rowCount()):
            index = self._rows.index(place)
            if isinstance(index.data(ROW), ChatRow):
                self.setFocus(Qt.FocusReason.ShortcutFocusReason)
                self.setCurrentIndex(index)
                return

    # ---- keys and mouse

    def keyPressEvent(self, event: QKeyEvent) -> None:
        current = self.currentIndex()
        project, chat = _project(current), current.data(ROW)
        if self.state() == QAbstractItemView.State.EditingState:
            super().keyPressEvent(event)  # its editor passed it on
        elif project and self._act_on(project, event.key()):
            event.accept()
        elif event.key() == Qt.Key.Key_Left and isinstance(chat, ChatRow) and self.project(chat.project):
            self.focus_project(chat.project)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and self.selected:
            self.delete_requested.emit(self.selected)
            event.accept()
        elif event.text().strip() and not held(event) & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # for the composer; Qt would search the list for it
        else:
            super().keyPressEvent(event)

    def _act_on(self, project: ProjectRow, key: int) -> bool:
        """Carry out a key on a project. Returns whether it was one of these."""
        fold = not project.folded if key in _FOLDING_KEYS else key == Qt.Key.Key_Left
        if key in (*_FOLDING_KEYS, Qt.Key.Key_Left, Qt.Key.Key_Right):
            if fold != project.folded:
                self.project_folded.emit(project.id, fold)
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.project_delete_requested.emit(project.id)
        elif key == Qt.Key.Key_F2:  # Qt handles it on Linux only
            self.edit(self.currentIndex())
        else:
            return False
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        index = self.indexAt(place)
        project = _project(index)
        if event.button() == Qt.MouseButton.LeftButton and _id(index):
            dots = dots_rect(self.visualRect(index))
            if dots.contains(place):
                self.menu_requested.emit(_id(index), self.viewport().mapToGlobal(dots.bottomLeft()))
                return
        if project:
            if event.button() == Qt.MouseButton.LeftButton:
                self.selectionModel().setCurrentIndex(index, _FLAG.NoUpdate)
                if new_chat_rect(self.visualRect(index)).contains(place):
                    self.new_chat_requested.emit(project.id)
                else:
                    self.project_folded.emit(project.id, not project.folded)
        elif event.button() == Qt.MouseButton.LeftButton:  # the right button opens the menu only
            super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            chosen = [self.currentIndex()] if _project(self.currentIndex()) else self.selectedIndexes()
            place = self.visualRect(chosen[0]).bottomLeft() if chosen else QPoint(0, 0)
            row_id = _id(chosen[0]) if chosen else ""
            self.menu_requested.emit(row_id, self.viewport().mapToGlobal(place))
        else:
            self.menu_requested.emit(_id(self.indexAt(event.pos())), event.globalPos())

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        # Qt's Home and Page Up stop at a group title.
        index = super().moveCursor(action, modifiers)
        return index if not index.isValid() or _id(index) else index.siblingAtRow(index.row() + 1)

    def selectionCommand(
        self, index: QModelIndex | QPersistentModelIndex, event: QEvent | None = None
    ) -> QItemSelectionModel.SelectionFlag:
        return _FLAG.NoUpdate if _project(index) else super().selectionCommand(index, event)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        # Not `currentChanged`: focus alone sets the current row of a list without a selection.
        super().selectionChanged(selected, deselected)
        if selected.indexes() and not self._silent:
            self.chat_selected.emit(self.selected)

    # ---- dragging chats

    def startDrag(self, supportedActions: Qt.DropAction) -> None:
        chosen = self.selectedIndexes()
        if chosen:
            drag = QDrag(self)
            drag.setMimeData(self._rows.mimeData(chosen))
            drag.setPixmap(self.viewport().grab(self.visualRect(chosen[0])))
            drag.exec(Qt.DropAction.MoveAction)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        event.setAccepted(self._dragged(event) is not None)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        super().dragMoveEvent(event)  # scrolls near the edges
        self._show_drop(self._target(event))
        event.setAccepted(self._dragged(event) is not None)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self._show_drop(None)

    def dropEvent(self, event: QDropEvent) -> None:
        self._show_drop(None)
        self.stopAutoScroll()
        chat, target = self._dragged(event), self._target(event)
        event.setAccepted(chat is not None)
        if chat is not None and target is not None:
            self.move_requested.emit(chat.id, target)

    def _dragged(self, event: QDropEvent) -> ChatRow | None:
        """The dragged chat; None for other data, and while search results are shown."""
        chat_id = bytes(event.mimeData().data(CHAT_MIME).data()).decode(errors="replace")
        return None if self._rows.found else self.row(chat_id)

    def _target(self, event: QDropEvent) -> str | None:
        """The project to which a drop would move the chat, empty for none; None if it would stay."""
        chat, target = self._dragged(event), _project_of(self.indexAt(event.position().toPoint()))
        return target if chat and target != chat.project else None

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._drop is not None:
            painter = painter_on(self.viewport())
            painter.setPen(QPen(color("accent"), 2))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            box = design_rect(QRectF(self._drop_rect(self._drop)))
            painter.drawRoundedRect(box.adjusted(9, 1, -9, -1), 5, 5)

    def _drop_rect(self, project_id: str) -> QRect:
        """The rows of a project with its chats, or everything below the projects."""
        rows = [self._rows.index(place) for place in range(self._rows.rowCount())]
        inside = [place for place, index in enumerate(rows) if _project_of(index) == project_id]
        if project_id:
            return self.visualRect(rows[inside[0]]).united(self.visualRect(rows[inside[-1]]))
        top = max(self.visualRect(index).bottom() for index in rows if _project_of(index))
        ground = self.viewport().rect()
        ground.setTop(min(top, ground.bottom()))
        return ground

    def _show_drop(self, project_id: str | None) -> None:
        if project_id != self._drop:
            self._drop = project_id
            self.viewport().update()

    # ---- inside

    def _show(self, fill: Callable[[], None], selected: str, *, even: bool) -> None:
        self._silent = True
        scrolled = self.verticalScrollBar().value()
        focused = _project(self.currentIndex()) if self.hasFocus() else None
        self.setUniformItemSizes(even)
        fill()
        index, project = self._rows.index_of(selected), self._rows.index_of(focused.id if focused else "")
        model = self.selectionModel()
        if not index.isValid():
            model.clear()
        elif project.isValid():
            model.select(index, _FLAG.ClearAndSelect)
        else:
            model.setCurrentIndex(index, _FLAG.ClearAndSelect)
        if project.isValid():
            model.setCurrentIndex(project, _FLAG.NoUpdate)
        self._silent = False
        if even:
            self.verticalScrollBar().setValue(scrolled)
        if index.isValid() and not project.isValid():
            self.scrollTo(index)


def _id(index: QModelIndex) -> str:
    row = index.data(ROW)
    return row.id if isinstance(row, ChatRow | ProjectRow) else ""


def _project(index: QModelIndex | QPersistentModelIndex) -> ProjectRow | None:
    row = index.data(ROW)
    return row if isinstance(row, ProjectRow) else None


def _project_of(index: QModelIndex) -> str:
    """The project that a row is or is in; empty outside."""
    row = index.data(ROW)
    return row.id if isinstance(row, ProjectRow) else row.project if isinstance(row, ChatRow) else ""
