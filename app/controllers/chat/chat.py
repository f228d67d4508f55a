"""ChatController: the open chat, and the ways to all others: the list, files, what is kept on the disk."""

from __future__ import annotations

from itertools import count

from PySide6.QtCore import QObject, Signal

from app.controllers.chat import strings
from app.controllers.chat.answer import AnswerController
from app.controllers.chat.chat_list import ChatListController
from app.controllers.chat.chat_page import ChatPage
from app.controllers.chat.chat_settings import ChatSettings, PresetFiles
from app.controllers.chat.context_meter import ContextMeter
from app.controllers.chat.document import DocumentController
from app.controllers.chat.saving import Saving
from app.controllers.chat.transfer import Transfer
from app.controllers.trouble import TroubleController
from app.controllers.views import Views
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.store.home import Home
from core.events import Message


class ChatController(QObject):
    """`show()` after it is wired; `leave()` when the window closes."""

    changed = Signal()  # another chat, another turn, another list of chats
    document_requested = Signal()  # the Document tab is to be seen

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
        self.settings = ChatSettings(views.inspector, chats, home.preferences, self)
        self.listing = ChatListController(views, chats, page, answering, self)
        preset_files = PresetFiles(views.inspector.presets, views.notice_bar, self.settings.presets, self)
        self.transfer = Transfer(views.sidebar, views.notice_bar, chats, self)
        self.saving = Saving(trouble, chats, home, self)
        reading = DocumentController(views, chats, page, answering, self)
        reading.panel_requested.connect(self.document_requested)
        for room in (self.listing, self.transfer, self.settings, preset_files):
            room.failed.connect(lambda error: trouble.show_request_error(error, "chats"))
        for told in (page.chat_shown, page.turn_added, self.listing.listed):
            told.connect(self.changed)
        meter.estimated.connect(views.inspector.show_estimate)
        self._wire()

    def show(self) -> None:
        """Everything of the open chat."""
        self.settings.show()  # before the page, which asks which drafter writes
        self._page.show()
        self._meter.set_reading(self._views.inspector.settings.prefill)

    def start(self) -> None:
        """Open an empty chat."""
        self._page.leave()
        self._chats.start()
        self.show()
        self._views.composer.edit.setFocus()

    def move_to_new(self) -> None:
        """Open an empty chat and take along what is being written."""
        composer = self._views.composer
        draft = Message("user", composer.text, composer.attachments)
        composer.clear()
        self.start()
        composer.set_message(draft)

    def select(self, chat_id: str) -> None:
        """Open another chat."""
        if chat_id != self._chats.open.id:
            self._page.leave()
            self._chats.select(chat_id)
            self.show()

    def branch(self, turn_id: str) -> Conversation:
        """Open a new chat that holds what the open one holds up to and with `turn_id`."""
        self._page.leave()
        branched = self._chats.branch(turn_id, self._branch_name())
        self.show()
        return branched

    def leave(self) -> None:
        """The window closes: what is written and what is open are remembered."""
        self._page.leave()
        self._home.preferences.change(open_chat=self._chats.open.id)

    def _branch_name(self) -> str:
        """The open chat's title with the first number that is free."""
        title, taken = (
            self._chats.open.title,
            {each.title for each in (*self._chats.listed(), *self._chats.archived())},
        )
        return next(name for number in count(2) if (name := strings.branch_title(title, number)) not in taken)

    def _choose(self, chat_id: str) -> None:
        """A row of the sidebar; one that a search found leads to where the words are."""
        self.select(chat_id)
        row = self._views.sidebar.list.row(chat_id)
        if row and row.turn_id:
            self._views.transcript.show_turn(row.turn_id)

    def _open(self, chat_id: str) -> None:
        """What the list asks for: a chat, or a new one."""
        if chat_id:
            self.select(chat_id)
        else:
            self.start()

    def _branch_to_write(self, turn_id: str) -> None:
        self.branch(turn_id)
        self._views.composer.edit.setFocus()

    def _wire(self) -> None:
        views = self._views
        views.composer.new_chat_requested.connect(self.move_to_new)
        views.sidebar.new_chat_requested.connect(self.start)
        views.header.new_chat_requested.connect(self.start)
        views.sidebar.chat_selected.connect(self._choose)
        views.sidebar.export_requested.connect(self.transfer.export)
        views.sidebar.import_requested.connect(self.transfer.import_files)
        views.transcript.branch_requested.connect(self._branch_to_write)
        views.inspector.settings_changed.connect(lambda settings: self._meter.set_reading(settings.prefill))
        self.transfer.imported.connect(self.select)
        self.listing.open_requested.connect(self._open)
        self.saving.chats_changed.connect(self.show)
