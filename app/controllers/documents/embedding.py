"""EmbeddingController: attached documents are embedded by the worker before they are asked about.

Each document of the composer is sent once. Its chip shows the progress of one that takes long; removing the
chip stops it. What a chat or the library erases is erased from the worker's disk, too; while there is no
worker, that waits for the next.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from PySide6.QtCore import QObject

from app.controllers.views import Views
from app.session.library.document import digest_of
from app.session.turn.intents import AskTables
from app.session.turn.link_state import Link, Phase
from core.events import Attachment, DocumentEmbedded, EmbedDocument, EraseVectors, StopEmbedding

_SPOKEN = frozenset(Phase) - {Phase.STARTING, Phase.DEAD, Phase.CLOSED}


class EmbeddingController(QObject):
    """`take` steps the machine; `follow()` after each of its steps. `is_kept`: whether a chat or the library
    has a text that is removed from the composer."""

    def __init__(
        self,
        views: Views,
        take: Callable[[AskTables], None],
        is_kept: Callable[[str], bool],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._take = take
        self._is_kept = is_kept
        self._spoken = False
        self._numbers = count(1)
        self._requests: dict[str, str] = {}  # the request of each text under way
        self._fractions: dict[str, float] = {}
        self._done: set[str] = set()  # digests
        self._seen: tuple[str, ...] = ()
        self._erasing: list[str] = []
        views.composer.draft_changed.connect(self.refresh)
        views.composer.attachment_removed.connect(self._stop)
        views.inspector.settings_changed.connect(lambda settings: self.refresh())

    def follow(self, link: Link) -> None:
        """The worker, its model or its turn changed."""
        spoken, self._spoken = self._spoken, link.phase in _SPOKEN
        if self._spoken and not spoken:
            self._send_erasures()
            self._seen = ()
            self.refresh()

    def forget(self) -> None:
        """The worker is gone, and with it what it was asked."""
        self._spoken, self._seen = False, ()
        self._requests.clear()
        self._fractions.clear()
        self._show()

    def refresh(self) -> None:
        """Embed the composer's documents, as far as the settings compare meaning."""
        wanted = self._views.inspector.settings.prefill.compares_meaning
        texts = tuple(each.text for each in self._views.composer.attachments) if wanted else ()
        if not self._spoken or texts == self._seen:
            return
        self._seen = texts
        if not wanted:
            for text in list(self._requests):
                self._stop_request(text)
        for text in texts:
            if text not in self._requests and _digest(text) not in self._done:
                self._requests[text] = f"embed-{next(self._numbers)}"
                self._take(AskTables(EmbedDocument(self._requests[text], text)))
        self._show()

    def on_embedded(self, event: DocumentEmbedded) -> None:
        """Progress of a document."""
        text = next((text for text, request in self._requests.items() if request == event.request), None)
        if text is None:  # it was stopped meanwhile
            return
        if event.state == "running":
            self._fractions[text] = event.fraction
        else:
            del self._requests[text]
            self._fractions.pop(text, None)
            if event.state == "done":
                self._done.add(_digest(text))
        self._show()

    def erase(self, text: str) -> None:
        """Erase what the worker keeps of `text`."""
        digest = _digest(text)
        self._done.discard(digest)
        self._erasing.append(digest)
        if self._spoken:
            self._send_erasures()

    def _stop(self, attachment: Attachment) -> None:
        """A person removed the chip."""
        text = attachment.text
        if any(each.text == text for each in self._views.composer.attachments):
            return
        if text in self._requests:
            self._stop_request(text)
        if not self._is_kept(text):
            self.erase(text)

    def _stop_request(self, text: str) -> None:
        self._fractions.pop(text, None)
        self._take(AskTables(StopEmbedding(self._requests.pop(text))))

    def _send_erasures(self) -> None:
        if self._erasing:
            digests, self._erasing = tuple(dict.fromkeys(self._erasing)), []
            self._take(AskTables(EraseVectors(digests)))

    def _show(self) -> None:
        self._views.composer.show_embedding(self._fractions.get)


def _digest(text: str) -> str:
    """The worker's name of a text, which it takes without white space at its ends, as prompts do."""
    return digest_of(text.strip())
