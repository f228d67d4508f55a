"""DocumentController: the open chat's documents in the Document tab, and the ways there from the
transcript."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.chat.reading.reading_facts import read_now
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
        views.transcript.attachment_opened.connect(self._open_attachment)
        views.transcript.place_chosen.connect(self._open_place)
        page.chat_shown.connect(self.refresh)
        page.turn_added.connect(self.refresh)
        answering.map_heard.connect(lambda: self.refresh(0))
        answering.reading_heard.connect(self._show_progress)
        answering.answer_finished.connect(lambda turn_id: self.refresh())
        self.refresh()

    def refresh(self, read_tokens: int | None = None) -> None:
        """The documents as the record has them."""
        self._views.document.show_documents(documents(self._chats.open), read_tokens)

    def _show_progress(self, progress: PrefillProgress) -> None:
        if progress.phase == "reading":
            self._views.document.show_read(read_now(progress))

    def _open_attachment(self, turn_id: str, number: int) -> None:
        for document in documents(self._chats.open):
            if (document.turn_id, document.index) == (turn_id, number):
                self._views.document.choose(document.source)
                self.panel_requested.emit()

    def _open_place(self, passage: Passage) -> None:
        if passage.source >= 0:
            self._views.document.choose(passage.source, passage.first_char)
            self.panel_requested.emit()
