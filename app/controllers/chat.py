"""ChatController: opens, creates and branches chats, and owns their controllers; DocumentController."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from PySide6.QtCore import QObject, Signal

from app.chat.reading_map import read_so_far
from app.chat.sources import Source
from app.controllers import strings
from app.controllers.answering import AnswerController
from app.controllers.app import App
from app.controllers.chat_list import ChatListController
from app.controllers.chat_settings import ChatSettings
from app.controllers.importing import Importing
from app.controllers.page import ChatPage
from app.controllers.saving import Saving
from app.controllers.transfer import Transfer
from app.session.chats.conversation import Conversation, Document, documents, merged
from app.session.origins import ChatSource
from core.errors import RequestError
from core.events import Passage, PrefillProgress
from core.origins import Place


class ChatController(QObject):
    """Call `show()` once all signals are connected, and `leave()` when the window closes."""

    changed = Signal()  # the open chat, its turns, or the list of chats
    document_requested = Signal()  # open the Document tab

    def __init__(
        self, app: App, page: ChatPage, answering: AnswerController, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._views = views = app.views
        self._chats = app.chats
        self._page = page
        self.settings = ChatSettings(app, self)
        self.listing = ChatListController(app, page, answering, self._open, self)
        self.transfer = Transfer(app, self)
        self.importing = Importing(app, self.listing, self._refresh, self)
        self.saving = Saving(app.trouble, app.chats, app.home, self)
        self.documents = DocumentController(app, page, answering, self.document_requested.emit, self)
        for changed in (page.chat_shown, page.turn_added, self.listing.listed):
            changed.connect(self.changed)
        for panel in (views.sidebar, views.header):
            panel.new_chat_button.clicked.connect(lambda: self.start())
        views.sidebar.chat_selected.connect(self._select_row)
        views.sidebar.export_requested.connect(self.transfer.export)
        views.sidebar.import_requested.connect(self.importing.choose)
        views.composer.import_requested.connect(self.importing.import_from)
        self.saving.chats_changed.connect(page.show_names)

    def show(self) -> None:
        self.settings.show()
        self._page.show()

    def start(self, project_id: str = "") -> None:
        """Open an empty chat, in a project if its id is given."""
        self._page.keep_draft()
        self._chats.start(project_id)
        self.show()
        self._views.composer.edit.setFocus()

    def move_to_new(self) -> None:
        """Move the message to a new chat of the same project, after the text of its composer."""
        composer = self._views.composer
        draft, paths = composer.draft, composer.chips.sources
        composer.clear()
        self.start(self._chats.open.project)
        composer.set_message(merged((composer.draft, draft)), (*composer.chips.sources, *paths))

    def select(self, chat_id: str) -> None:
        if chat_id != self._chats.open.id:
            self._page.keep_draft()
            try:
                self._chats.select(chat_id)
            except KeyError:  # another window deleted it permanently
                self._chats.refresh()
            except RequestError as error:  # no copy of the database has it whole
                self._app.trouble.show_request_error(error, "chat")
            self.show()

    def branch(self, turn_id: str) -> Conversation:
        """Open and return a new chat with the turns up to and including `turn_id`."""
        branched = self._chats.branch(self._page.keep_draft(turn_id), self._branch_name())
        self.show()
        return branched

    async def keep_pasted(self) -> None:
        """Keep pasted images that are being read; before `leave`."""
        await self._page.keep_pasted()

    def leave(self) -> None:
        """Save the draft and which chat is open, when the window closes."""
        self._page.keep_draft()
        self._app.preferences.change(open_chat=self._chats.open.id)

    def _branch_name(self) -> str:
        """The open chat's title with the first unused number."""
        title, taken = (
            self._chats.open.title,
            {each.title for each in self._chats.listed()},
        )
        return next(name for number in count(2) if (name := strings.branch_title(title, number)) not in taken)

    def _select_row(self, chat_id: str) -> None:
        """Open a chat from the sidebar; a search result scrolls to the matching turn."""
        self.select(chat_id)
        row = self._views.sidebar.list.row(chat_id)
        if row and row.turn_id:
            self._views.transcript.show_turn(row.turn_id)

    def _refresh(self) -> None:
        """Show the open chat again, after its turns were changed."""
        self._page.keep_draft()
        self.show()

    def _open(self, chat_id: str) -> None:
        """Open a chat, or a new one if `chat_id` is empty."""
        if chat_id:
            self.select(chat_id)
        else:
            self.start()


class DocumentController(QObject):
    """Shows the open chat's documents in the Document tab, and rebuilds it whenever they change.

    `show_tab` opens the tab.
    """

    def __init__(
        self,
        app: App,
        page: ChatPage,
        answering: AnswerController,
        show_tab: Callable[[], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = app.views
        self._chats = app.chats
        self._answering = answering
        self._show_tab = show_tab
        self._turn_id = ""  # the turn whose answer is selected; empty: the last one
        self._with_draft = False  # a document of the draft was opened
        for shown in (page.chat_shown, page.turn_added):
            shown.connect(lambda: self.select_answer(""))
        app.views.composer.chips.changed.connect(self._draft_changed)
        answering.map_changed.connect(self.refresh)
        answering.prefill_progressed.connect(self._show_progress)
        answering.answer_finished.connect(lambda turn_id: self.refresh())
        self.refresh()

    def refresh(self) -> None:
        """Show the documents of the stored chat, and how far a running prefill has read them."""
        chat = self._chats.open
        is_earlier = chat.has(self._turn_id) and self._turn_id != chat.turns[-1].id
        turn_id = self._turn_id if is_earlier else ""
        drafted = self._drafted() if self._with_draft else ()
        read_tokens = None if is_earlier else self._answering.read_tokens
        self._views.document.show_documents((*documents(chat, turn_id), *drafted), read_tokens)
        self._views.document.show_answer(chat.turn(turn_id).user.content if is_earlier else "")

    def select_answer(self, turn_id: str) -> None:
        """Show which passages had been read for the answer of `turn_id`; of the last one if empty."""
        if turn_id and turn_id == self._turn_id:
            return
        self._turn_id, self._with_draft = turn_id, False
        self.refresh()

    def open_attachment(self, turn_id: str, index: int) -> None:
        """Show attachment `index` of the message of `turn_id`, or of the draft if that is empty."""
        if not turn_id:
            self._with_draft = True
            self.refresh()
        for document in (*documents(self._chats.open), *self._drafted()):
            if (document.turn_id, document.index) == (turn_id, index):
                self._show_tab()
                self._views.document.choose(document.source)

    def open_passage(self, passage: Passage) -> None:
        """Show a passage; one outside the documents is ignored."""
        if passage.source >= 0:
            self._show_tab()
            self._views.document.choose(passage.source, passage.first_char)

    def open_source(self, turn_id: str, source: Source) -> None:
        self.select_answer(turn_id)
        self._show_tab()
        self._views.document.show_source(source.source, source.first, source.last)

    def open_place(self, turn_id: str, source: ChatSource, place: Place) -> None:
        """Show a place that an answer was copied from: in the Document tab, or the message that has it."""
        if source.document < 0:
            self._views.transcript.show_turn(source.turn_id)
            return
        self.select_answer(turn_id)
        self._show_tab()
        self._views.document.show_source(source.document, place.start, place.end)

    def _drafted(self) -> tuple[Document, ...]:
        """The documents of the draft, with the numbers that they will have in the chat."""
        sent = len(documents(self._chats.open))
        attached = enumerate(self._views.composer.attachments)
        return tuple(Document("", index, sent + index, attachment) for index, attachment in attached)

    def _draft_changed(self) -> None:
        if self._with_draft:
            self.refresh()

    def _show_progress(self, progress: PrefillProgress) -> None:
        if progress.phase == "reading":
            self._views.document.show_read(read_so_far(progress))
