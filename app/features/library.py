"""The library: kept documents with search, commands and a preview.

`LibraryController` keeps documents of messages, and attaches kept ones to messages. The state is
`app.session.documents`; the window is made on request. Undo is offered for the document removed last; closing
the window erases those that are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QHideEvent, QPainter, QPixmap, QTextCharFormat
from PySide6.QtWidgets import QWidget

from app.chat import strings
from app.chat.attachment_chip import estimated_tokens
from app.chat.bars import NoticeBar
from app.chat.composer_edit import local_files
from app.chat.file_reader import FileReader, FolderReading, Reading
from app.chat.intents import Intent, OpenLibrary
from app.chat.strings import about
from app.controllers.app import App
from app.controls.buttons import Button, IconButton, on_click
from app.controls.record_table import Column, RecordTable
from app.controls.sheets import open_files, show_details
from app.controls.text_fields import SearchField, TextView
from app.controls.text_label import TextLabel
from app.features.side_window import Hairline, SideWindow
from app.features.worker_caches import EmbeddingController, digest_in_prompts
from app.panels.chat_row import time_label
from app.richtext.passage import draw_passage
from app.session.documents import DocumentHit, Documents, KeptDocument, identity_of
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import column_of, row_of, set_fixed_height
from app.theme.theme import color
from core.errors import RequestError
from core.events import Attachment, SimilarFound

TITLE = "Library"
SUBTITLE = "Documents that you keep for any chat"
ADD_FILES = "Add Files…"
ADD_FILES_TITLE = "Add Files to the Library"
ATTACH = "Attach to Chat"
RENAME = "Rename"
REMOVE = "Remove"
UNDO = "Undo"
SEARCH = "Search documents"
NAME = "Name"
TOKENS = "Tokens"
ADDED = "Added"
USED = "Last used"
LIST = "Kept documents"
PREVIEW = "Preview"
NOTHING = "No Documents"
NOTHING_HINT = "Drop files here or click +, or choose “Keep in Library” for a document of a chat."
NO_MATCH = "No document has these words"


def characters_text(count: int) -> str:
    return "1 character" if count == 1 else f"{count:,} characters"


def reading_text(name: str, words: str) -> str:
    return f"Reading {name}: {words}"


def not_added(count: int) -> str:
    return "1 file was not added" if count == 1 else f"{count:,} files were not added"


def removed_text(name: str) -> str:
    return f"“{name}” removed"


def spoken_row(name: str, tokens: str, added: str, used: str) -> str:
    return f"{name}, {tokens}, {ADDED.lower()} {added}, {USED.lower()} {used}"


def cut_note(size: str, shown_characters: int) -> str:
    return f"{size}, the first {shown_characters:,} characters shown"


def similar_note(passage: str) -> str:
    """The note of results found by meaning."""
    return f"Similar passage: {passage}"


SHOW_LIBRARY = "Show Library"
GONE = "It is not in the library any more."


def kept_text(name: str) -> str:
    return f"“{name}” is kept in the library"


def kept_already_text(name: str) -> str:
    return f"This text is in the library already, as “{name}”"


def attached_already_text(name: str) -> str:
    return f"“{name}” is attached already"


SHOWN_CHARACTERS = 20_000


class DocumentPreview(QWidget):
    """A name, a note and the text of a document. Hidden without a name."""

    def __init__(self) -> None:
        super().__init__()
        self.title = TextLabel("", 15, 20, "text", weight=600)
        self.note = TextLabel("", 12, 16, tabular=True)
        self.text_view = TextView(PREVIEW, 12.5)
        head = row_of(self.title, (self.note, 1), gap=10)
        head.setAlignment(self.note, Qt.AlignmentFlag.AlignBottom)
        column = column_of(head, (self.text_view, 1), gap=10, margins=(26, 14, 10, 14), parent=self)
        column.addStretch(0)  # space for a message without text

    def show_text(self, name: str, note: str, text: str) -> None:
        self.setVisible(bool(name))
        self.title.setText(name)
        cut = len(text) > SHOWN_CHARACTERS
        self.note.setText(cut_note(note, SHOWN_CHARACTERS) if cut else note)
        for label in (self.title, self.note):
            label.updateGeometry()
        self.text_view.setVisible(bool(text))
        self.text_view.setPlainText(text[:SHOWN_CHARACTERS])
        self.text_view.setAccessibleName(name)


SIZE = QSize(980, 680)
_MINIMUM = QSize(760, 480)
_FOOT_PX = 290


class LibraryWindow(SideWindow):
    """The controller calls `show_rows` after each change."""

    def __init__(self, controller: LibraryController) -> None:
        super().__init__(TITLE, SIZE, _MINIMUM)
        self._controller = controller
        self.search = SearchField(SEARCH)
        self.add = IconButton("plus", ADD_FILES)
        self.attach = Button(ATTACH, "primary", small=True)
        self.rename = Button(RENAME, small=True, icon_name="edit")
        self.remove = Button(REMOVE, "danger", small=True, icon_name="trash")
        self.list = RecordTable[LibraryRow](LIST, COLUMNS, editable=NAME)
        self.notice = NoticeBar()
        self.notice.set_time_ms(_UNDO_MS)
        self.preview = DocumentPreview()
        self._lay_out()
        self.setAcceptDrops(True)
        self.shown.connect(controller.show)
        self.search.textChanged.connect(lambda words: controller.search_soon())
        self.search.results_wanted.connect(self.list.setFocus)
        self.list.row_selected.connect(self._select)
        self.list.opened.connect(controller.attach)
        self.list.renamed.connect(controller.rename)
        self.list.remove_requested.connect(self._remove)
        on_click(
            (self.add, lambda: open_files(self, ADD_FILES_TITLE, controller.add_files)),
            (self.attach, lambda: controller.attach(self.list.selected)),
            (self.rename, self.list.rename),
            (self.remove, self._remove),
        )
        self._show_buttons()

    def show_rows(self, rows: Sequence[LibraryRow]) -> None:
        """Shows rows, or a message if there are none."""
        self.list.show_rows(rows)
        self._show_buttons()
        self.list.set_empty(*((NO_MATCH, "") if self.search.text().strip() else (NOTHING, NOTHING_HINT)))
        if not rows:
            self.preview.show_text("", "", "")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self._controller.add_files(local_files(event.mimeData()))
        event.acceptProposedAction()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous():  # minimised, it keeps what Undo restores
            self.notice.clear()
            self._controller.documents.purge_removed()

    # ---- inside

    def _select(self, document_id: str) -> None:
        self._show_buttons()
        self._controller.preview(document_id)

    def _remove(self) -> None:
        if self.list.selected:
            self._controller.remove(self.list.selected)

    def _show_buttons(self) -> None:
        for button in (self.attach, self.rename, self.remove):
            button.setEnabled(bool(self.list.selected))

    def _lay_out(self) -> None:
        set_fixed_height(self.preview, _FOOT_PX)
        commands = (self.attach, self.rename, self.remove)
        header = self.make_header((self.search, self.add), commands, subtitle=SUBTITLE)
        line = Hairline()
        column_of(header, (self.list, 1), self.notice, line, self.preview, parent=self)


@dataclass(frozen=True)
class LibraryRow:
    """`passage` is the match of a search, or the length; `marks` are its matching spans."""

    id: str
    name: str
    passage: str
    marks: tuple[tuple[int, int], ...]
    tokens: str
    added: str
    used: str

    @property
    def title(self) -> str:
        return self.name

    @property
    def tip(self) -> str:
        return self.name

    @property
    def spoken(self) -> str:
        return spoken_row(self.name, f"{self.tokens} {TOKENS.lower()}", self.added, self.used)


def rows_of(
    documents: Sequence[KeptDocument],
    family: str,
    now: datetime,
    estimate: Callable[[KeptDocument], int],
    hits: Mapping[str, DocumentHit] | None = None,
) -> tuple[LibraryRow, ...]:
    """Returns rows in the order of `documents`, or of `hits` after a search.

    `family` is the tokenizer whose counts are shown, where known; `estimate` returns the tokens of a document
    without a count.
    """
    if hits is not None:
        known = {each.id: each for each in documents}
        documents = [known[found] for found in hits if found in known]
    return tuple(
        _row(each, tokens_text(each, family, estimate), now, (hits or {}).get(each.id)) for each in documents
    )


def tokens_text(document: KeptDocument, family: str, estimate: Callable[[KeptDocument], int]) -> str:
    """Returns `3,201`, or `~3,200` if the count of this tokenizer is unknown."""
    if family in document.counts:
        return f"{document.counts[family]:,}"
    tokens = next(iter(document.counts.values()), None) or estimate(document)
    return about(f"{round(tokens, -max(0, len(str(tokens)) - 2)):,}")


def _row(document: KeptDocument, tokens: str, now: datetime, hit: DocumentHit | None) -> LibraryRow:
    found = hit is not None and bool(hit.passage)
    passage = characters_text(document.characters)
    if hit and found:
        passage = similar_note(hit.passage) if hit.similar else hit.passage
    return LibraryRow(
        document.id,
        document.name,
        passage,
        hit.marks if hit and found else (),
        tokens,
        time_label(document.added, now),
        time_label(document.used, now),
    )


def _icon(row: LibraryRow, place: int, ratio: float) -> QPixmap:
    return icon_pixmap("doc", color("text2"), 14, ratio)


def _paint_passage(painter: QPainter, box: QRectF, row: LibraryRow) -> None:
    marked = QTextCharFormat()
    marked.setBackground(color("accent_tint"))
    draw_passage(painter, box, row.passage, ui_font(11, tabular=True), color("text2"), row.marks, marked)


COLUMNS = (
    Column("name", NAME, 220, grows=True, icon=_icon, below="passage", paint_below=_paint_passage),
    Column("tokens", TOKENS, 112, right=True),
    Column("added", ADDED, 96, ink="text2"),
    Column("used", USED, 96, ink="text2"),
)


_SEARCH_AFTER_MS = 150
_UNDO_MS = 60_000
_LEAST_SIMILAR_CHARACTERS = 3


class LibraryController(QObject):
    """The meter provides the tokenizer, and gets earlier counts."""

    window_requested = Signal()
    chat_requested = Signal()  # the chat window comes to the front: its message got an attachment

    def __init__(
        self,
        app: App,
        documents: Documents,
        embedding: EmbeddingController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views = app.views
        self._embedding = embedding
        self._digests: dict[str, str] = {}  # digests of the texts as prompts contain them, by document id
        self.documents = documents
        self._meter = app.meter
        self._trouble = app.trouble
        self._window: LibraryWindow | None = None
        self._estimates: dict[str, int] = {}  # tokens, by document id
        self._similar: dict[str, DocumentHit] = {}  # to the words of the search
        self._reader = FileReader(self._show_reading, self._take_files, self)
        self._reader.takes_scans = True  # for whichever model the document will be attached
        self._refused: list[RequestError] = []
        self._search_timer = QTimer(self, interval=_SEARCH_AFTER_MS, singleShot=True)
        self._search_timer.timeout.connect(self._search)
        documents.purge_removed()
        self._meter.set_memory(documents)
        views.document.keep_requested.connect(self.keep)
        views.composer.intent.connect(self._on_intent)
        views.composer.folder_attached.connect(self._tell_folder)

    def open(self, window: LibraryWindow) -> LibraryWindow:
        self._window = window
        window.destroyed.connect(self._forget_window)
        return window

    def search_soon(self) -> None:
        self._search_timer.start()

    def refresh(self) -> None:
        """Reads the archive again after a repair."""
        self.documents.refresh()
        self.show()

    def keep(self, attachment: Attachment) -> None:
        known = self.documents.of(attachment)
        kept = self._keep(attachment)
        self._meter.remember(attachment.text)
        said = kept_already_text(kept.name) if known else kept_text(kept.name)
        self._views.notice_bar.show_notice(said, SHOW_LIBRARY, self.window_requested.emit, kind="done")
        self.show()

    def keep_quietly(self, attachment: Attachment) -> str:
        """Keeps a document without a notice; returns its id."""
        document_id = self._keep(attachment).id
        self.show()
        return document_id

    def add_files(self, paths: Sequence[Path]) -> None:
        """Reads files, and the files of folders, and keeps their texts."""
        for path in paths:
            (self._reader.read_folder if path.is_dir() else self._reader.read)(path)

    def attach_all(self, document_ids: Sequence[str]) -> int:
        """Attaches those documents to the message that exist and are not attached to it yet.

        Returns the number of those that are not in the library.
        """
        composer, listed = self._views.composer, {each.id for each in self.documents.listed()}
        found = [each for each in document_ids if each in listed]
        for document_id in found:
            try:
                attachment = self.documents.attach(document_id, self._meter.family)
            except RequestError as error:
                self._trouble.show_request_error(error, "attach")
                continue
            if not self._is_attached(attachment):
                composer.attach(attachment)
        return len(document_ids) - len(found)

    def text(self, document_id: str) -> str | None:
        """Returns the text of a document; None if it is not kept or cannot be read."""
        with suppress(KeyError, RequestError):
            return self.documents.text(document_id)
        return None

    def attach(self, document_id: str) -> None:
        composer = self._views.composer
        try:
            attachment = self.documents.attach(document_id, self._meter.family)
        except KeyError:
            self.show()
            return
        except RequestError as error:
            self._trouble.show_request_error(error, "attach")
            self.refresh()
            return
        if self._is_attached(attachment):
            self._views.notice_bar.show_notice(attached_already_text(attachment.name))
        else:
            composer.attach(attachment)
        self.show()
        self.chat_requested.emit()
        composer.edit.setFocus()

    def show(self) -> None:
        """Shows the documents, or the results of the search, if the window is open."""
        window = self._window
        if window is not None and window.isVisible():
            words, hits = window.search.text().strip(), None
            if words:
                hits = self._hits(words)
                hits |= {each: self._similar[each] for each in self._similar if each not in hits}
            listed, family = self.documents.listed(), self._meter.family
            window.show_rows(rows_of(listed, family, datetime.now(), self._estimate, hits))

    def preview(self, document_id: str) -> None:
        window = self._window
        if window is None or not document_id:
            return
        document = self.documents.get(document_id)
        try:
            text = self.documents.text(document_id)
        except (KeyError, RequestError) as error:
            said = error.message if isinstance(error, RequestError) else GONE
            window.preview.show_text(document.name, said, "")
            return
        window.preview.show_text(document.name, characters_text(document.characters), text)

    def rename(self, document_id: str, name: str) -> None:
        self.documents.rename(document_id, name)
        self.show()
        if self._window and self._window.list.selected == document_id:
            self.preview(document_id)

    def remove(self, document_id: str) -> None:
        self.documents.remove(document_id)
        self._show_removed()
        self.show()

    def undo(self) -> None:
        if removed := self.documents.removed:
            self.documents.restore(removed[-1].id)
            self._show_removed()
            self.show()
            self._select(removed[-1].id)

    # ---- inside

    def _select(self, document_id: str) -> None:
        if self._window and self._window.list.index_of(document_id).isValid():
            self._window.list.select(document_id)

    def _is_attached(self, attachment: Attachment) -> bool:
        attached = self._views.composer.attachments
        return identity_of(attachment) in map(identity_of, attached)

    def _estimate(self, document: KeptDocument) -> int:
        if document.id not in self._estimates:
            self._estimates[document.id] = estimated_tokens(self.text(document.id) or "")
        return self._estimates[document.id]

    def _keep(self, attachment: Attachment) -> KeptDocument:
        kept = self.documents.keep(attachment)
        if self._window and self._window.notice.text:  # it may have been among the removed ones
            self._show_removed()
        return kept

    def _on_intent(self, intent: Intent) -> None:
        if isinstance(intent, OpenLibrary):
            self.window_requested.emit()

    def _show_reading(self, reading: Reading) -> None:
        if self._window is not None:
            self._window.titles.say(reading_text(reading.name, reading.words))

    def _take_files(self, reading: Reading) -> None:
        """Keeps the text; after the last file, shows the newest document or the reasons for failures."""
        added, window = "", self._window
        result = reading.result
        if isinstance(result, RequestError):
            self._refused.append(result)
        else:
            for attachment in reading.attachments:
                added = self._keep(attachment).id
            skipped = reading.skipped if isinstance(reading, FolderReading) else ()
            self._refused += [RequestError(f"{each.name}: {each.reason}") for each in skipped]
        self.show()
        self._select(added)
        if self._reader.busy:
            return
        refused, self._refused = self._refused, []
        if window is not None:
            window.titles.say(SUBTITLE)
        if not refused:
            return
        reasons = [f"{error.message} {error.hint}".strip() for error in refused]
        if window is not None and window.isVisible():
            window.preview.show_text(not_added(len(refused)), "", "\n".join(reasons))
        else:
            self._trouble.show_request_error(
                RequestError(f"{not_added(len(refused))}.", reasons[0]), "attach"
            )

    def _tell_folder(self, reading: FolderReading) -> None:
        skipped = reading.skipped
        files = len(reading.result) if isinstance(reading.result, tuple) else 0
        said = strings.folder_attached(reading.name, files, len(skipped))

        def show() -> None:
            title, note = strings.skipped_title(reading.name), strings.skipped_note(len(skipped))
            show_details(self._views.composer, title, note, strings.skipped_text(skipped))

        if skipped:
            self._views.notice_bar.show_notice(said, strings.SHOW_SKIPPED, show, kind="warning")
        else:
            self._views.notice_bar.show_notice(said, kind="done")

    def _search(self) -> None:
        self._search_timer.stop()
        words = self._window.search.text().strip() if self._window else ""
        self._similar = {}
        self.show()
        if len(words) >= _LEAST_SIMILAR_CHARACTERS:
            self._search_similar(words)

    def _search_similar(self, words: str) -> None:
        """Returns documents with passages similar in meaning, after those with the words."""
        ids: dict[str, str] = {}
        matches = self._hits(words)
        for document in self.documents.listed():
            if document.id not in matches and (digest := self._digest(document.id)):
                ids[digest] = document.id

        def found(event: SimilarFound) -> None:
            if self._window is None or self._window.search.text().strip() != words:
                return
            for passage in event.passages:  # ordered by similarity within each document
                document_id = ids[passage.digest]
                with suppress(KeyError, RequestError):
                    text = self.documents.text(document_id).strip()
                    piece = " ".join(text[passage.first_char : passage.last_char].split())
                    self._similar.setdefault(document_id, DocumentHit(document_id, piece, similar=True))
            self.show()

        texts = {digest: partial(self.documents.text, document_id) for digest, document_id in ids.items()}
        self._embedding.find(words, texts, found)

    def _hits(self, words: str) -> dict[str, DocumentHit]:
        try:
            return {hit.id: hit for hit in self.documents.search(words)}
        except RequestError as error:  # another program holds the database
            self._views.notice_bar.show_notice(str(error), kind="warning")
            return {}

    def _digest(self, document_id: str) -> str:
        """Returns the digest of a text as prompts contain it; empty if the text cannot be read."""
        if document_id not in self._digests:
            try:
                self._digests[document_id] = digest_in_prompts(self.documents.text(document_id))
            except (KeyError, RequestError):
                return ""
        return self._digests[document_id]

    def _show_removed(self) -> None:
        if self._window is None:
            return
        if removed := self.documents.removed:
            self._window.notice.show_notice(removed_text(removed[-1].name), UNDO, self.undo, kind="done")
        else:
            self._window.notice.clear()

    def _forget_window(self) -> None:
        self._window = None
