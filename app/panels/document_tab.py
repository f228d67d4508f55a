"""DocumentTab: a document of the chat as the model read it: text, search, reading map and gutter.

Shows one of the chat's documents; a person can select another. Gets the documents as `Document` records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from app.chat import reading_map
from app.chat.attachment_chip import full_words, note_words
from app.chat.reading_map import MapCell, draw_map
from app.controls.buttons import IconButton, on_click
from app.controls.choices import Popup, Segment
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.panels import strings
from app.panels.document_marks import DocumentMarks
from app.panels.document_text import NO_MATCHES, Matches, matches_among
from app.panels.document_view import DocumentView
from app.panels.formatted_view import MOST_CHARACTERS, FormattedView, is_markdown
from app.panels.page_strip import PageStrip
from app.richtext.find_bar import Finder
from app.session.chats.conversation import Document
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_fixed_width,
    set_margins,
)
from app.theme.sheet import set_ground
from app.theme.theme import color
from app.theme.zoom import area_of, design_point, height_of, painter_on, px_size, ratio_of

WIDTH_PX = 400
_HEAD_PX = 86


_SIMILAR_AFTER_MS = 400
_LEAST_CHARACTERS = 3


class DocumentFinder(Finder):
    """Searches the displayed document; the view scrolls and marks.

    After the matches come passages of similar meaning: `want_similar` requests them after a pause in typing,
    `show_similar` receives them.
    """

    def __init__(self, view: DocumentView, want_similar: Callable[[str], object]) -> None:
        super().__init__(view, strings.FIND_IN_DOCUMENT)
        self._view: DocumentView | FormattedView = view
        self._words = self._similar = self._shown = NO_MATCHES
        self._timer = QTimer(self, interval=_SIMILAR_AFTER_MS, singleShot=True)
        self._timer.timeout.connect(lambda: want_similar(self.bar.field.text()))

    def search_in(self, view: DocumentView | FormattedView) -> None:
        """Search the other view of the document from now on."""
        self._view = view
        self.show_over(view)
        self.search_again()

    def stop(self) -> None:
        self._timer.stop()
        self._words = self._similar = NO_MATCHES
        self._show(NO_MATCHES)

    def search(self, needle: str) -> None:
        view = self._view
        first, _ = view.visible_characters()
        self._words, self._similar = matches_among(view.spans_of, needle, view.shows, first), NO_MATCHES
        self._show(self._words)
        self._timer.stop()
        if len(needle.strip()) >= _LEAST_CHARACTERS:
            self._timer.start()

    def show_similar(self, needle: str, spans: Sequence[tuple[int, int]]) -> None:
        """Add passages (end-exclusive characters) similar to `needle`, unless the query has changed.

        Those that contain a match are left out. Goes to the first one without a match.
        """
        if not self.is_open or needle != self.bar.field.text():
            return
        on_similar = self._shown is self._similar
        words = self._words.starts
        found = sorted(
            (start, end)
            for start, end in spans
            if self._view.shows(start) and not any(start <= word < end for word in words)
        )
        self._similar = NO_MATCHES
        if found:
            starts, ends = zip(*found)
            self._similar = Matches(starts, ends, 0)
        self._show(self._similar if on_similar or not words else self._shown)

    def step(self, forward: bool = True) -> None:
        matches, similar = len(self._words.starts), len(self._similar.starts)
        if matches + similar == 0:
            return
        number = self._shown.current + (matches if similar and self._shown is self._similar else 0)
        number = (number + (1 if forward else -1)) % (matches + similar)
        if number < matches:
            self._words = replace(self._words, current=number)
            self._show(self._words)
        else:
            self._similar = replace(self._similar, current=number - matches)
            self._show(self._similar)

    def _show(self, matches: Matches) -> None:
        self._shown = matches
        count, similar = len(self._words.starts), len(self._similar.starts)
        number = matches.current + 1 + (count if similar and matches is self._similar else 0)
        self.bar.show_count(number, count, self._words.whole, similar)
        self._view.show_matches(matches)


class DocumentTab(QWidget):
    """Call `show_documents()` with all documents whenever one changes."""

    document_chosen = Signal(int)  # source
    similar_wanted = Signal(object, str)  # Attachment, words
    keep_requested = Signal(object)  # Attachment to add to the library
    page_opened = Signal(object, int)  # images of pages, and the index of the clicked one

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._documents: tuple[Document, ...] = ()
        self.shown: Document | None = None
        self._read_tokens: int | None = None
        self._asked = ""
        marks = DocumentMarks()
        self.text_view, self.formatted_view = DocumentView(marks), FormattedView(marks)
        self.view: DocumentView | FormattedView = self.text_view
        self.gutter = DocumentGutter()
        self.pages = PageStrip(self.page_opened.emit)
        self.finder = DocumentFinder(self.text_view, self._want_similar)
        self.name_label = TextLabel("", 13, 18, "text", weight=600)
        self.note_label = TextLabel("", 11, 15, "text2", tabular=True)
        self.chooser = Popup((("", ""),))
        self.chooser.setAccessibleName(strings.DOCUMENT_CHOICE)
        self.filter = Segment(strings.DOCUMENT_FILTER)
        self.filter.setAccessibleName(strings.DOCUMENT_FILTER_NAME)
        self.style_choice = Segment(strings.DOCUMENT_STYLES)
        self.style_choice.setAccessibleName(strings.DOCUMENT_STYLE_NAME)
        self.keep_button = IconButton("save", strings.KEEP_IN_LIBRARY)
        self.find_button = IconButton("search", strings.FIND_IN_DOCUMENT)
        self.previous_button = IconButton("up", strings.PREVIOUS_PASSAGE)
        self.next_button = IconButton("down", strings.NEXT_PASSAGE)
        self._lay_out()
        self.filter.value_changed.connect(self._filter)
        self.style_choice.value_changed.connect(lambda value: self._choose_view())
        self.formatted_view.parsed.connect(self._search_whole)
        self.formatted_view.laid_out.connect(self._show_bracket)
        on_click(
            (self.keep_button, self._keep),
            (self.find_button, self.finder.open),
            (self.previous_button, lambda: self.jump(-1)),
            (self.next_button, lambda: self.jump(1)),
        )
        self.chooser.value_changed.connect(self._choose)
        self.gutter.place_chosen.connect(self._scroll_to_share)
        for view in (self.text_view, self.formatted_view):
            view.verticalScrollBar().valueChanged.connect(self._show_bracket)
        self._show()

    # ---- display

    def show_documents(self, documents: Sequence[Document], read_tokens: int | None = None) -> None:
        """Set the chat's documents. The displayed one stays if it still exists, else the newest is shown.

        `read_tokens` is how far the newest map has been read; None: completely.
        """
        before, self._documents = self.shown, tuple(documents)
        self._read_tokens = read_tokens
        marked = [d for d in self._documents if d.reading is not None]
        kept = next(reversed(marked or list(self._documents)), None)
        was = before and replace(before.attachment, tokens=0)  # which may be counted meanwhile
        same = [d for d in self._documents if replace(d.attachment, tokens=0) == was]
        if before is not None and same:
            kept = next((d for d in same if d.source == before.source), same[0])
        self._offer()
        self._take(kept)

    def show_answer(self, asked: str) -> None:
        """Set the question of the answer whose reading is displayed; empty for the newest."""
        self._asked = asked
        self._show()

    def show_read(self, read_tokens: int | None) -> None:
        """Show that `read_tokens` of the prompt were read; None: all of them."""
        self._read_tokens = read_tokens
        self._show_cells()

    def show_source(self, source: int, first: int, last: int) -> None:
        """Show a document by number and mark its characters `first` to `last`, end-exclusive."""
        document = next((d for d in self._documents if d.source == source), None)
        if document is None:
            return
        self._take(document)
        if not self.view.shows(first):
            self.filter.set_value("all")
        self.view.show_place(first, last)

    def choose(self, source: int, character: int | None = None) -> None:
        """Show a document by number, scrolled to a character. Unknown numbers are ignored."""
        document = next((d for d in self._documents if d.source == source), None)
        if document is None:
            return
        self._take(document)
        if character is not None:
            found = [n for n, s in enumerate(self.view.stretches) if s.first <= character < s.last]
            if found:
                self.view.select_stretch(found[0])
            else:
                self.view.scroll_to_character(character)

    def jump(self, steps: int) -> bool:
        """Go to the next or previous kept passage."""
        return self.view.jump(steps)

    # ---- inside

    def _take(self, document: Document | None) -> None:
        before, self.shown = self.shown, document
        if document is not None:
            shown = self.view
            self._use(self._view_of(document))
            if before is None or before.attachment.text != document.attachment.text:
                self.view.show_text(document.attachment.text)
                self.finder.search_again()
            elif self.view is not shown:
                self.view.replaces(shown)
                self.finder.search_again()
            same = before and before.reading is document.reading
            if not (same and before and before.attachment is document.attachment):
                found = self._stretches(document)
                self.view.show_stretches(found, marked=document.reading is not None)
        self._show()

    def _view_of(self, document: Document) -> DocumentView | FormattedView:
        formatted = self._is_formatted(document) and self.style_choice.value == "formatted"
        return self.formatted_view if formatted else self.text_view

    def _is_formatted(self, document: Document) -> bool:
        """Whether the document can be shown formatted."""
        attachment = document.attachment
        return is_markdown(attachment.name) and len(attachment.text) <= MOST_CHARACTERS

    def _choose_view(self) -> None:
        """Show the other view of the document, at the same passage."""
        before, document = self.view, self.shown
        if document is not None and self._view_of(document) is not before:
            self._use(self._view_of(document))
            self.view.replaces(before)
            self.finder.search_again()
            self._show_bracket()

    def _use(self, view: DocumentView | FormattedView) -> None:
        if view is not self.view:
            focused = QApplication.focusWidget()
            had_focus = focused is not None and (focused is self.view or self.view.isAncestorOf(focused))
            self.view = view
            self._views.setCurrentWidget(view)
            self.finder.search_in(view)
            if had_focus and not self.finder.bar.field.hasFocus():
                view.setFocus()

    def _search_whole(self) -> None:
        """Search again when all of the document is parsed."""
        if self.view is self.formatted_view:
            self.finder.search_again()

    def _stretches(self, document: Document) -> tuple[reading_map.Stretch, ...]:
        if document.reading is None:
            return ()
        return reading_map.stretches(reading_map.passages_of(document.reading, document.source))

    def _show(self) -> None:
        document = self.shown
        self._pages.setCurrentIndex(0 if document is None else 1)
        self.pages.show_document(document)
        if document is None:
            return
        self.name_label.setText(document.attachment.name)
        self.name_label.setToolTip(in_own_direction(document.attachment.name))
        several = len(self._documents) > 1
        self.name_label.setVisible(not several)
        self.chooser.setVisible(several)
        if several:
            self.chooser.blockSignals(True)
            self.chooser.set_value(str(document.source))
            self.chooser.blockSignals(False)
        note = self._note(document)
        note = strings.EARLIER_ANSWER.format(note=note) if self._asked else note
        missing = full_words(document.attachment, "")
        formatted = self._is_formatted(document)
        self.style_choice.setVisible(formatted)
        if is_markdown(document.attachment.name) and not formatted:
            note = strings.TEXT_ONLY.format(note=note)
            missing = "\n".join(filter(None, (missing, strings.TEXT_ONLY_SAYS.format(most=MOST_CHARACTERS))))
        self.note_label.setText(note)
        self.note_label.setToolTip("\n".join(filter(None, (self._asked, missing))))
        self.note_label.setAccessibleDescription(missing)
        marked = document.reading is not None
        self.filter.setVisible(marked)
        for button in (self.previous_button, self.next_button):
            button.setVisible(marked)
        if not marked:
            self.filter.set_value("all")
        self._show_cells()
        self._show_bracket()

    def _note(self, document: Document) -> str:
        attachment = document.attachment
        size = note_words(attachment)
        if document.reading is None:
            return size
        passages = reading_map.passages_of(document.reading, document.source)
        kept = reading_map.kept_passages(passages)
        if not passages:
            return strings.NOTHING_READ.format(size=size)
        return strings.DOCUMENT_NOTE.format(size=size, kept=kept, passages=len(passages))

    def _offer(self) -> None:
        self.chooser.blockSignals(True)
        self.chooser.clear()
        for document in self._documents:
            self.chooser.addItem(document.attachment.name, str(document.source))
        self.chooser.blockSignals(False)

    def _keep(self) -> None:
        if self.shown is not None:
            self.keep_requested.emit(self.shown.attachment)

    def _want_similar(self, words: str) -> None:
        if self.shown is not None:
            self.similar_wanted.emit(self.shown.attachment, words)

    def _filter(self, value: str) -> None:
        self.view.set_kept_only(value == "kept")
        self.finder.search_again()

    def _choose(self, value: str) -> None:
        self.choose(int(value))
        self.document_chosen.emit(int(value))

    def _show_cells(self) -> None:
        document = self.shown
        if document is None or document.reading is None:
            self.gutter.show_cells(())
            return
        self.gutter.show_cells(
            reading_map.document_cells(
                document.reading,
                document.source,
                len(document.attachment.text),
                self.gutter.rows,
                self._read_tokens,
            )
        )

    def _show_bracket(self) -> None:
        if self.shown is not None:
            length = max(1, len(self.shown.attachment.text))
            first, last = self.view.visible_characters()
            self.gutter.show_view(first / length, last / length)

    def _scroll_to_share(self, share: float) -> None:
        if self.shown is not None:
            self.view.scroll_to_character(int(share * len(self.shown.attachment.text)))

    def resizeEvent(self, event: object) -> None:
        self._show_cells()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._show_cells()  # the gutter has another number of rows on the other screen
        return bool(super().event(event))

    def _lay_out(self) -> None:
        tools = row_of(
            self.style_choice,
            self.filter,
            STRETCH,
            self.keep_button,
            self.find_button,
            self.previous_button,
            self.next_button,
            gap=4,
            margins=(0, 6, 0, 0),
        )
        set_ground(self, "panel")
        head = QWidget()
        set_ground(head, "panel", "bottom")
        set_fixed_height(head, _HEAD_PX)
        column_of(
            self.name_label,
            self.chooser,
            self.note_label,
            tools,
            STRETCH,
            margins=(16, 9, 16, 7),
            parent=head,
        )
        self._views = QStackedWidget()
        self._views.addWidget(self.text_view)
        self._views.addWidget(self.formatted_view)
        text = row_of(self.gutter, (self._views, 1))
        page = QWidget()
        column_of(head, self.pages, (text, 1), parent=page)
        empty = QWidget()
        hint = QVBoxLayout(empty)
        set_margins(hint, 32, 40, 32, 0)
        align = Qt.AlignmentFlag.AlignHCenter
        hint.addWidget(TextLabel(strings.NO_DOCUMENT, 12, 17, "text2", wrap=True, align=align))
        hint.addStretch(1)
        self._pages = QStackedWidget()
        self._pages.addWidget(empty)
        self._pages.addWidget(page)
        column_of(self._pages, margins=(1, 0, 0, 0), parent=self)


GUTTER_PX = 34
_LEFT_PX, _MAP_PX = 14, 10
_MARGIN_PX = 12
_BRACKET_OUT_PX = 4
_LEAST_BRACKET_PX = 10.0


class DocumentGutter(QWidget):
    """Positions are shares of the text, 0 to 1."""

    place_chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: tuple[MapCell, ...] = ()
        self._view = (0.0, 1.0)
        set_fixed_width(self, GUTTER_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(strings.DOCUMENT_MAP)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    @property
    def rows(self) -> int:
        """The number of cells that fit."""
        return max(1, round((height_of(self) - 2 * _MARGIN_PX) * ratio_of(self)))

    def show_cells(self, cells: Sequence[MapCell]) -> None:
        """Show the document from beginning to end; no cells: an even strip."""
        self._cells = tuple(cells)
        self.update()

    def show_view(self, first: float, last: float) -> None:
        if (first, last) != self._view:
            self._view = (first, last)
            self.update()

    def bracket(self) -> QRectF:
        height = height_of(self) - 2 * _MARGIN_PX
        first, last = self._view
        tall = max(_LEAST_BRACKET_PX, (last - first) * height)
        top = min(_MARGIN_PX + first * height, _MARGIN_PX + height - tall)
        left = _LEFT_PX - _BRACKET_OUT_PX
        return QRectF(left, top, _MAP_PX + 2 * _BRACKET_OUT_PX, tall)

    def sizeHint(self) -> QSize:
        return px_size(QSize(GUTTER_PX, 200))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._choose(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), color("window"))
        strip = QRectF(_LEFT_PX, _MARGIN_PX, _MAP_PX, height_of(self) - 2 * _MARGIN_PX)
        draw_map(painter, strip, self._cells, radius_px=3, vertical=True)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color("text2"), 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(self.bracket().adjusted(0.75, 0.75, -0.75, -0.75), 4, 4)

    def _choose(self, event: QMouseEvent) -> None:
        height = max(1, height_of(self) - 2 * _MARGIN_PX)
        share = (design_point(event.position()).y() - _MARGIN_PX) / height
        self.place_chosen.emit(max(0.0, min(1.0, share)))
