"""Editing: a message that was sent long ago in the composer once more, to be sent in other words.

What was being written before waits as the chat's draft and comes back afterwards.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.controllers.chat import strings
from app.controllers.chat.chat_page import ChatPage
from app.controllers.views import Views
from app.session.chats.chats import Chats


class Editing(QObject):
    """`turn_id` is the turn whose question is edited, empty while none is."""

    def __init__(self, views: Views, chats: Chats, page: ChatPage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._page = page
        self.turn_id = ""
        views.editing_bar.cancel_requested.connect(self.cancel)
        page.chat_shown.connect(self._end)

    def begin(self, turn_id: str) -> None:
        """Put the question of `turn_id` of the open chat into the composer."""
        chat = self._chats.open
        self._page.keep_draft()
        self._page.set_drafting(False)
        self.turn_id = turn_id
        self._views.composer.set_message(chat.turn(turn_id).user)
        self._page.show_context(turn_id)
        is_last = turn_id == chat.turns[-1].id
        self._views.editing_bar.show_text(strings.EDITING if is_last else strings.EDITING_EARLIER)
        self._views.composer.edit.setFocus()

    def cancel(self) -> None:
        """Bring the draft back."""
        if self.turn_id:
            self._page.show_context()
            self._views.composer.set_message(self._chats.open.draft)
            self._end()

    def finish(self) -> str:
        """The turn that is being edited, if any; it is sent now."""
        turn_id = self.turn_id
        self.cancel()
        return turn_id

    def _end(self) -> None:
        self.turn_id = ""
        self._views.editing_bar.hide()
        self._page.set_drafting(True)
