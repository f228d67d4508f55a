"""ChatListController: the sidebar's chats: what is listed or found, renaming, pinning, archiving, deleting
and taking it back.

A deleted chat is marked and hidden at once. The undo bar brings it back for a few seconds, the list of
recently deleted chats for 30 days; then it goes for good. An archived chat stays, out of the list: a window
of its own has it, a search finds it, and while it is open it stands in the list under a title of its own.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.controllers.chat import strings
from app.controllers.chat.answer import AnswerController
from app.controllers.chat.chat_page import ChatPage
from app.controllers.views import Views
from app.panels.chats.chat_row import ChatRow
from app.session.chats.archive import Summary
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from core.errors import RequestError
from core.events.text import well_formed


class ChatListController(QObject):
    """Works on `chats`; opening and closing chats is the controller's, which hears the signals."""

    open_requested = Signal(str)  # chat id, empty for a new one
    stop_requested = Signal()
    listed = Signal()  # the chats, or which can be taken back
    failed = Signal(object)  # RequestError

    def __init__(
        self,
        views: Views,
        chats: Chats,
        page: ChatPage,
        answering: AnswerController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._sidebar = views.sidebar
        self._chats = chats
        self._page = page
        self._answering = answering
        sidebar = self._sidebar
        sidebar.search_requested.connect(lambda query: self.show())
        sidebar.search_ended.connect(self.show)
        sidebar.rename_requested.connect(self.rename)
        sidebar.pin_requested.connect(self.pin)
        sidebar.archive_requested.connect(self.archive)
        sidebar.delete_requested.connect(self.delete)
        sidebar.undo_bar.undo_requested.connect(self._undo_said)
        sidebar.undo_bar.expired.connect(self._forget_undo)
        page.names_changed.connect(self.show)
        answering.answer_finished.connect(lambda turn_id: self._mark_busy())
        self._undoable: list[str] = []
        self._just_archived = ""
        chats.purge_old()

    def show(self) -> None:
        """All chats, or those that the search finds."""
        if self._sidebar.searching:
            self._sidebar.set_results(self._found(self._sidebar.searching), self._chats.open.id)
        else:
            open_id = self._chats.open.id
            here = [each for each in self._chats.archived() if each.id == open_id]
            rows = [_row(each) for each in (*self._chats.listed(), *here)]
            self._sidebar.set_chats(rows, open_id)
        self._mark_busy()
        self.listed.emit()

    def _mark_busy(self) -> None:
        running = self._answering.running
        self._sidebar.list.set_busy(running.chat_id if running else "")

    def rename(self, chat_id: str, name: str) -> None:
        """Give a chat the title `name`; empty brings back the one from its first question."""
        chat, name = self._chats.get(chat_id), well_formed(name)
        if name != chat.title:
            self._chats.keep(chat.renamed(name))
            self._page.show_names()

    def pin(self, chat_id: str, pinned: bool) -> None:
        """Keep a chat above the others, or not."""
        self._chats.keep(self._chats.get(chat_id).with_pin(pinned))
        self.show()

    def archive(self, chat_id: str, archived: bool) -> None:
        """Keep a chat out of the list, and offer to take that back; or list it again."""
        if not archived:
            self._chats.keep(self._chats.get(chat_id).with_archived(None))
            self.show()
            return
        self._page.keep_draft()
        self._take_from_list(self._chats.get(chat_id).with_archived(self._chats.now()))
        self._forget_undo()
        self._just_archived = chat_id
        self._sidebar.undo_bar.show_done(strings.archived(self._chats.get(chat_id).title))

    def delete(self, chat_id: str) -> None:
        """Hide a chat and offer to take that back."""
        running = self._answering.running
        if running and running.chat_id == chat_id:
            self.stop_requested.emit()
        self._page.keep_draft()
        self._take_from_list(self._chats.get(chat_id).with_deleted(self._chats.now()))
        self._just_archived = ""
        self._undoable.append(chat_id)
        titles = [each.title for each in self._chats.deleted() if each.id in self._undoable]
        if titles:
            self._sidebar.undo_bar.show_done(strings.deleted(titles))

    def undo(self) -> None:
        """Bring back the chats that were just deleted, or else the one that was deleted last."""
        back = self._undoable or [each.id for each in self._chats.deleted()[:1]]
        self._forget_undo()
        for chat_id in back:
            self._chats.keep(self._chats.get(chat_id).with_deleted(None))
        if len(back) == 1:
            self.open_requested.emit(back[0])
        self.show()

    def restore(self, chat_id: str) -> None:
        """Bring back one of the deleted chats."""
        self._undoable = [chat_id]
        self.undo()

    def erase(self, chat_id: str) -> None:
        """One of the deleted chats goes for good, now; nothing happens while it is still being answered."""
        running = self._answering.running
        if running is None or running.chat_id != chat_id:
            self._undoable = [each for each in self._undoable if each != chat_id]
            self._chats.purge(chat_id)
            self.listed.emit()

    def _take_from_list(self, chat: Conversation) -> None:
        """Keep `chat`, which is listed no more; if it is the open one its neighbour is opened."""
        listed = [each.id for each in self._chats.listed()]
        self._chats.keep(chat)
        if chat.id == self._chats.open.id:
            place = listed.index(chat.id) if chat.id in listed else 0
            rest = [each for each in listed if each != chat.id]
            self.open_requested.emit(rest[min(place, len(rest) - 1)] if rest else "")
        else:
            self.show()

    def _undo_said(self) -> None:
        """What the undo bar speaks of."""
        if self._just_archived:
            chat_id = self._just_archived
            self._forget_undo()
            self.archive(chat_id, False)
            self.open_requested.emit(chat_id)
        else:
            self.undo()

    def _forget_undo(self) -> None:
        self._undoable = []
        self._just_archived = ""
        self._sidebar.undo_bar.clear()

    def _found(self, query: str) -> list[ChatRow]:
        try:
            hits = self._chats.search(query)
        except RequestError as error:
            self.failed.emit(error)
            return []
        rows = []
        for hit in hits:
            head = _row(self._chats.summary(hit.chat_id))
            rows.append(replace(head, passage=hit.passage, marks=hit.marks, turn_id=hit.turn_id))
        return rows


def _row(head: Summary) -> ChatRow:
    return ChatRow(head.id, head.title, head.when, head.pinned, archived=head.archived is not None)
