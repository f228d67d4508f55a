"""ChatController: opens, creates and branches chats, and owns the other controllers of the chat."""

from __future__ import annotations

from itertools import count

from PySide6.QtCore import QObject, Signal

from app.controllers.chat import strings
from app.controllers.chat.chat_list import ChatListController
from app.controllers.chat.chat_settings import ChatSettings, PresetFiles
from app.controllers.chat.context_meter import ContextMeter
from app.controllers.chat.document import DocumentController
from app.controllers.chat.importing import Importing
from app.controllers.chat.page import AnswerController, ChatPage
from app.controllers.chat.saving import Saving
from app.controllers.chat.transfer import Transfer
from app.controllers.trouble import TroubleController
from app.controllers.views import Views
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.store.library import Home
from core.errors import RequestError
from core.events import Message


class ChatController(QObject):
    """Call `show()` once all signals are connected, and `leave()` when the window closes."""

    changed = Signal()  # the open chat, its turns, or the list of chats
    document_requested = Signal()  # open the Document tab

    def __init__(
        self,
        views: Views,
        chats: Chats,
        home: Home,
        page: ChatPage,
        meter: ContextMeter,
        answering: AnswerController,
        trouble: TroubleController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._home = home
        self._page = page
        self._meter = meter

        def report(error: RequestError) -> None:
            trouble.show_request_error(error, "chats")

        self.settings = ChatSettings(views.inspector, chats, home.preferences, report, self)
        self.listing = ChatListController(views, chats, page, answering, self._open, report, self)
        PresetFiles(views.inspector.presets, views.notice_bar, self.settings.presets, report, self)
        self.transfer = Transfer(views.sidebar, views.notice_bar, chats, report, self)
        self.importing = Importing(
            views.sidebar,
            views.notice_bar,
            chats,
            self.select,
            self._refresh,
            self.listing.show,
            self.listing.delete,
            report,
            home.library.when_kept,
            self,
        )
        self.saving = Saving(trouble, chats, home, self)
        self.documents = DocumentController(views, chats, page, answering, self.document_requested.emit, self)
        for changed in (page.chat_shown, page.turn_added, self.listing.listed):
            changed.connect(self.changed)
        for new_chat in (views.sidebar.new_chat_requested, views.header.new_chat_requested):
            new_chat.connect(self.start)
        views.sidebar.chat_selected.connect(self._select_row)
        views.sidebar.export_requested.connect(self.transfer.export)
        views.sidebar.import_requested.connect(self.importing.choose)
        views.composer.import_requested.connect(self.importing.import_from)
        views.inspector.settings_changed.connect(lambda settings: self._meter.set_reading(settings.prefill))
        meter.estimated.connect(views.inspector.show_estimate)
        self.saving.chats_changed.connect(self.show)

    def show(self) -> None:
        self.settings.show()  # before the page, which needs the drafter
        self._page.show()
        self._meter.set_reading(self._views.inspector.settings.prefill)

    def start(self, project_id: str = "") -> None:
        """Open an empty chat, in a project if its id is given."""
        self._page.keep_draft()
        self._chats.start(project_id)
        self.show()
        self._views.composer.edit.setFocus()

    def move_to_new(self) -> None:
        """Open an empty chat and move the draft there."""
        composer = self._views.composer
        draft = Message("user", composer.text, composer.attachments)
        composer.clear()
        self.start()
        composer.set_message(draft)

    def select(self, chat_id: str) -> None:
        if chat_id != self._chats.open.id:
            self._page.keep_draft()
            self._chats.select(chat_id)
            self.show()

    def branch(self, turn_id: str) -> Conversation:
        """Open and return a new chat with the turns up to and including `turn_id`."""
        place = len(self._chats.open.upto(turn_id)) - 1
        self._page.keep_draft()  # which may replace the turn by another version
        branched = self._chats.branch(self._chats.open.turns[place].id, self._branch_name())
        self.show()
        return branched

    def leave(self) -> None:
        """Save the draft and which chat is open, when the window closes."""
        self._page.keep_draft()
        self._home.preferences.change(open_chat=self._chats.open.id)

    def _branch_name(self) -> str:
        """The open chat's title with the first unused number."""
        title, taken = (
            self._chats.open.title,
            {each.title for each in (*self._chats.listed(), *self._chats.archived())},
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
