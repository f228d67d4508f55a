"""ChatPage: shows the open chat: transcript, draft, figures and title.

Everything is built from the stored chat. The draft is stored 0.3 s after the last change, so it survives
switching chats and a crash.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat import strings as chat_strings
from app.chat.reading_map import passages_of, skipped_in_answer
from app.controllers.chat import strings
from app.controllers.chat.context_meter import ContextMeter
from app.controllers.views import Views
from app.panels import strings as panels_strings
from app.session.chats.chats import Chats
from app.session.chats.conversation import Turn
from app.session.chats.reading import documents
from core.events import Message

_DRAFT_AFTER_MS = 300


class ChatPage(QObject):
    """The page of the chat that is open in `chats`."""

    chat_shown = Signal()  # another chat, or the same one rebuilt
    turn_added = Signal()  # or replaced by another version
    names_changed = Signal()  # titles, or the list of chats

    def __init__(
        self, views: Views, chats: Chats, meter: ContextMeter, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._meter = meter
        self._drafting = True
        self._draft_timer = QTimer(self, interval=_DRAFT_AFTER_MS, singleShot=True)
        self._draft_timer.timeout.connect(self._store_draft)
        views.composer.draft_changed.connect(self._draft_timer.start)

    def keep_draft(self) -> None:
        """Store an answer that is being edited as a version, and the composer's content as the draft."""
        self._views.transcript.save_edit()
        self._store_draft()

    def _store_draft(self) -> None:
        """Store the composer's content as the chat's draft, unless a sent message is edited."""
        self._draft_timer.stop()
        composer, chat = self._views.composer, self._chats.open
        draft = Message("user", composer.text, composer.attachments)
        if self._drafting and draft != chat.draft:
            self._chats.keep(chat.with_draft(draft))

    def set_drafting(self, drafting: bool) -> None:
        """Sets whether the composer holds the chat's draft, or a sent message that is edited."""
        self._drafting = drafting

    def show(self) -> None:
        chat = self._chats.open
        self.show_transcript()
        self._views.composer.set_message(chat.draft)
        self._show_figures()
        self._views.first_page.scroll_to_top()
        self._views.transcript.finder.forget()
        self._views.document.finder.forget()
        self.show_kind()
        self.show_names()
        self.chat_shown.emit()

    def show_version(self, shown_before: str, turn: Turn) -> None:
        """Show the stored `turn` in place of its version `shown_before`."""
        self._replace_turn(shown_before, turn)
        self._show_figures()
        self.show_names()
        self.turn_added.emit()

    def _show_figures(self) -> None:
        """Show the figures of the last answer."""
        chat = self._chats.open
        self._views.strip.reset()
        last = chat.turns[-1].answer if chat.turns else None
        if last and last.finished:
            self._views.strip.show_stats(last.finished.stats)
        self._views.legend.show_sources(last.tokens if last else ())
        self.show_context()

    def show_context(self, without: str = "") -> None:
        """Show the used context, without `without` and later turns, which an edited message replaces."""
        chat = self._chats.open
        turns = chat.upto(without)[:-1] if without else chat.turns
        last = turns[-1].answer.finished if turns else None
        used_tokens = chat.context_used_tokens
        if without:
            used_tokens = last.stats.context_used_tokens if last else 0
        self._meter.show_used(used_tokens, skipped_in_answer(last.stats) if last else 0, _uncounted(turns))

    def show_transcript(self) -> None:
        self._views.transcript.show_turns(self._chats.open.turns, self._drafter)
        self.show_readings()

    def restart_turn(self, shown_before: str, turn: Turn) -> None:
        """Replace the last turn `shown_before` by `turn`, whose answer is being generated, and follow it."""
        self._replace_turn(shown_before, turn)
        self._views.transcript.scroll_to_end()

    def _replace_turn(self, shown_before: str, turn: Turn) -> None:
        self._views.transcript.replace_turn(shown_before, turn, self._drafter)
        self.show_readings()

    @property
    def _drafter(self) -> str:
        return self._views.inspector.settings.drafting.drafter

    def show_readings(self) -> None:
        """Show on each attachment which passages were read for the newest finished answer."""
        for document in documents(self._chats.open):
            reading = document.reading
            if reading is not None and self._chats.open.turn(document.answered_by).answer.over:
                passages = passages_of(reading, document.source)
                self._views.transcript.show_passages(document.turn_id, document.index, passages)

    def add_turn(self, turn: Turn) -> None:
        """Append a question and an empty answer to the transcript."""
        self._views.transcript.add_user(turn.id, turn.user)
        self._views.transcript.begin_answer(turn.id, self._drafter)
        self.turn_added.emit()

    def show_kind(self) -> None:
        """Show the first page for an empty chat, otherwise the transcript."""
        empty = not self._chats.open.turns
        self._views.show_first_page(empty)
        self._views.composer.set_placeholder(chat_strings.ASK_FIRST if empty else strings.ASK_NEXT)

    def show_names(self) -> None:
        """Show the title in the header, and emit `names_changed`."""
        chat = self._chats.open
        project = self._chats.projects.find(chat.project)
        new = panels_strings.new_chat_in(project.name) if project else panels_strings.NEW_CHAT
        self._views.header.set_title(chat.title or new)
        self.names_changed.emit()


def _uncounted(turns: Sequence[Turn]) -> str:
    """The text of the imported turns at the end, edited or not, whose tokens are in no answer's figures."""
    words: list[str] = []
    for turn in reversed(turns):
        if turn.answer.status not in ("imported", "edited") or turn.answer.finished is not None:
            break
        attached = (attachment.text for attachment in turn.user.attachments)
        words.append("\n\n".join((*attached, turn.user.content, turn.answer.text)))
    return "\n\n".join(reversed(words))
