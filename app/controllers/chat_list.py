"""ChatListController: the chats of the sidebar: list, search, rename, pin, move, delete and undo.

A deleted chat is hidden at once. It can be restored from the notice for some seconds and from Recently
Deleted for 30 days; then it is erased.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from msgspec import structs
from PySide6.QtCore import QObject, Signal

from app.controllers import strings
from app.controllers.answering import AnswerController
from app.controllers.app import App
from app.controllers.page import ChatPage
from app.panels.chat_row import ChatRow, ProjectRow, chat_row
from app.session.chats.archive import Summary
from app.session.chats.conversation import Conversation
from core.errors import RequestError
from core.events.wire import well_formed


class ChatListController(QObject):
    """`open_chat` opens a chat by its id, or a new one if empty."""

    stop_requested = Signal()  # stop the running answer
    listed = Signal()  # the list, or which deletions can be undone

    def __init__(
        self,
        app: App,
        page: ChatPage,
        answering: AnswerController,
        open_chat: Callable[[str], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._sidebar = app.views.sidebar
        self._notice = app.views.notice_bar
        self._chats = app.chats
        self._page = page
        self._answering = answering
        self.open_chat = open_chat
        sidebar = self._sidebar
        sidebar.search_requested.connect(lambda query: self.show())
        sidebar.search_ended.connect(self.show)
        sidebar.rename_requested.connect(self.rename)
        sidebar.pin_requested.connect(self.pin)
        sidebar.delete_requested.connect(self.delete)
        sidebar.stop_requested.connect(self.stop)
        sidebar.list.move_requested.connect(self.move)
        page.names_changed.connect(self.show)
        answering.answer_finished.connect(lambda turn_id: self._mark_busy())
        self._undoable: list[str] = []
        self._offered = ""  # the last notice with Undo
        self._revert: Callable[[], object] | None = None  # undoes what that names, if no deleted chat
        self._left: dict[str, str] = {}  # by deleted project, the chat of it that was open
        self._chats.purge_old()

    def show(self) -> None:
        opened = self._chats.open
        rows = [self._row(each) for each in self._chats.listed()]
        self._sidebar.set_projects(self._project_rows(rows, opened))
        if self._sidebar.searching:
            self._sidebar.set_results(self._found(self._sidebar.searching), opened.id)
        else:
            self._sidebar.set_chats(rows, opened.id)
        self._mark_busy()
        self.listed.emit()

    def _project_rows(self, chats: list[ChatRow], opened: Conversation) -> list[ProjectRow]:
        counts = Counter(row.project for row in chats)
        has_row = any(row.id == opened.id for row in chats)
        return [
            ProjectRow(
                each.id,
                each.name,
                counts[each.id],
                each.folded,
                current=opened.project == each.id and (each.folded or not has_row),
            )
            for each in self._chats.projects.listed()
        ]

    def _mark_busy(self) -> None:
        running = self._answering.running
        if running:
            self._sidebar.list.set_busy(running.chat_id, self._chats.summary(running.chat_id).project)
        else:
            self._sidebar.list.set_busy("")

    def stop(self, row_id: str) -> None:
        """Stop the answer of this chat, or of a chat of this project, if it is running."""
        running = self._answering.running
        if running and row_id in (running.chat_id, self._chats.summary(running.chat_id).project):
            self.stop_requested.emit()

    def rename(self, chat_id: str, name: str) -> None:
        """Sets the title of a chat; empty restores the title made from its first question."""
        chat, name = self._chats.get(chat_id), well_formed(name)
        if name != chat.title:
            self._chats.keep(chat.renamed(name))
            self._page.show_names()

    def pin(self, chat_id: str, pinned: bool) -> None:
        """Pin a chat to the top of the list, or unpin it."""
        self._chats.keep(structs.replace(self._chats.get(chat_id), pinned=pinned))
        self.show()

    def move(self, chat_id: str, project_id: str) -> None:
        """Move a chat to a project, or out of its project if `project_id` is empty, and offer Undo."""
        chat = self._chats.get(chat_id)
        before, project = self._chats.projects.find(chat.project), self._chats.projects.find(project_id)
        if project == before:
            return
        self._put(chat_id, project_id)
        text = strings.moved(chat.title, project.name if project else "")
        self.offer_undo(text, lambda: self._put(chat_id, before.id if before else ""))

    def _put(self, chat_id: str, project_id: str) -> None:
        self._chats.keep(self._chats.get(chat_id).in_project(project_id))
        self.show_projects()

    def show_projects(self) -> None:
        """Show the list, and the title of a new chat, which names its project."""
        self._page.show_names()

    def offer_undo(self, text: str, revert: Callable[[], object]) -> None:
        """Report an action with Undo, which calls `revert`."""
        self._forget_undo()
        self._revert = revert
        self._offer(text)
        self.listed.emit()

    @property
    def can_undo_delete(self) -> bool:
        """Whether a chat or a project can be restored."""
        return self._chats.has_deleted or self._chats.projects.last_deleted() is not None

    def delete(self, chat_id: str) -> None:
        """Delete a chat and offer Undo."""
        running = self._answering.running
        if running and running.chat_id == chat_id:
            self.stop_requested.emit()
        if self._notice.text != self._offered:
            self._undoable = []  # its notice has gone
        self._take_from_list(self._chats.get(chat_id).with_deleted(self._chats.steady_now()))
        self._revert = None
        self._undoable.append(chat_id)
        titles = [each.title for each in self._chats.deleted() if each.id in self._undoable]
        if titles:
            self._offer(strings.deleted(titles))

    def undo(self) -> None:
        """Undo the deletion that the last notice named, or else the last one, of a chat or a project."""
        last = next(iter(self._chats.deleted()), None)
        project = self._chats.projects.last_deleted(last.deleted if last else None)
        if project and not self._undoable:
            self._forget_undo()
            self._restore_project(project.id)
            return
        back = self._undoable or ([last.id] if last else [])
        self._forget_undo()
        for chat_id in back:
            self._chats.restore(chat_id)
        if len(back) == 1:
            self.open_chat(back[0])
        self.show()

    def restore(self, chat_id: str) -> None:
        self._undoable, self._revert = [chat_id], None
        self.undo()

    def delete_project(self, project_id: str, *, with_chats: bool) -> None:
        """Delete a project, and its chats if `with_chats`, and offer Undo."""
        projects, opened = self._chats.projects, self._chats.open
        project = projects.find(project_id)
        if project is None:
            return
        running = self._answering.running
        if with_chats and running and self._chats.get(running.chat_id).project == project_id:
            self.stop_requested.emit()
        projects.delete(project_id, with_chats=with_chats)
        leaves = with_chats and opened.project == project_id
        if leaves:
            self._left[project_id] = opened.id
            self.open_chat(next((each.id for each in self._chats.listed()), ""))
        self.show_projects()
        self.offer_undo(strings.deleted([project.name]), lambda: self._restore_project(project_id))

    def _restore_project(self, project_id: str) -> None:
        self._chats.projects.restore(project_id)
        left = self._left.pop(project_id, "")
        if any(each.id == left for each in self._chats.listed()):
            self.open_chat(left)
        self.show_projects()

    def erase(self, chat_id: str) -> None:
        """Erase a deleted chat. Ignored while it is being answered."""
        running = self._answering.running
        if running is None or running.chat_id != chat_id:
            self._undoable = [each for each in self._undoable if each != chat_id]
            self._chats.purge(chat_id)
            self.listed.emit()

    def _take_from_list(self, chat: Conversation) -> None:
        """Save `chat`, which leaves the list; if it is open, open its neighbour."""
        listed = [each.id for each in self._chats.listed()]
        self._chats.keep(chat)
        if chat.id == self._chats.open.id:
            index = listed.index(chat.id) if chat.id in listed else 0
            others = [each for each in listed if each != chat.id]
            self.open_chat(others[min(index, len(others) - 1)] if others else "")
        else:
            self.show()

    def _undo_shown(self) -> None:
        if revert := self._revert:
            self._forget_undo()
            revert()
        else:
            self.undo()

    def _offer(self, text: str) -> None:
        self._offered = text
        self._notice.show_notice(text, strings.UNDO, self._undo_shown, kind="done")

    def _forget_undo(self) -> None:
        self._undoable = []
        self._revert = None
        if self._notice.text == self._offered:
            self._notice.clear()

    def _found(self, query: str) -> list[ChatRow]:
        try:
            hits = self._chats.search(query)
        except RequestError as error:
            self._app.report(error)
            return []
        rows = []
        for hit in hits:
            head = self._row(self._chats.summary(hit.chat_id))
            rows.append(replace(head, passage=hit.passage, marks=hit.marks, turn_id=hit.turn_id))
        return rows

    def _row(self, head: Summary) -> ChatRow:
        project = head.project if self._chats.projects.find(head.project) else ""
        return chat_row(head, project)
