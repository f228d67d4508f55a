"""DocumentController: the open chat's documents in the Document tab, and the ways there from the
transcript."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.chat.reading_facts import read_now
from app.chat.sources import Source
from app.controllers.chat.answer import AnswerController
from app.controllers.chat.chat_page import ChatPage
from app.controllers.views import Views
from app.session.chats.chats import Chats
from app.session.chats.reading import documents
from core.events import Passage, PrefillProgress


class DocumentController(QObject):
    """Makes the tab anew from the record whenever that says something new about documents."""

    panel_requested = Signal()  # the Document tab is to be seen

    def __init__(
        self,
        views: Views,
        chats: Chats,
        page: ChatPage,
        answering: AnswerController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._upto = ""  # the turn whose answer is looked at; empty: the last
        views.transcript.attachment_opened.connect(self._open_attachment)
        views.transcript.place_chosen.connect(self._open_place)
        views.transcript.source_chosen.connect(self._open_source)
        views.transcript.answer_chosen.connect(self._look_at)
        for told in (page.chat_shown, page.turn_added):
            told.connect(lambda: self._look_at(""))
        answering.map_heard.connect(lambda: self.refresh(0))
        answering.reading_heard.connect(self._show_progress)
        answering.answer_finished.connect(lambda turn_id: self.refresh())
        self.refresh()

    def refresh(self, read_tokens: int | None = None) -> None:
        """The documents as the record has them."""
        chat = self._chats.open
        earlier = chat.has(self._upto) and self._upto != chat.turns[-1].id
        upto = self._upto if earlier else ""
        self._views.document.show_documents(documents(chat, upto), read_tokens)
        self._views.document.show_answer(chat.turn(upto).user.content if earlier else "")

    def _look_at(self, turn_id: str) -> None:
        """Show what had been read when that answer was."""
        if turn_id and turn_id == self._upto:
            return
        self._upto = turn_id
        self.refresh()

    def _show_progress(self, progress: PrefillProgress) -> None:
        if progress.phase == "reading":
            self._views.document.show_read(read_now(progress))

    def _open_attachment(self, turn_id: str, number: int) -> None:
        for document in documents(self._chats.open):
            if (document.turn_id, document.index) == (turn_id, number):
                self.panel_requested.emit()
                self._views.document.choose(document.source)

    def _open_place(self, passage: Passage) -> None:
        if passage.source >= 0:
            self.panel_requested.emit()
            self._views.document.choose(passage.source, passage.first_char)

    def _open_source(self, turn_id: str, source: Source) -> None:
        self._look_at(turn_id)
        self.panel_requested.emit()
        self._views.document.show_source(source.source, source.first, source.last)
