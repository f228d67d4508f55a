"""FormattedView: a Markdown document, typeset like an answer, with the marks of `DocumentView`.

The document is parsed and laid out in slices of the event loop's time. A jump to a place that is not laid out
yet waits for its layout.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPainterPath,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QAbstractSlider, QFrame, QScrollArea, QWidget

from app.controls.scroll_bar import DragScroll, lay_bars_over
from app.controls.shapes import blend, draw_found
from app.panels import strings
from app.panels.document_marks import DocumentMarks, MarkedView
from app.richtext.markdown.blocks import BlockSplitter
from app.richtext.markdown.markdown import parse_block, read_open
from app.richtext.markdown.piece import Piece, place_of, plain_piece, shown_range
from app.richtext.piece_box import PieceBox
from app.richtext.selection import Move, TextPlace, TextSelection, everything, moved
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.theme.theme import color, theme
from app.theme.zoom import px

MOST_CHARACTERS = 200_000  # of a document that is formatted
_ENDINGS = (".md", ".markdown", ".mdown", ".mkd")
_FED_CHARACTERS = 16_000  # split into blocks at once
_READ_CHARACTERS = 4_000  # parsed at once
_MOST_CELLS = 600  # of a table that is laid out as such, at once
_FIRST_SLICE_S = 0.05
_SLICE_S = 0.012
_GROWTH = 1.3
_TOP_PX = 11
_BAR_PX = 2


def is_markdown(name: str) -> bool:
    """Whether a document of that name is Markdown."""
    return name.lower().endswith(_ENDINGS)


def pieces_in(text: str) -> Iterator[Piece]:
    """The pieces of a whole document, each parsed when it is requested."""
    splitter = BlockSplitter()
    for start in range(0, len(text), _FED_CHARACTERS):
        for block in splitter.feed(text[start : start + _FED_CHARACTERS]):
            yield from _pieces_of(text, block.start, block.end)
    for block in splitter.finish():
        yield from _pieces_of(text, block.start, block.end)


def _pieces_of(text: str, start: int, end: int) -> Iterator[Piece]:
    """The pieces of a block; a long one, such as a list, is parsed in parts."""
    before, length = "", _READ_CHARACTERS
    while end - start > length:
        stop = text.rfind("\n", start, start + length) + 1 or start + length
        read = read_open(text, start, stop, before)
        if read.start > start:
            yield from (_small(text, piece) for piece in read.pieces[: read.certain])
            start, before, length = read.start, read.before, _READ_CHARACTERS
        else:  # one paragraph, table or code block
            length *= 4
    yield from (_small(text, piece) for piece in parse_block(text, start, end, before))


def _small(text: str, piece: Piece) -> Piece:
    """`piece`, or its source if it is a table that would take too long to lay out."""
    many = len(piece.cells) > _MOST_CELLS
    return plain_piece(text, piece.source_start, piece.source_end) if many else piece


def source_from(piece: Piece, char: int) -> int:
    """The character of the document at visible character `char` or the next one, at the end the one after."""
    if not piece.segments:
        return piece.source_start
    index = max(0, bisect_right(piece.segments, char, key=lambda segment: segment.start) - 1)
    segment = piece.segments[index]
    if char < segment.end or index + 1 == len(piece.segments):
        return segment.source + min(max(0, char - segment.start), segment.length)
    return piece.segments[index + 1].source


class DocumentCanvas(TextCanvas):
    """Paints the marks; `step` lays out one more piece."""

    restarts = Signal()  # all is laid out again, by `step`

    def __init__(self, marks: DocumentMarks) -> None:
        super().__init__()
        self._marks = marks
        self._waiting: Iterator[Piece] = iter(())
        self._parsed: list[Piece] = []
        self.setAccessibleName(strings.DOCUMENT_TEXT)

    def show_source(self, text: str) -> None:
        """Show another document, which is not laid out yet."""
        self._waiting, self._parsed = pieces_in(text), []
        self.is_given_up = False
        self.show_selection(None)
        self.lay_out_again()

    def lay_out_again(self) -> None:
        self.restarts.emit()
        self.boxes = []
        self.place_copies()

    def step(self) -> bool:
        """Lay out the next piece. Returns False if there is none."""
        if self.is_given_up:
            return False
        number = len(self.boxes)
        try:
            if number == len(self._parsed):
                piece = next(self._waiting, None)
                if piece is None:
                    return False
                self._parsed.append(piece)
            self.append_pieces([self._parsed[number]])
        except Exception as error:
            self.give_up(error)
        return not self.is_given_up

    @property
    def text_px(self) -> int:
        """The height of the laid out part."""
        return round(self.boxes[-1].bottom) if self.boxes else 0

    @property
    def parsed(self) -> Sequence[Piece]:
        """The pieces that are parsed."""
        return self._parsed

    def is_hidden(self, piece: Piece) -> bool:
        return self._marks.hides and not self._marks.read_in(piece.source_start, piece.source_end)

    def boxes_to_copy(self) -> list[PieceBox]:
        """The visible boxes: a document may have a thousand."""
        seen = self.visibleRegion().boundingRect()
        boxes = [self.boxes[number] for number in self._between(seen.top(), seen.bottom())]
        return [box for box in boxes if box.is_code and not box.hidden]

    # ---- characters of the document

    def locate(self, character: int) -> TextPlace | None:
        """The place of a character, in a visible piece at or after it; None if that is not laid out."""
        number = bisect_right(self.boxes, character, key=lambda box: box.piece.source_start) - 1
        first = max(0, number)
        for at in range(first, len(self.boxes)):
            box = self.boxes[at]
            if not box.hidden and box.layout.lines and (at > first or box.piece.source_end > character):
                return TextPlace(at, place_of(box.piece.segments, character))
        return None

    def line_at(self, y: float) -> tuple[int, int, int] | None:
        """The number of the first visible piece from `y` on, and the characters [start, end) of its line."""
        first = bisect_left(self.boxes, y, key=lambda box: box.bottom)
        for number in range(first, len(self.boxes)):
            box = self.boxes[number]
            if not box.hidden and box.layout.lines:
                line = box.layout.lines[box.layout.line_near(0, max(0.0, y - box.text_top))]
                return number, line.start, line.end
        return None

    # ---- painting

    def code_is_coloured(self, box: PieceBox) -> bool:
        return not self._marks.marked

    def text_passes(self, box: PieceBox, lines: range) -> list[tuple[QColor, QPainterPath | None]]:
        """Text that was neither read nor found is dim."""
        if not self._marks.marked:
            return super().text_passes(box, lines)
        clear = QPainterPath()
        clear.setFillRule(Qt.FillRule.WindingFill)
        for start, end, _ in [*self._read_in(box, lines), *self._found_in(box, lines)]:
            for rect in box.layout.rects(start, end):
                clear.addRect(rect.translated(box.text_left, box.text_top))
        others = QPainterPath()
        others.addRect(QRectF(self.visibleRegion().boundingRect()).adjusted(-MARGIN_PX, -30, 0, 30))
        return [(color("dim"), others.subtracted(clear)), (color("text"), clear)]

    def paint_under_text(self, painter: QPainter, box: PieceBox, lines: range) -> None:
        marks = self._marks
        for start, end, number in self._read_in(box, lines):
            tint = color("accent_tint")
            if number == marks.current:
                tint = blend(color("accent_mid"), tint, 0.35)
            for rect in box.layout.rects(start, end):
                painter.fillRect(rect.translated(box.text_left, box.text_top), tint)
        for start, end, is_current in self._found_in(box, lines):
            for rect in box.layout.rects(start, end):
                area = rect.translated(box.text_left, box.text_top)
                draw_found(painter, area, color("accent"), is_current)

    def paint_over_text(self, painter: QPainter) -> None:
        """Bars at the left of read stretches."""
        seen = QRectF(self.visibleRegion().boundingRect())
        for number in self._between(seen.top(), seen.bottom()) if self._marks.marked else ():
            box = self.boxes[number]
            for start, end, _ in self._read_in(box, box.lines_in(seen)):
                rects = box.layout.rects(start, end)
                top, bottom = rects[0].top() + box.text_top, rects[-1].bottom() + box.text_top
                painter.fillRect(QRectF(-MARGIN_PX, top, px(_BAR_PX), bottom - top), color("accent"))

    def _source_of(self, box: PieceBox, lines: range) -> tuple[int, int]:
        """The characters of the document on `lines`, end-exclusive; without lines none."""
        if not lines:
            return 0, 0
        first, last = box.layout.lines[lines[0]].start, box.layout.lines[lines[-1]].end
        return source_from(box.piece, first), source_from(box.piece, last)

    def _found_in(self, box: PieceBox, lines: range) -> list[tuple[int, int, bool]]:
        """The characters [start, end) of `box` on `lines` that were found, and whether they are looked at."""
        found, place = self._marks.matches, self._marks.place
        first, last = self._source_of(box, lines)
        begin, stop = bisect_right(found.ends, first), bisect_left(found.starts, last)
        spans = [(place.first, place.last, True)] if place else []
        spans += [(found.starts[at], found.ends[at], at == found.current) for at in range(begin, stop)]
        shown = ((shown_range(box.piece.segments, max(a, first), min(b, last)), on) for a, b, on in spans)
        return [(*span, on) for span, on in shown if span]

    def _read_in(self, box: PieceBox, lines: range) -> list[tuple[int, int, int]]:
        """The read characters [start, end) of `box` on `lines`, and the numbers of their stretches."""
        if not self._marks.marked:
            return []
        first, last = self._source_of(box, lines)
        found = []
        begin = bisect_right(self._marks.stretches, first, key=lambda stretch: stretch.last)
        for number, stretch in enumerate(self._marks.read_in(first, last), begin):
            shown = shown_range(box.piece.segments, max(first, stretch.first), min(last, stretch.last))
            if shown:
                found.append((*shown, number))
        return found


class FormattedView(QScrollArea, MarkedView):
    """A jump to a read stretch or a place stays marked until the person scrolls."""

    parsed = Signal()  # all of the document, for the first time
    laid_out = Signal()

    def __init__(self, marks: DocumentMarks | None = None) -> None:
        super().__init__()
        self.marks = DocumentMarks() if marks is None else marks
        self._loaded: str | None = None
        self._hides = False
        self._goal: tuple[int, bool] | None = None  # the character to scroll to, and whether to the middle
        self._wanted: tuple[int, int] | None = None  # the characters to select
        self.is_laid_out = self._is_parsed = True
        self._page = QWidget()
        self.canvas = DocumentCanvas(self.marks)
        self.canvas.setParent(self._page)
        self.canvas.beyond = _Selecting(self)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(self._page)
        self.viewport().setAutoFillBackground(False)
        self._page.setAutoFillBackground(False)
        self.setFocusProxy(self.canvas)
        lay_bars_over(self)
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(lambda: self._lay_out(_SLICE_S))
        self.canvas.restarts.connect(self._restart)
        self.canvas.height_changed.connect(self._fit)
        self.verticalScrollBar().actionTriggered.connect(self._scrolled)
        self.verticalScrollBar().valueChanged.connect(self.canvas.place_copies)
        theme.zoomed.connect(self.canvas.lay_out_again)

    # ---- display

    def load(self) -> None:
        if self.text is not self._loaded:
            self._loaded, self._is_parsed = self.text, False
            self._page.resize(self._page.width(), 0)
            self._goal = (0, False)
            self.canvas.show_source(self.text)
        self._goal = None
        self.verticalScrollBar().setValue(0)

    def refresh_shown(self) -> None:
        if self.marks.hides or self._hides:
            self.canvas.lay_out_again()
        self._hides = self.marks.hides
        self.refresh_marks()

    def refresh_marks(self) -> None:
        self.canvas.update()

    def shows(self, character: int) -> bool:
        if not self.marks.hides:
            return True
        boxes = self.canvas.boxes
        number = bisect_right(boxes, character, key=lambda box: box.piece.source_start) - 1
        if number < 0 or character >= boxes[number].piece.source_end:
            return bool(self.marks.read_in(character, character + 1))
        return not boxes[number].hidden

    def spans_of(self, pattern: re.Pattern[str]) -> Iterable[tuple[int, int]]:
        """In the text without its syntax, as far as it is laid out."""
        for piece in self.canvas.parsed:
            for match in pattern.finditer(piece.text):
                yield source_from(piece, match.start()), source_from(piece, match.end() - 1) + 1

    @property
    def selected(self) -> tuple[int, int] | None:
        chosen = self.canvas.selection
        if chosen is None:
            return None
        boxes, end = self.canvas.boxes, chosen.end
        first = source_from(boxes[chosen.start.piece].piece, chosen.start.char)
        piece = boxes[end.piece].piece
        return first, source_from(piece, end.char - 1) + 1 if end.char else piece.source_start

    def select(self, first: int, last: int) -> None:
        self._wanted = (first, last)
        self._choose_wanted()

    def announce(self, words: str) -> None:
        self.canvas.setAccessibleDescription(words)
        changed = QAccessible.Event.DescriptionChanged
        QAccessible.updateAccessibility(QAccessibleEvent(self.canvas, changed))

    # ---- places

    def visible_characters(self) -> tuple[int, int]:
        if self._goal is not None:
            return self._goal[0], self._goal[0] + 1
        top = self.verticalScrollBar().value() - px(_TOP_PX)
        first, last = self.canvas.line_at(top), self.canvas.line_at(top + self.viewport().height())
        boxes = self.canvas.boxes
        begin = source_from(boxes[first[0]].piece, first[1]) if first and top > 0 else 0
        end = source_from(boxes[last[0]].piece, last[2]) if last else len(self.text)
        return begin, max(begin, end)

    def scroll_to_character(self, character: int) -> None:
        self._goal = (character, True)
        if not self.is_laid_out:
            self._lay_out(_FIRST_SLICE_S)
        self._follow()
        self.refresh_marks()

    # ---- Qt's

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keeps the target of a jump in the middle of the view, else the first line at the top."""
        super().resizeEvent(event)
        self._keep_place()
        self._fit()
        self._follow()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self.is_laid_out:
            self._lay_out(_FIRST_SLICE_S)
        self._follow()
        self.canvas.place_copies()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar, action, keys = self.verticalScrollBar(), QAbstractSlider.SliderAction, QKeySequence.StandardKey
        for found, to in (
            ((keys.MoveToStartOfDocument, keys.MoveToStartOfLine), action.SliderToMinimum),
            ((keys.MoveToEndOfDocument, keys.MoveToEndOfLine), action.SliderToMaximum),
        ):
            if any(map(event.matches, found)):
                bar.triggerAction(to)
                return
        super().keyPressEvent(event)

    # ---- inside

    def _scrolled(self) -> None:
        """The person scrolls."""
        self._goal = None
        self.leave()

    def _keep_place(self) -> None:
        """Go to the visible part once all is laid out again."""
        if self._goal is None:
            marks = self.marks
            place = marks.place or (marks.stretches[marks.current] if marks.current >= 0 else None)
            middle = (place.first + place.last) // 2 if place else 0
            self._goal = (middle, True) if place else (self.visible_characters()[0], False)

    def _restart(self) -> None:
        self._keep_place()
        self.is_laid_out = False
        self._timer.start()

    def _lay_out(self, budget_s: float) -> None:
        """Lay out pieces for that time, and go on later."""
        until_s = time.perf_counter() + budget_s
        before_px = self.canvas.text_px
        while (more := self.canvas.step()) and time.perf_counter() < until_s:
            pass
        self.is_laid_out = not more
        # Each new height costs a repaint of all that is visible.
        if not more or self._goal or self.canvas.text_px > _GROWTH * self._page.height():
            self._fit()
        self._follow()
        self._choose_wanted()
        seen = self.canvas.visibleRegion().boundingRect()
        if before_px <= seen.bottom():
            self.canvas.update()
            self.canvas.place_copies()
        if not more:
            self._wanted = None
            self._timer.stop()
            self.laid_out.emit()
            if not self._is_parsed:
                self._is_parsed = True
                self.parsed.emit()
        elif self.isVisible():
            self._timer.start()

    def _fit(self) -> None:
        """Make the page as wide as the view, and as high as its text; while that is laid out, not lower."""
        width, top = self.viewport().width(), px(_TOP_PX)
        self.canvas.height_for(width - 2 * MARGIN_PX)
        text_px = self.canvas.text_px
        height = text_px + 2 * top
        self._page.resize(width, height if self.is_laid_out else max(height, self._page.height()))
        self.canvas.setGeometry(0, top, width, max(text_px, self._page.height() - 2 * top))

    def _follow(self) -> None:
        """Scroll to the goal, if it is laid out."""
        if self._goal is None:
            return
        character, middle = self._goal
        place = self.canvas.locate(character)
        if place is None:
            if self.is_laid_out:  # it is behind all text
                self._goal = None
                self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
            return
        self.canvas.scroll_sideways(place.piece, place.char, place.char + 1)
        rect = self.canvas.rects_of(place.piece, place.char, place.char + 1)[0]
        view_px = self.viewport().height()
        y = px(_TOP_PX) + (rect.center().y() - view_px / 2 if middle else rect.top())
        if self.isVisible() and (self.is_laid_out or self.canvas.boxes[-1].bottom > y + view_px):
            self._goal = None
        self.verticalScrollBar().setValue(round(y) if character else 0)

    def _choose_wanted(self) -> None:
        """Apply the waiting selection, if its text is laid out."""
        if self._wanted is None:
            return
        start, end = self.canvas.locate(self._wanted[0]), self.canvas.locate(self._wanted[1] - 1)
        if end is None and self.is_laid_out and self.canvas.boxes:
            last = everything(self.canvas.pieces).end
            end = TextPlace(last.piece, last.char - 1)
        if start and end:
            self._wanted = None
            self.canvas.show_selection(TextSelection(start, TextPlace(end.piece, end.char + 1)))


class _Selecting:
    """Scrolls the view while text is selected, with the mouse or the keys."""

    def __init__(self, view: FormattedView) -> None:
        self._view = view
        self._at = QPoint()
        self._drag = DragScroll(view, self._follow_mouse)

    @property
    def text(self) -> str:
        return self._view.canvas.selected_text

    @property
    def pieces(self) -> Sequence[Piece]:
        return self._view.canvas.selected_pieces

    def select_all(self) -> None:
        self._view.select(0, len(self._view.text))

    def begin(self, canvas: TextCanvas, place: TextPlace, extends: bool) -> bool:
        return False

    def drag(self, at: QPoint) -> None:
        self._at = at
        self._drag.drag(at)

    def release(self) -> None:
        self._drag.stop()

    def extend(self, canvas: TextCanvas, move: Move) -> None:
        chosen = canvas.selection or TextSelection(TextPlace(0, 0), TextPlace(0, 0))
        head = moved(canvas.boxes, chosen.head, move)
        canvas.show_selection(TextSelection(chosen.anchor, head))
        canvas.scroll_sideways(head.piece, head.char, head.char)
        rect = canvas.rects_of(head.piece, head.char, head.char)[0].toAlignedRect()
        below = rect.translated(canvas.pos())
        self._view.ensureVisible(0, below.center().y(), 0, below.height())

    def _follow_mouse(self) -> None:
        canvas = self._view.canvas
        canvas.select_to(QPointF(canvas.mapFromGlobal(self._at)))
