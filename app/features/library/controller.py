"""LibraryController: keeps documents of messages in the library, and attaches kept ones to messages.

The state is `app.session.documents`; the window is made on request. Removed documents can be restored until
the window is closed or its undo bar expires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat import strings as attachment_strings
from app.chat.file_reader import FolderReading
from app.chat.intents import Intent, KeepInLibrary, OpenLibrary
from app.controllers.chat.context_meter import ContextMeter
from app.controllers.trouble import TroubleController
from app.controllers.views import Views
from app.features.library import strings
from app.features.library import strings as library_strings
from app.features.library.window import rows_of
from app.features.worker_caches import EmbeddingController, digest_in_prompts
from app.session.documents import DocumentHit, Documents
from core.errors import RequestError
from core.events import Attachment, SimilarFound

if TYPE_CHECKING:
    from app.features.library.window import LibraryWindow

_SEARCH_AFTER_MS = 150
_UNDO_MS = 60_000
_LEAST_SIMILAR_CHARACTERS = 3


class LibraryController(QObject):
    """`meter` provides the tokenizer, and gets earlier counts."""

    window_requested = Signal()
    chat_requested = Signal()  # the chat window comes to the front: its message got an attachment

    def __init__(
        self,
        views: Views,
        documents: Documents,
        meter: ContextMeter,
        trouble: TroubleController,
        embedding: EmbeddingController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._embedding = embedding
        self._digests: dict[str, str] = {}  # digests of the texts as prompts contain them, by document id
        self.documents = documents
        self._meter = meter
        self._trouble = trouble
        self._window: LibraryWindow | None = None
        self._hits: dict[str, DocumentHit] | None = None
        self._removed: list[str] = []
        self._search_timer = QTimer(self, interval=_SEARCH_AFTER_MS, singleShot=True)
        self._search_timer.timeout.connect(self._search)
        documents.purge_removed()
        meter.set_memory(documents)
        views.document.keep_requested.connect(self.keep)
        views.composer.intent.connect(self._on_intent)
        views.composer.folder_attached.connect(self._tell_folder)

    def open(self, window: LibraryWindow) -> LibraryWindow:
        """Shows the library in `window`."""
        self._window = window
        window.undo_bar.set_time_ms(_UNDO_MS)
        window.shown.connect(self._show)
        window.hidden.connect(self._purge)
        window.undo_bar.expired.connect(self._purge)
        window.search.textChanged.connect(lambda words: self._search_timer.start())
        window.list.row_selected.connect(self._preview)
        window.list.renamed.connect(self._rename)
        window.undo_bar.undo_requested.connect(self._undo)
        for attach in (window.attach.clicked, window.list.opened):
            attach.connect(lambda *_: self._act_on_selected(self.attach))
        for remove in (window.remove.clicked, window.list.remove_requested):
            remove.connect(lambda *_: self._act_on_selected(self._remove))
        window.destroyed.connect(self._forget_window)
        return window

    def refresh(self) -> None:
        """Reads the archive again after a repair."""
        self.documents.refresh()
        self._show()

    def keep(self, attachment: Attachment) -> None:
        """Keeps a document."""
        known = self.documents.of_text(attachment.text)
        kept = self.documents.keep(attachment, self._meter.family)
        said = strings.kept_already(kept.name) if known else strings.kept(kept.name)
        self._views.notice_bar.show_notice(said, strings.SHOW_LIBRARY, self.window_requested.emit)
        self._show()

    def keep_quietly(self, attachment: Attachment) -> str:
        """Keeps a document without a notice; returns its id."""
        document_id = self.documents.keep(attachment, self._meter.family).id
        self._show()
        return document_id

    def attach_all(self, document_ids: Sequence[str]) -> None:
        """Attaches those documents to the message that exist and are not attached to it yet."""
        composer, listed = self._views.composer, {each.id for each in self.documents.listed()}
        for document_id in document_ids:
            if document_id not in listed:
                continue
            try:
                attachment = self.documents.attach(document_id, self._meter.family)
            except RequestError as error:
                self._trouble.show_request_error(error, "attach")
                continue
            if all(each.text != attachment.text for each in composer.attachments):
                composer.attach(attachment)

    def attach(self, document_id: str) -> None:
        """Attaches a document to the message in the composer."""
        composer = self._views.composer
        try:
            attachment = self.documents.attach(document_id, self._meter.family)
        except KeyError:
            self._show()
            return
        except RequestError as error:
            self._trouble.show_request_error(error, "attach")
            self.refresh()
            return
        if any(each.text == attachment.text for each in composer.attachments):
            self._views.notice_bar.show_notice(strings.attached_already(attachment.name))
        else:
            composer.attach(attachment)
        self._show()
        self.chat_requested.emit()
        composer.edit.setFocus()

    # ---- inside

    def _on_intent(self, intent: Intent) -> None:
        match intent:
            case KeepInLibrary(attachment):
                self.keep(attachment)
            case OpenLibrary():
                self.window_requested.emit()

    def _act_on_selected(self, act: Callable[[str], object]) -> None:
        if self._window is not None and self._window.list.selected:
            act(self._window.list.selected)

    def _tell_folder(self, reading: FolderReading) -> None:
        skipped = reading.skipped
        files = len(reading.result) if isinstance(reading.result, tuple) else 0
        said = attachment_strings.folder_attached(reading.name, files, len(skipped))

        def show() -> None:
            title, note = (
                attachment_strings.skipped_title(reading.name),
                attachment_strings.skipped_note(len(skipped)),
            )
            self._views.composer.show_text(title, note, attachment_strings.skipped_text(skipped))

        if skipped:
            self._views.notice_bar.show_notice(said, attachment_strings.SHOW_SKIPPED, show)
        else:
            self._views.notice_bar.show_notice(said)

    def _show(self) -> None:
        window = self._window
        if window is not None and window.isVisible():
            listed = self.documents.listed()
            window.show_rows(rows_of(listed, self._meter.family, datetime.now(), self._hits))

    def _search(self) -> None:
        self._search_timer.stop()
        words = self._window.search.text().strip() if self._window else ""
        self._hits = {hit.id: hit for hit in self.documents.search(words)} if words else None
        self._show()
        if len(words) >= _LEAST_SIMILAR_CHARACTERS:
            self._search_similar(words)

    def _search_similar(self, words: str) -> None:
        """Returns documents with passages similar in meaning, after those with the words."""
        ids: dict[str, str] = {}
        for document in self.documents.listed():
            if document.id not in (self._hits or {}) and (digest := self._digest(document.id)):
                ids[digest] = document.id

        def found(event: SimilarFound) -> None:
            if self._window is None or self._window.search.text().strip() != words or self._hits is None:
                return
            for passage in event.passages:  # ordered by similarity within each document
                document_id = ids[passage.digest]
                with suppress(KeyError, RequestError):
                    text = self.documents.text(document_id).strip()
                    piece = " ".join(text[passage.first_char : passage.last_char].split())
                    self._hits.setdefault(document_id, DocumentHit(document_id, piece, similar=True))
            self._show()

        texts = {digest: partial(self.documents.text, document_id) for digest, document_id in ids.items()}
        self._embedding.find(words, texts, found)

    def _digest(self, document_id: str) -> str:
        """Returns the digest of a text as prompts contain it; empty if the text cannot be read."""
        if document_id not in self._digests:
            try:
                self._digests[document_id] = digest_in_prompts(self.documents.text(document_id))
            except (KeyError, RequestError):
                return ""
        return self._digests[document_id]

    def _preview(self, document_id: str) -> None:
        window = self._window
        if window is None or not document_id:
            return
        document = self.documents.get(document_id)
        try:
            text = self.documents.text(document_id)
        except (KeyError, RequestError) as error:
            said = error.message if isinstance(error, RequestError) else strings.GONE
            window.preview.show_text(document.name, said, "")
            return
        window.preview.show_text(document.name, library_strings.characters(document.characters), text)

    def _rename(self, document_id: str, name: str) -> None:
        self.documents.rename(document_id, name)
        self._show()
        if self._window and self._window.list.selected == document_id:
            self._preview(document_id)

    def _remove(self, document_id: str) -> None:
        self.documents.remove(document_id)
        self._removed.append(document_id)
        self._show_removed()
        self._show()

    def _undo(self) -> None:
        if self._removed:
            restored = self._removed.pop()
            self.documents.restore(restored)
            self._show_removed()
            self._show()
            if self._window:
                self._window.list.select(restored)

    def _show_removed(self) -> None:
        if self._window is None:
            return
        if self._removed:
            name = self.documents.get(self._removed[-1]).name
            self._window.undo_bar.show_done(library_strings.removed(name))
        else:
            self._window.undo_bar.clear()

    def _purge(self) -> None:
        self._removed.clear()
        self.documents.purge_removed()

    def _forget_window(self) -> None:
        self._window = None
