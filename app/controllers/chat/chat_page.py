"""ChatPage: the open chat on the screen: transcript, draft, figures, title. Leaving one, showing another.

What is shown is always made from the record. What is written and not sent goes into the record a
moment after the last key, so that it is there in any chat and after any end.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat import strings as composer_strings
from app.chat.reading_facts import skipped_places
from app.chat.reading_map import of_source
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
    """Of the chat that `chats` has open."""

    chat_shown = Signal()  # another chat, or the same one anew
    turn_added = Signal()  # or another version of one is shown
    names_changed = Signal()  # titles, or which chats there are

    def __init__(
        self, views: Views, chats: Chats, meter: ContextMeter, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._meter = meter
        self._drafting = True
        self._draft_timer = QTimer(self, interval=_DRAFT_AFTER_MS, singleShot=True)
        self._draft_timer.timeout.connect(self.keep_draft)
        views.composer.draft_changed.connect(self._draft_timer.start)

    def leave(self) -> None:
        """Another chat is about to be opened, or the window closed."""
        self.keep_draft()

    def keep_draft(self) -> None:
        """Put what is written in the composer on record, if it is a draft of this chat."""
        self._draft_timer.stop()
        composer, chat = self._views.composer, self._chats.open
        draft = Message("user", composer.text, composer.attachments)
        if self._drafting and draft != chat.draft:
            self._chats.keep(chat.with_draft(draft))

    def set_drafting(self, drafting: bool) -> None:
        """Whether what the composer holds is the chat's draft, or something sent long ago."""
        self._drafting = drafting

    def show(self) -> None:
        """Everything of the open chat."""
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
        """`turn`, which is on record, in the place of its version `shown_before`."""
        drafter = self._views.inspector.settings.drafting.drafter
        self._views.transcript.show_version(shown_before, turn, drafter)
        self.show_readings()
        self._show_figures()
        self.show_names()
        self.turn_added.emit()

    def _show_figures(self) -> None:
        """Those of the last answer."""
        chat = self._chats.open
        self._views.strip.reset()
        last = chat.turns[-1].answer if chat.turns else None
        if last and last.finished:
            self._views.strip.show_stats(last.finished.stats)
        self.show_context()

    def show_context(self, without: str = "") -> None:
        """What the open chat has in the context; `without` the turn whose question is just edited, and later
        ones: what is in the composer takes their place."""
        chat = self._chats.open
        turns = chat.upto(without)[:-1] if without else chat.turns
        last = turns[-1].answer.finished if turns else None
        used_tokens = chat.context_used_tokens
        if without:
            used_tokens = last.stats.context_used_tokens if last else 0
        self._meter.show_used(used_tokens, skipped_places(last.stats) if last else 0, _uncounted(turns))

    def show_transcript(self) -> None:
        """All its turns."""
        drafter = self._views.inspector.settings.drafting.drafter
        self._views.transcript.show_turns(self._chats.open.turns, drafter)
        self.show_readings()

    def show_readings(self) -> None:
        """On each attachment, what was read of it for the newest answer that is over."""
        for document in documents(self._chats.open):
            reading = document.reading
            if reading is not None and self._chats.open.turn(document.answered_by).answer.over:
                passages = of_source(reading, document.source)
                self._views.transcript.show_passages(document.turn_id, document.index, passages)

    def add_turn(self, turn: Turn) -> None:
        """A question at the end of the transcript, and controller for its answer."""
        self._views.transcript.add_user(turn.id, turn.user)
        self._views.transcript.begin_answer(turn.id, self._views.inspector.settings.drafting.drafter)
        self.turn_added.emit()

    def show_kind(self) -> None:
        """The first page while nothing was asked, the transcript from then on."""
        empty = not self._chats.open.turns
        self._views.show_first_page(empty)
        self._views.composer.set_placeholder(composer_strings.ASK_FIRST if empty else strings.ASK_NEXT)

    def show_names(self) -> None:
        """The title above; whoever lists chats hears of it."""
        self._views.header.set_title(self._chats.open.title or panels_strings.NEW_CHAT)
        self.names_changed.emit()


def _uncounted(turns: Sequence[Turn]) -> str:
    """The words of the imported turns at the end: no answer's figures count them."""
    words: list[str] = []
    for turn in reversed(turns):
        if turn.answer.status != "imported":
            break
        attached = (attachment.text for attachment in turn.user.attachments)
        words.append("\n\n".join((*attached, turn.user.content, turn.answer.text)))
    return "\n\n".join(reversed(words))
