"""Data that the worker keeps on disk for the window: vectors of documents, and saved caches of chats.

`EmbeddingController`: each document of the composer is embedded once, before a question is sent. Its chip
shows the progress of a slow one; removing the chip stops it. Searches by meaning embed missing texts and then
repeat. `SavedChatsController` sends the worker the open chat, and text to read before the question.

Data of erased chats and documents is also erased there (`Erasures`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Literal

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.app import App
from app.session.documents import digest_of
from app.session.turn import effects as fx
from app.session.turn.link_state import Phase
from core.events import (
    Attachment,
    CountTokens,
    DocumentEmbedded,
    EmbedDocument,
    EraseChats,
    EraseVectors,
    FindSimilar,
    Generate,
    ListSavedChats,
    OpenChat,
    ReadAhead,
    ReadAheadProgress,
    SavedChatsListed,
    SimilarFound,
    TokenCount,
)
from core.settings import Prefill
from core.worker.client import CommandError

# The worker reads ahead after this pause in typing.
_PAUSE_MS = 500
_Texts = Mapping[str, Callable[[], str]]


class Erasures:
    """Sends the names to erase in a `command`. The preferences keep them in `field` until the worker has."""

    def __init__(
        self,
        app: App,
        field: Literal["erase_chats", "erase_vectors"],
        command: Callable[[tuple[str, ...]], EraseChats | EraseVectors],
    ) -> None:
        self._app = app
        self._field = field
        self._command = command

    @property
    def _names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = getattr(self._app.preferences.now, self._field)
        return names

    def add(self, name: str) -> None:
        """Erase what the worker has of `name`; without a worker, once there is one."""
        self._keep(dict.fromkeys((*self._names, name)))
        self._send((name,))

    def send(self) -> None:
        """Send all names again to a new worker."""
        self._send(self._names)

    def _send(self, names: tuple[str, ...]) -> None:
        if names and self._app.link.connected:
            self._app.worker.send(self._command(names))
            self._app.worker.begin(self._forget(names))

    async def _forget(self, names: tuple[str, ...]) -> None:
        with suppress(CommandError):  # without a model; this, too, says that all earlier commands are done
            await self._app.worker.ask(CountTokens(""), TokenCount)
        self._keep(name for name in self._names if name not in names)

    def _keep(self, names: Iterable[str]) -> None:
        self._app.preferences.change(**{self._field: tuple(names)})


class EmbeddingController(QObject):
    """`is_kept`: whether the open chat or the library has a text that was removed from the composer."""

    def __init__(self, app: App, is_kept: Callable[[str], bool], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._views = views = app.views
        self._is_kept = is_kept
        self._erasures = Erasures(app, "erase_vectors", EraseVectors)
        self._running: dict[str, asyncio.Task[None]] = {}  # by text
        self._fractions: dict[str, float] = {}
        self._done: set[str] = set()  # digests
        self._seen: tuple[str, ...] = ()
        views.composer.draft_changed.connect(self.refresh)
        views.composer.attachment_removed.connect(self._stop)
        views.document.similar_wanted.connect(self._find_in_document)

    def on_worker_ready(self, effect: fx.WorkerReady) -> None:
        self._erasures.send()
        self.refresh()

    def on_worker_gone(self, effect: fx.RestartWorker | fx.WorkerDied) -> None:
        self._seen = ()
        for text in list(self._running):
            self._cancel(text)
        self._show()

    def refresh(self) -> None:
        """Embed the composer's documents if the settings compare meaning."""
        wanted = self._wanted
        texts = tuple(each.text for each in self._views.composer.attachments) if wanted else ()
        if not self._app.link.connected or texts == self._seen:
            return
        self._seen = texts
        if not wanted:
            for text in list(self._running):
                self._cancel(text)
        for text in texts:
            if digest_in_prompts(text) not in self._done:
                self._embedding(text)
        self._show()

    def find(self, words: str, texts: _Texts, found: Callable[[SimilarFound], None]) -> None:
        """Search for passages similar to `words` in texts, given by their `digest_in_prompts`.

        `found` receives the available results; missing texts are embedded, and then it receives all results.
        Does nothing if the settings do not compare meaning, or without a worker.
        """
        if self._wanted and self._app.link.connected and texts:
            self._app.worker.begin(self._find(words, texts, found))

    async def _find(self, words: str, texts: _Texts, found: Callable[[SimilarFound], None]) -> None:
        query = FindSimilar("", words, tuple(texts))
        similar = await self._app.worker.ask(query, SimilarFound)
        found(similar)
        if similar.missing:
            await asyncio.wait({self._embedding(texts[digest]()) for digest in similar.missing})
            found(await self._app.worker.ask(query, SimilarFound))

    def erase(self, text: str) -> None:
        digest = digest_in_prompts(text)
        self._done.discard(digest)
        self._erasures.add(digest)

    def _stop(self, attachment: Attachment) -> None:
        text = attachment.text
        if any(each.text == text for each in self._views.composer.attachments):
            return
        self._cancel(text)
        if not self._is_kept(text):
            self.erase(text)

    def _cancel(self, text: str) -> None:
        self._fractions.pop(text, None)
        if task := self._running.pop(text, None):
            task.cancel()

    def _embedding(self, text: str) -> asyncio.Task[None]:
        """The task that embeds `text`, begun if there is none."""
        if text not in self._running:
            self._running[text] = self._app.worker.begin(self._embed(text))
        return self._running[text]

    async def _embed(self, text: str) -> None:
        def show(event: DocumentEmbedded) -> None:
            self._fractions[text] = event.fraction
            self._show()

        try:
            event = await self._app.worker.ask(EmbedDocument("", text), DocumentEmbedded, show)
        finally:
            if self._running.get(text) is asyncio.current_task():
                del self._running[text]
                self._fractions.pop(text, None)
        if event.state == "done":
            self._done.add(digest_in_prompts(text))
        self._show()

    @property
    def _wanted(self) -> bool:
        return self._views.inspector.settings.prefill.compares_meaning

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
    """`open_chat` returns the id and the settings of the open chat.

    The id is empty for a chat without a question and for one that is not saved. `question` returns what would
    be asked now, also in place of an earlier question.
    """

    listed = Signal(object)  # SavedChatsListed, or None without a worker

    def __init__(
        self,
        app: App,
        open_chat: Callable[[], tuple[str, Prefill]],
        question: Callable[[], Generate],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._open_chat = open_chat
        self._question = question
        self._asked: Generate | None = None
        self._before_tokens = 0  # read of the question when the worker began
        self._pause = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self.read_ahead)
        app.views.composer.draft_changed.connect(self.read_ahead_soon)
        self._erasures = Erasures(app, "erase_chats", EraseChats)
        self._seen = ""
        self.now: SavedChatsListed | None = None

    def on_worker_ready(self, effect: fx.WorkerReady) -> None:
        self._erasures.send()
        self._seen = ""
        self._asked = None
        self.show_open()

    def on_model_ready(self, effect: fx.ModelReady) -> None:
        self._asked = None
        self._pause.start()

    def on_worker_gone(self, effect: fx.RestartWorker | fx.WorkerDied) -> None:
        self.on_listed(None)

    def show_open(self) -> None:
        self._pause.start()
        chat, prefill = self._open_chat()
        if self._app.link.connected and chat != self._seen:
            self._seen = chat
            self._app.worker.send(OpenChat(chat, prefill))

    def read_ahead_soon(self) -> None:
        self._pause.start()

    def read_ahead(self) -> None:
        """Have the worker read what would be asked now."""
        question = self._question()
        if question != self._asked and self._app.link.phase is Phase.READY:
            self._asked, self._before_tokens = question, -1
            self._app.meter.show_read(None)
            self._app.worker.send(ReadAhead(question))

    def on_read_ahead(self, event: ReadAheadProgress) -> None:
        """Show in the chips how much of them is read."""
        if self._asked is None or event.chat != self._asked.chat:
            return
        if self._before_tokens < 0:
            self._before_tokens = event.done_tokens
        left_tokens, new_tokens = (event.total_tokens - n for n in (event.done_tokens, self._before_tokens))
        self._app.meter.show_read(1 - left_tokens / max(1, new_tokens))

    def erase(self, chat_id: str) -> None:
        """Erase the saved caches of a chat that is deleted for good."""
        self._erasures.add(chat_id)

    def erase_all(self) -> None:
        """Erase all that is saved; chats in memory are saved again when they are used again."""
        self._app.worker.send(EraseChats(everything=True))

    def refresh(self) -> None:
        self._app.worker.send(ListSavedChats())

    def on_listed(self, event: SavedChatsListed | None) -> None:
        self.now = event
        self.listed.emit(event)
