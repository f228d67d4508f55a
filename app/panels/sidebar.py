"""Sidebar: search, projects, chats, and the worker's status.

Independent of store and worker: it emits requests. While the search field has text, the list shows the
results set by `set_results()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Literal

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QSizePolicy, QWidget

from app.controls.buttons import IconButton, in_menu
from app.controls.text_fields import SearchField
from app.controls.text_label import TextLabel
from app.panels import strings
from app.panels.chat_list import ChatList
from app.panels.chat_row import ChatRow, ProjectRow
from app.richtext.canvas_menu import pop_up
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_fixed_size,
    set_fixed_width,
    set_margins,
    set_spacing,
)
from app.theme.sheet import restyle, set_ground
from app.theme.zoom import px_size

WIDTH_PX = 240
_HEADER_PX = 52
# Search after a pause in typing; results for each key would never be seen.
_SEARCH_AFTER_MS = 120


class Sidebar(QWidget):
    """240 px wide with a hairline on the right."""

    search_requested = Signal(str)  # query, never empty
    search_ended = Signal()
    stop_requested = Signal(str)  # the chat, or a project of which a chat is being answered
    pin_requested = Signal(str, bool)  # chat id, wanted
    export_requested = Signal(str, str)  # chat id (empty: all), kind
    import_requested = Signal()
    new_project_requested = Signal(str)  # the chat that moves into it; empty: none
    project_settings_requested = Signal(str)  # project id

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "sidebar", "right")
        self._projects: Sequence[ProjectRow] = ()
        set_fixed_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(strings.CHATS)

        self._more = IconButton("more", strings.MORE)
        self.hide_button = IconButton("sidebar", strings.HIDE_SIDEBAR)
        self.new_chat_button = IconButton("compose", strings.NEW_CHAT)
        self.search = SearchField(strings.SEARCH_CHATS)
        self.list = ChatList()
        self.chat_selected = self.list.chat_selected
        self.rename_requested = self.list.rename_requested
        self.delete_requested = self.list.delete_requested
        self._nothing = TextLabel(strings.NO_CHATS, 12, 16, wrap=True)
        self._worker = WorkerStatus()
        self._search_timer = QTimer(self, interval=_SEARCH_AFTER_MS, singleShot=True)
        self._lay_out()
        self._wire()
        self.set_chats((), "")

    @property
    def models_button(self) -> IconButton:
        """In the footer, next to the worker's status."""
        return self._worker.models_button

    @property
    def searching(self) -> str:
        """The query; empty while all chats are listed."""
        return self.search.text().strip()

    def set_projects(self, projects: Sequence[ProjectRow]) -> None:
        """Use `projects`, in their order, for the menus and the next `set_chats`."""
        self._projects = projects

    def set_chats(self, chats: Sequence[ChatRow], selected: str) -> None:
        """Show `chats`, newest first, with the id `selected` selected. Emits nothing."""
        self.list.set_chats(chats, selected, datetime.now(), self._projects)
        self._say_nothing("" if chats or self._projects else strings.NO_CHATS)

    def set_results(self, results: Sequence[ChatRow], selected: str) -> None:
        """Show search results, best first. Emits nothing."""
        self.list.set_results(strings.results(len(results)), results, selected, datetime.now())
        self._say_nothing("" if results else strings.NOT_FOUND.format(query=self.searching))

    def set_worker(self, title: str, detail: str, level: Level = "ready") -> None:
        """Show the worker's model and activity."""
        self._worker.show_state(title, detail, level)

    def focus_search(self) -> None:
        """Focus the search field and select its text."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def menu_for(self, chat_id: str) -> QMenu:
        """Returns the menu of a chat or project; for the empty id, the menu of all chats."""
        menu = QMenu(self)
        if project := self.list.project(chat_id):
            self._offer_stop(menu, project)
            self._fill_project_menu(menu, chat_id)
            return menu
        row = self.list.row(chat_id)
        if not row:
            menu.addAction(strings.NEW_PROJECT, lambda: self.new_project_requested.emit(""))
            menu.addAction(strings.IMPORT, self.import_requested.emit)
            menu.addSeparator()
        if row:
            self._offer_stop(menu, row)
            menu.addAction(strings.RENAME, lambda: self.list.rename(chat_id))
            pin = strings.UNPIN if row.pinned else strings.PIN
            menu.addAction(pin, lambda: self.pin_requested.emit(chat_id, not row.pinned))
            menu.addMenu(self.move_menu(chat_id, row.project, menu))
            menu.addSeparator()
        for kind, (one, every) in strings.EXPORTS.items():
            which, text = (chat_id, one) if row else ("", every)
            menu.addAction(text, partial(self.export_requested.emit, which, kind))
        if row:
            menu.addSeparator()
            menu.addAction(strings.DELETE, lambda: self.delete_requested.emit(chat_id))
        return menu

    def move_menu(self, chat_id: str, project_id: str, parent: QWidget) -> QMenu:
        """Returns the menu that moves a chat, now in `project_id`, to another project or out of it."""
        menu = QMenu(strings.MOVE_TO_PROJECT, parent)
        choices = [(project.id, in_menu(project.name)) for project in self._projects]
        if choices:
            choices.append(("", strings.NO_PROJECT))
        for target, name in choices:
            action = menu.addAction(name)
            action.setCheckable(True)
            action.setChecked(target == project_id)
            action.setEnabled(target != project_id)
            action.triggered.connect(
                lambda checked, target=target: self.list.move_requested.emit(chat_id, target)
            )
        menu.addSeparator()
        menu.addAction(strings.NEW_PROJECT, lambda: self.new_project_requested.emit(chat_id))
        return menu

    def open_move_menu(self, chat_id: str) -> None:
        """Open the menu that moves a listed chat."""
        self.search.clear()
        row = self.list.row(chat_id)
        project_id = row.project if row else next((each.id for each in self._projects if each.current), "")
        pop_up(self.move_menu(chat_id, project_id, self), self.list.mapToGlobal(self.list.rect().topLeft()))

    def sizeHint(self) -> QSize:
        return px_size(QSize(WIDTH_PX, 640))

    # ---- inside

    def _offer_stop(self, menu: QMenu, row: ChatRow | ProjectRow) -> None:
        if row.busy:
            menu.addAction(strings.STOP_GENERATING, lambda: self.stop_requested.emit(row.id))
            menu.addSeparator()

    def _fill_project_menu(self, menu: QMenu, project_id: str) -> None:
        menu.addAction(strings.NEW_CHAT_IN_PROJECT, lambda: self.list.new_chat_requested.emit(project_id))
        menu.addSeparator()
        menu.addAction(strings.RENAME, lambda: self.list.rename(project_id))
        menu.addAction(strings.PROJECT_SETTINGS, lambda: self.project_settings_requested.emit(project_id))
        menu.addSeparator()
        menu.addAction(strings.DELETE_PROJECT, lambda: self.list.project_delete_requested.emit(project_id))

    def _say_nothing(self, text: str) -> None:
        """The text of an empty list."""
        self._nothing.setText(text)
        self._empty.setVisible(bool(text))
        self.list.setVisible(not text)

    def _show_menu(self, chat_id: str, where: QPoint) -> None:
        pop_up(self.menu_for(chat_id), where)

    def _search_changed(self) -> None:
        if self.searching:
            self._search_timer.start()
        else:
            self._search_timer.stop()
            self.search_ended.emit()

    def _search_now(self) -> None:
        self._search_timer.stop()
        if self.searching:
            self.search_requested.emit(self.searching)

    def _go_to_results(self) -> None:
        if self._search_timer.isActive():
            self._search_now()
        self.list.select_first()

    def _wire(self) -> None:
        self._more.clicked.connect(
            lambda: self._show_menu("", self._more.mapToGlobal(self._more.rect().bottomLeft()))
        )
        self.search.textChanged.connect(self._search_changed)
        self.search.results_wanted.connect(self._go_to_results)
        self._search_timer.timeout.connect(self._search_now)
        self.list.menu_requested.connect(self._show_menu)

    def _lay_out(self) -> None:
        header = row_of(STRETCH, margins=(20, 0, 10, 0))
        for button in (self._more, self.hide_button, self.new_chat_button):
            header.addWidget(button)
        top = QWidget()
        set_fixed_height(top, _HEADER_PX)
        top.setLayout(header)
        search = row_of(self.search, margins=(12, 0, 12, 4))
        self._empty = QWidget()
        row_of(self._nothing, margins=(20, 12, 20, 0), parent=self._empty)
        layout = column_of(top, search, self._empty, (self.list, 1), margins=(0, 0, 1, 0), parent=self)
        layout.addStretch(0)  # for the empty state, when the list is hidden
        layout.addWidget(self._worker)


Level = Literal["ready", "busy", "bad", "idle"]
_HEIGHT_PX = 52


class WorkerStatus(QWidget):
    """52 px high with a hairline on top, and a button that opens the models."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "", "top")
        self.level: Level = "idle"
        self._state: tuple[str, str, Level] | None = None
        self._title = TextLabel("", 12, 16, "text", weight=500)
        self._detail = TextLabel("", 11, 15, tabular=True)
        self.models_button = IconButton("models", strings.MODELS)
        lines = column_of(STRETCH, self._title, self._detail, STRETCH)
        self._dot = QLabel()
        set_fixed_size(self._dot, QSize(8, 8))
        row = QHBoxLayout(self)
        set_margins(row, 16, 1, 10, 0)
        set_spacing(row, 10)
        row.addWidget(self._dot)
        row.addLayout(lines, 1)
        row.addWidget(self.models_button)
        set_fixed_height(self, _HEIGHT_PX)
        self.setAccessibleName(strings.WORKER)

    def show_state(self, title: str, detail: str, level: Level) -> None:
        """Show two short lines and the dot's state."""
        if (title, detail, level) == self._state:
            return
        self._state = (title, detail, level)
        self.level = level
        self._title.setText(title)
        self._detail.setText(detail)
        self._detail.setVisible(bool(detail))
        self.setToolTip(detail)
        self.setAccessibleDescription(", ".join(filter(None, (title, detail))))
        self._dot.setProperty("dot", level)
        restyle(self._dot)
