"""What the worker keeps on disk for the window: vectors of documents, and saved caches of chats.

`EmbeddingController`: each document of the composer is embedded once, before a question is sent. Its chip
shows the progress of a slow one; removing the chip stops it. Searches by meaning embed missing texts and then
repeat. `SavedChatsController` tells the worker which chat is open.

What a chat or the library erases is also erased from the worker's disk (`Erasures`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from app.controllers.views import Views
from app.session.documents import digest_of
from app.session.turn import effects as fx
from app.session.turn.intents import AskTables
from app.session.turn.link_state import Link
from core.events import (
    Attachment,
    DocumentEmbedded,
    EmbedDocument,
    EraseChats,
    EraseVectors,
    FindSimilar,
    ListSavedChats,
    OpenChat,
    SavedChatsListed,
    SimilarFound,
    StopEmbedding,
)
from core.settings import Prefill


class Erasures:
    """Sends the names to erase in a `command`; without a worker, once there is one."""

    def __init__(
        self,
        take: Callable[[AskTables], None],
        command: Callable[[tuple[str, ...]], EraseChats | EraseVectors],
    ) -> None:
        self._take = take
        self._command = command
        self._names: list[str] = []
        self.connected = False

    def add(self, name: str) -> None:
        """Erase what the worker has of `name`."""
        self._names.append(name)
        self._send()

    def connect(self, connected: bool) -> bool:
        """Note whether there is a worker. Returns whether it is a new one."""
        is_new = connected and not self.connected
        self.connected = connected
        self._send()
        return is_new

    def _send(self) -> None:
        if self.connected and self._names:
            names, self._names = tuple(dict.fromkeys(self._names)), []
            self._take(AskTables(self._command(names)))


class _Search(Struct, eq=False):
    """A search by meaning in `texts`, by digest; `waits_for` are the texts being embedded for it."""

    words: str
    texts: Mapping[str, Callable[[], str]]
    found: Callable[[SimilarFound], None]
    waits_for: set[str]
    again: bool = False


class EmbeddingController(QObject):
    """`take` steps the state machine; call `follow()` after each step. `is_kept`: whether a chat or the
    library has a text that was removed from the composer.
    """

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
        self._erasures = Erasures(take, EraseVectors)
        self._numbers = count(1)
        self._requests: dict[str, str] = {}  # request id of each text being embedded
        self._fractions: dict[str, float] = {}
        self._done: set[str] = set()  # digests
        self._seen: tuple[str, ...] = ()
        self._searches: dict[str, _Search] = {}
        self._waiting: list[_Search] = []
        views.composer.draft_changed.connect(self.refresh)
        views.composer.attachment_removed.connect(self._stop)
        views.document.similar_wanted.connect(self._find_in_document)
        views.inspector.settings_changed.connect(lambda settings: self.refresh())

    def follow(self, link: Link) -> None:
        """Update after a change of the worker, its model or its turn."""
        if self._erasures.connect(link.connected):
            self._seen = ()
            self.refresh()

    def on_worker_gone(self, effect: fx.RestartWorker | fx.WorkerDied) -> None:
        """Clear the pending requests."""
        self._erasures.connect(False)
        self._seen = ()
        self._requests.clear()
        self._fractions.clear()
        self._searches.clear()
        self._waiting.clear()
        self._show()

    def refresh(self) -> None:
        """Embed the composer's documents if the settings compare meaning."""
        wanted = self._wanted
        texts = tuple(each.text for each in self._views.composer.attachments) if wanted else ()
        if not self._erasures.connected or texts == self._seen:
            return
        self._seen = texts
        if not wanted:
            for text in list(self._requests):
                self._stop_request(text)
        for text in texts:
            if text not in self._requests and digest_in_prompts(text) not in self._done:
                self._embed(text)
        self._show()

    def on_embedded(self, event: DocumentEmbedded) -> None:
        """Show the progress of a document."""
        text = next((text for text, request in self._requests.items() if request == event.request), None)
        if text is None:  # stopped meanwhile
            return
        if event.state == "running":
            self._fractions[text] = event.fraction
        else:
            del self._requests[text]
            self._fractions.pop(text, None)
            if event.state == "done":
                self._done.add(digest_in_prompts(text))
            self._search_again(text)
        self._show()

    def find(
        self, words: str, texts: Mapping[str, Callable[[], str]], found: Callable[[SimilarFound], None]
    ) -> None:
        """Search for passages similar to `words` in texts, given by their `digest_in_prompts`.

        `found` receives the available results; missing texts are embedded, and then it receives all results.
        Does nothing if the settings do not compare meaning, or without a worker.
        """
        if self._wanted and self._erasures.connected and texts:
            self._search(_Search(words, texts, found, set()))

    def on_similar(self, event: SimilarFound) -> None:
        """Handle the result of a search."""
        search = self._searches.pop(event.request, None)
        if search is None:
            return
        search.found(event)
        if search.again:
            return
        search.again = True
        for digest in event.missing:
            text = search.texts[digest]()
            search.waits_for.add(text)
            if text not in self._requests:
                self._embed(text)
        if search.waits_for:
            self._waiting.append(search)

    def erase(self, text: str) -> None:
        """Erase the embedding of `text`."""
        digest = digest_in_prompts(text)
        self._done.discard(digest)
        self._erasures.add(digest)

    def _stop(self, attachment: Attachment) -> None:
        """Stop embedding after the chip was removed."""
        text = attachment.text
        if any(each.text == text for each in self._views.composer.attachments):
            return
        if text in self._requests:
            self._stop_request(text)
        if not self._is_kept(text):
            self.erase(text)

    @property
    def _wanted(self) -> bool:
        return self._views.inspector.settings.prefill.compares_meaning

    def _embed(self, text: str) -> None:
        self._requests[text] = f"embed-{next(self._numbers)}"
        self._take(AskTables(EmbedDocument(self._requests[text], text)))

    def _stop_request(self, text: str) -> None:
        self._fractions.pop(text, None)
        self._take(AskTables(StopEmbedding(self._requests.pop(text))))
        self._search_again(text)

    def _search(self, search: _Search) -> None:
        request = f"similar-{next(self._numbers)}"
        self._searches[request] = search
        self._take(AskTables(FindSimilar(request, search.words, tuple(search.texts))))

    def _search_again(self, text: str) -> None:
        """Repeat the searches that waited only for `text`, which is embedded or will not be."""
        for search in list(self._waiting):
            search.waits_for.discard(text)
            if not search.waits_for:
                self._waiting.remove(search)
                self._search(search)

    def _find_in_document(self, attachment: Attachment, words: str) -> None:
        text = attachment.text
        indent = len(text) - len(text.lstrip())

        def found(event: SimilarFound) -> None:
            spans = [(each.first_char + indent, each.last_char + indent) for each in event.passages]
            self._views.document.finder.show_similar(words, spans)

        self.find(words, {digest_in_prompts(text): lambda: text}, found)

    def _show(self) -> None:
        self._views.composer.chips.show_embedding(self._fractions.get)


def digest_in_prompts(text: str) -> str:
    """Returns the worker's digest of a text, which excludes white space at its ends, as prompts do."""
    return digest_of(text.strip())


class SavedChatsController(QObject):
    """`take` steps the machine; `open_chat` returns the id and the settings of the open chat.

    The id is empty for a chat without a question and for one that is not saved.
    """

    listed = Signal(object)  # SavedChatsListed, or None while there is no worker

    def __init__(
        self,
        take: Callable[[AskTables], None],
        open_chat: Callable[[], tuple[str, Prefill]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._take = take
        self._open_chat = open_chat
        self._erasures = Erasures(take, EraseChats)
        self._seen = ""
        self.now: SavedChatsListed | None = None

    def follow(self, link: Link) -> None:
        """Called after each change of the link."""
        before = self._erasures.connected
        if self._erasures.connect(link.connected):
            self._seen = ""
            self.show_open()
        elif before and not link.connected:
            self.on_listed(None)

    def show_open(self) -> None:
        """The open chat changed."""
        chat, prefill = self._open_chat()
        if self._erasures.connected and chat != self._seen:
            self._seen = chat
            self._take(AskTables(OpenChat(chat, prefill)))

    def erase(self, chat_id: str) -> None:
        """Erase what is saved of a chat that is deleted for good."""
        self._erasures.add(chat_id)

    def erase_all(self) -> None:
        """Erase all that is saved; chats in memory are saved again when they are used again."""
        if self._erasures.connected:
            self._take(AskTables(EraseChats(everything=True)))

    def refresh(self) -> None:
        """Ask for the size on disk."""
        if self._erasures.connected:
            self._take(AskTables(ListSavedChats()))

    def on_listed(self, event: SavedChatsListed | None) -> None:
        """The size on disk; None: unknown."""
        self.now = event
        self.listed.emit(event)
