"""DocumentController: shows the open chat's documents in the Document tab."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.chat.reading_map import read_so_far
from app.chat.sources import Source
from app.controllers.chat.page import AnswerController, ChatPage
from app.controllers.views import Views
from app.session.chats.chats import Chats
from app.session.chats.reading import documents
from core.events import Passage, PrefillProgress


class DocumentController(QObject):
    """Rebuilds the tab from the stored chat whenever its documents change. `show_tab` opens the tab."""

    def __init__(
        self,
        views: Views,
        chats: Chats,
        page: ChatPage,
        answering: AnswerController,
        show_tab: Callable[[], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._show_tab = show_tab
        self._turn_id = ""  # the turn whose answer is selected; empty: the last one
        for shown in (page.chat_shown, page.turn_added):
            shown.connect(lambda: self.select_answer(""))
        answering.map_changed.connect(lambda: self.refresh(0))
        answering.prefill_progressed.connect(self._show_progress)
        answering.answer_finished.connect(lambda turn_id: self.refresh())
        self.refresh()

    def refresh(self, read_tokens: int | None = None) -> None:
        """Show the documents of the stored chat; `read_tokens` of the running prefill, None if it is over."""
        chat = self._chats.open
        is_earlier = chat.has(self._turn_id) and self._turn_id != chat.turns[-1].id
        turn_id = self._turn_id if is_earlier else ""
        self._views.document.show_documents(documents(chat, turn_id), read_tokens)
        self._views.document.show_answer(chat.turn(turn_id).user.content if is_earlier else "")

    def select_answer(self, turn_id: str) -> None:
        """Show which passages had been read for the answer of `turn_id`; of the last one if empty."""
        if turn_id and turn_id == self._turn_id:
            return
        self._turn_id = turn_id
        self.refresh()

    def open_attachment(self, turn_id: str, index: int) -> None:
        """Show attachment `index` of the message of `turn_id`."""
        for document in documents(self._chats.open):
            if (document.turn_id, document.index) == (turn_id, index):
                self._show_tab()
                self._views.document.choose(document.source)

    def open_passage(self, passage: Passage) -> None:
        """Show a passage; one outside the documents is ignored."""
        if passage.source >= 0:
            self._show_tab()
            self._views.document.choose(passage.source, passage.first_char)

    def open_source(self, turn_id: str, source: Source) -> None:
        """Show a source of the answer of `turn_id`."""
        self.select_answer(turn_id)
        self._show_tab()
        self._views.document.show_source(source.source, source.first, source.last)

    def _show_progress(self, progress: PrefillProgress) -> None:
        if progress.phase == "reading":
            self._views.document.show_read(read_so_far(progress))
