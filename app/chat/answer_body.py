"""AnswerBody: the text of an answer with tinted tokens and foldable thoughts.

In the Origins view, words from a source are underlined, and figures without a source are dotted; the mouse
and the arrow keys point at these marks instead of tokens.

New tokens are appended, and only the unfinished last pieces are laid out again. The mouse, the arrow keys or
the token strip can point at a token. Code blocks have a Copy button.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QMenu, QWidget

from app.chat import strings
from app.chat.answer_text import AnswerText, PartFigures, TextChange, TokenTable, spans_of
from app.chat.image_files import ImageFiles
from app.chat.image_tile import ImageTile
from app.chat.intents import (
    ContinueFrom,
    DeleteMessage,
    EditAnswer,
    Intent,
    OpenImage,
    OpenPlace,
    SelectAnswer,
)
from app.chat.origin_marks import Mark, mark_at, marks_of_answer, shown_marks
from app.chat.stats_line import SEPARATOR, seconds
from app.chat.tools import strings as tools_strings
from app.controls.buttons import Button, themed_icon
from app.controls.keys import held
from app.richtext.canvas_menu import open_outside, to_clipboard
from app.richtext.markdown.piece import Piece, place_of, shown_range, source_at
from app.richtext.origin_paint import paint_origins
from app.richtext.piece_box import IMAGE_PX, PieceBox
from app.richtext.selection import TextPlace, TextSelection, everything, word_at
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.richtext.tint_paint import InkTable, Pointed, TokenColors, marks_of, paint_marks, paint_pointed
from app.session.origins import AnswerOrigins, with_sources
from app.session.tools.calls import CallRecord
from app.theme.measures import set_font
from app.theme.sheet import restyle
from app.theme.theme import color, theme
from app.theme.zoom import px
from core.events import TYPED, Token


class ThoughtHead(Button):
    """The button that folds a thought, with its figures, a repetition, or a call with its result, at source
    offset `start`. Checked: unfolded.
    """

    def __init__(self, start: int, parent: QWidget) -> None:
        super().__init__("", "quiet", parent=parent)
        self.start = start
        self._over = False
        self.setCheckable(True)
        set_font(self, 13, tabular=True)
        self._color()
        self.setCursor(Qt.CursorShape.ArrowCursor)
        theme.zoomed.connect(self._fit)

    def show_figures(self, figures: PartFigures, over: bool) -> None:
        """Show the figures of the thought; none if it has only one token, because it was imported."""
        parts = [(strings.THOUGHT if over else strings.THINKING).format(seconds=_tenths(figures.took_s))]
        if over and figures.tokens <= 1 and not figures.took_s:
            parts = [strings.IMPORTED_THOUGHT]
        if figures.tokens > 1:
            parts.append(strings.TOKENS.format(tokens=figures.tokens))
        if figures.tokens > 1 and figures.percent is not None:
            share = strings.ACCEPTED_SHARE.format(accepted=figures.accepted, percent=figures.percent)
            parts.append(share)
        self.show_text(SEPARATOR.join(parts), strings.THOUGHT_SAYS, over=over)

    def show_call(self, call: CallRecord) -> None:
        """Show what became of a call."""
        bad = call.state in ("failed", "unknown")
        if bad != self.property("bad"):
            self.setProperty("bad", bad)
            restyle(self)
        self.setToolTip(tools_strings.call_tip(call))
        self.show_text(tools_strings.call_line(call), tools_strings.CALL_SAYS, over=not call.is_open)

    def show_text(self, text: str, description: str, *, over: bool) -> None:
        """Show `text`; `over`: the folded text is complete."""
        if text == self.text() and over == self._over:
            return
        if over != self._over:
            self._over = over
            self._color()
        self.setText(text)
        self.setAccessibleName(text)
        self.setAccessibleDescription(description)
        self._fit()

    def _color(self) -> None:
        self.setIcon(themed_icon("right", "text2" if self._over else "accent", name_on="down"))
        self.setProperty("live", not self._over)
        restyle(self)

    def _fit(self) -> None:
        self.resize(self.sizeHint())


def _tenths(took_s: float) -> str:
    """A time with one decimal below 100 s: 0.4 s, 12.3 s, 112 s."""
    return strings.SECONDS.format(value=f"{took_s:.1f}") if took_s < 99.95 else seconds(took_s)


# Opacity of the tints in a thought; underlines are not dimmed.
_THOUGHT_TINT = 0.5
_IMAGE_GAP_PX = 6
_CARET_WIDTH_PX = 2
_CARET_HEIGHT_PX = 18
_CARET_GAP_PX = 3
_CARET_LINE_PX = 30


class AnswerBody(TextCanvas):
    """The text canvas of one answer."""

    def __init__(
        self,
        parent: QWidget | None = None,
        text: AnswerText | None = None,
        unfolded: set[int] | None = None,
        turn_id: str = "",
        act: Callable[[Intent], object] = lambda intent: None,
        point: Callable[[int], object] = lambda token: None,
    ) -> None:
        """`text` may contain an answer already, which `lay_out_step` then lays out.

        `unfolded` are the source offsets of the unfolded thoughts; it is changed in place. `act` gets the
        person's intents about the turn, `point` the index of the token that is pointed at, −1 for none.
        """
        super().__init__(None, parent)
        self._text = text or AnswerText()
        self._unfolded = set[int]() if unfolded is None else unfolded
        self._turn_id, self._act, self._on_pointed = turn_id, act, point
        self._heads: list[ThoughtHead] = []
        self._tiles: dict[tuple[str, int], ImageTile] = {}  # by call and number
        self.images: ImageFiles | None = None  # of results; without it they are shown as missing
        self.mode: TokenColors = "drafts"
        self.pointed_token = -1
        self.origins = AnswerOrigins()
        self.marks: list[Mark] = []  # of the origins, by position
        self.pointed_mark: Mark | None = None
        self.on_mark: Callable[[QPointF | None], object] = lambda point: None
        self._released = QPointF()
        self._open = 0  # the number of boxes at the end whose pieces are open
        self._writing = True
        self._pauses = False  # a call has no result yet
        self.can_edit = False  # whether the menu offers Edit and Delete
        self.setAccessibleName(strings.ANSWER_NAME)
        # It grows downwards, so the text above needs no repainting.
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)

    @property
    def table(self) -> TokenTable:
        """The tokens of the answer."""
        return self._text.table

    @property
    def has_text(self) -> bool:
        """Whether anything of the answer is visible: text, or the head of a thought."""
        return bool(self.boxes)

    @property
    def thoughts(self) -> list[range]:
        """The token indices of each thought."""
        return self._text.thought_tokens

    @property
    def call_tokens(self) -> list[range]:
        """The token indices of each call."""
        return self._text.call_tokens

    @property
    def figures(self) -> PartFigures | None:
        """The figures of the answer without its thoughts; None without thoughts."""
        return self._text.figures

    def lay_out_step(self, width: int) -> bool:
        """Lay out the next piece of an existing text at that width. Returns True once all are laid out."""
        self.height_for(width)
        pieces = self._text.pieces
        try:
            if not self.is_given_up and len(self.boxes) < len(pieces):
                self.append_pieces([pieces[len(self.boxes)]])
            if not self.is_given_up and len(self.boxes) < len(pieces):
                return False
            self._open = len(self._text.open)
            self._place_parts()
        except Exception as error:
            self.give_up(error)
        return True

    def append(self, tokens: Sequence[Token]) -> None:
        """Append tokens. Only open pieces are laid out and painted again."""
        self._apply(self._text.append(tokens))

    def finish(self, repeats_from: int | None = None) -> None:
        """No more tokens follow. Repetitions from that offset of the source on are folded."""
        self._writing = False
        self.update()
        if not self._text.finished:
            self._apply(self._text.finish(repeats_from))
        self.setAccessibleDescription(self._text.answer_source)

    def set_mode(self, mode: TokenColors) -> None:
        """Sets what the colors mean."""
        self.mode = mode
        self.update()

    def set_origins(self, origins: AnswerOrigins) -> None:
        """Mark the words from sources, and the figures without one."""
        self.origins, self.marks = origins, marks_of_answer(origins)
        if self.pointed_mark is not None:
            start = self.pointed_mark.start
            self.pointed_mark = next((mark for mark in self.marks if mark.start == start), None)
        if self.mode == "origins":
            self.update()

    def point_at_mark(self, mark: Mark | None, at: QPointF | None = None) -> None:
        """Highlight a mark and show its tooltip; `at` is where the mouse is."""
        if mark is self.pointed_mark:
            return
        self.pointed_mark = mark
        self.setCursor(Qt.CursorShape.IBeamCursor if mark is None else Qt.CursorShape.PointingHandCursor)
        self.update()
        self.on_mark(at)

    def go_to_mark(self, mark: Mark) -> None:
        """Point at a mark with the keys, which bring it into view."""
        for number, box in enumerate(self.boxes):
            if found := shown_range(box.piece.segments, mark.start, mark.end):
                self.reveal(number)
                self.scroll_sideways(number, *found)
                break
        self.point_at_mark(mark)

    def mark_rect(self, mark: Mark, at: QPointF | None = None) -> QRectF | None:
        """The rectangle of a mark on the canvas, on the line at the point `at`, else on its first line; None
        if it is not shown.
        """
        for number, box in enumerate(self.boxes):
            found = shown_range(box.piece.segments, mark.start, mark.end)
            if found and not box.hidden:
                rects = self.rects_of(number, *found)
                return next((rect for rect in rects if at is not None and rect.contains(at)), rects[0])
        return None

    def mark_text(self, mark: Mark) -> str:
        """The marked words as shown, on one line."""
        shown = []
        for box in self.boxes:
            if found := shown_range(box.piece.segments, mark.start, mark.end):
                shown.append(box.piece.text[slice(*found)])
        return " ".join(" ".join(shown).split())

    def _open_mark(self, mark: Mark) -> bool:
        """Show the marked words in their source. Returns False if they have none."""
        if mark.place is None:
            return False
        source = self.origins.sources[mark.place.source]
        self._act(OpenPlace(self._turn_id, source, mark.place))
        return True

    def point_at(self, token: int) -> None:
        """Highlight this token; −1 for none. Does not emit."""
        if token != self.pointed_token:
            self.pointed_token = token
            self.update()

    def link_of(self, token: int) -> str:
        """The address of the link that contains the token; empty if there is none."""
        shown = self.table.shown_by(token)
        for box in self.boxes if shown is not None else ():
            found = shown_range(box.piece.segments, *self.table.range_of(shown or 0))
            if found and not box.hidden:
                return next(filter(None, map(box.piece.link_at, range(*found))), "")
        return ""

    def code_is_coloured(self, box: PieceBox) -> bool:
        """Code is not coloured where its tokens are tinted."""
        if self.mode == "drafts" and self._writing:
            return not box.inks.runs
        points = self.pointed_token >= 0 and self.mode == "drafts"
        step = self.table[self.pointed_token].step if points else None
        return step is None or all(run.step != step for run in box.inks.runs)

    def add_to_menu(self, menu: QMenu, at: QPointF) -> None:
        menu.addAction(strings.MENU_COPY_MARKDOWN, lambda: to_clipboard(self._text.answer_source))
        if self.marks:
            copied = with_sources(self.table.text, self._text.answer_ranges, self.origins)
            menu.addAction(strings.MENU_COPY_WITH_SOURCES, lambda: to_clipboard(copied))
        if not self.can_edit:
            return
        menu.addSeparator()
        menu.addAction(strings.MENU_EDIT, lambda: self._act(EditAnswer(self._turn_id)))
        end = self._word_end(at)
        continued = ContinueFrom(self._turn_id, end)
        action = menu.addAction(strings.MENU_CONTINUE, lambda: self._act(continued))
        action.setEnabled(end > 0)
        menu.addSeparator()
        menu.addAction(strings.MENU_DELETE, lambda: self._act(DeleteMessage(self._turn_id)))

    def _word_end(self, at: QPointF) -> int:
        """The offset in the source after the word at `at`, or after the token that the keys point at; 0 if
        there is none.
        """
        if self.pointed_token >= 0 and self.hasFocus() and not self.underMouse():
            return self.table.range_of(self.pointed_token)[1]
        place = self.place_at(at, between=False)
        if place is None:
            return 0
        piece = self.boxes[place.piece].piece
        last = word_at(piece.text, place.char)[1] - 1
        # Some characters of formulas are not in the source.
        offsets = (source_at(piece.segments, char) for char in range(last, -1, -1))
        return next((offset + 1 for offset in offsets if offset is not None), 0)

    def is_of_model(self, token: int) -> bool:
        """Whether the model wrote the token with that index; False for −1 and for a person's text."""
        return token >= 0 and self.table[token].id != TYPED

    def token_rect(self, token: int) -> QRectF | None:
        """The rectangle of the token's first line on the canvas; None if it is not shown. Of what scrolls
        sideways, the visible part, or the edge beyond which the token is."""
        for number, low, high in self._shown_at(token):
            rect = self.rects_of(number, low, high)[0]
            if self.boxes[number].most_scroll:
                window = self.boxes[number].window.translated(MARGIN_PX, 0)
                rect.setLeft(min(max(rect.left(), window.left()), window.right()))
                rect.setRight(min(max(rect.right(), window.left()), window.right()))
            return rect
        return None

    def _shown_at(self, token: int) -> list[tuple[int, int, int]]:
        """The number of the piece with the token, and its characters [start, end) there without spaces before
        it. Empty if it is not shown."""
        shown = self.table.shown_by(token)
        for number, box in enumerate(self.boxes if shown is not None else ()):
            found = shown_range(box.piece.segments, *self.table.range_of(shown or 0))
            if found and not box.hidden:
                low, high = found
                while low < high - 1 and box.piece.text[low].isspace():
                    low += 1
                return [(number, low, high)]
        return []

    def lay_out_again(self) -> None:
        super().lay_out_again()
        self._place_heads()

    def show_formulas(self) -> None:
        super().show_formulas()
        self._place_heads()

    # ---- growing

    def _apply(self, change: TextChange) -> None:
        if self.is_given_up:
            return
        try:
            self._show(change)
        except Exception as error:
            self.give_up(error)

    def _show(self, change: TextChange) -> None:
        kept = self._selected_source()
        # The caret at the old end has to be erased.
        dirty_top = self.boxes[-1].bottom - theme.zoom * _CARET_LINE_PX if self.boxes else 0.0
        first = 0 if change.again else len(self.boxes) - self._open
        dirty_top = min(dirty_top, self._show_from(first, [*change.closed, *change.open]))
        self._open = len(change.open)
        for box in self.boxes[first:]:
            box.is_whole = True
        if self.boxes:
            self.boxes[-1].is_whole = not self._open
        self._select_source(kept)
        self._place_parts()
        # The geometry changes first: Qt shifts the screen on scrolling only if no update is pending.
        self.height_changed.emit()
        top = int(dirty_top) - 30
        self.update(0, top, self.width(), self.height() - top)

    def _show_from(self, first: int, pieces: Sequence[Piece]) -> float:
        """Replace the boxes from `first` on by `pieces`. Returns the top of the changed area.

        Boxes of equal pieces are kept, and the last box is extended if possible.
        """
        changed: list[float] = []
        for number, piece in enumerate(pieces, first):
            box = self.boxes[number] if number < len(self.boxes) else None
            if box and box.shows(piece):
                box.piece = piece
            elif box and number == len(self.boxes) - 1 and box.grows_to(piece):
                changed.append(self._grow(box, piece))
            else:
                del self.boxes[number:]
                self.append_pieces([piece])
                changed.append(self.boxes[-1].top)
        left = first + len(pieces)
        if left < len(self.boxes):
            changed.append(self.boxes[left].top)
            del self.boxes[left:]
        return min(changed, default=math.inf)

    def _grow(self, box: PieceBox, piece: Piece) -> float:
        changed = box.extend(piece)
        if box.is_inked:
            # The last token may have been shown without its line break.
            inks = box.inks.inks
            resume = inks[-1].token if inks else 0
            # The last run may grow, so its line is repainted.
            start = box.inks.runs[-1].start if box.inks.runs else 0
            first = max(0, min(start, inks[-1].start if inks else 0) - 1)
            changed = min(changed, box.layout.line_of(first))
            box.forget_marks(changed)
            box.inks.cut(piece.text, resume)
            self._ink_from(box.inks, piece, resume)
        return box.text_top + (box.layout.lines[changed].top if changed < len(box.layout.lines) else 0.0)

    def _made(self, piece: Piece, top: float, hidden: bool, rule_top: float) -> PieceBox:
        box = super()._made(piece, top, hidden, rule_top)
        box.ink_by(self._inks_of)
        return box

    def _inks_of(self, box: PieceBox) -> InkTable:
        inks = InkTable()
        self._ink_from(inks, box.piece, 0)
        return inks

    def _ink_from(self, inks: InkTable, piece: Piece, first_token: int) -> None:
        """Append the tints of `piece` from token `first_token` on."""
        table = self.table
        spans = list(spans_of(piece.segments, table, first_token))
        inks.extend(
            piece.text, spans, [(table.origin_of(span.token), table[span.token].step) for span in spans]
        )

    def _place_parts(self) -> None:
        self.place_copies()
        self._place_heads()

    def _place_heads(self) -> None:
        """Place a head above each thought."""
        boxes = [box for box in self.boxes if box.piece.kind == "thought"]
        known = {head.start: head for head in self._heads}
        for start in known.keys() - {box.piece.thought for box in boxes}:
            known[start].hide()
            known[start].deleteLater()
            self._heads.remove(known[start])
        for box in boxes:
            start = box.piece.thought
            if start not in known:
                head = ThoughtHead(start, self)
                head.setChecked(start in self._unfolded)
                head.toggled.connect(lambda unfold, start=start: self.unfold(start, unfold))
                self._heads.append(head)
                known[start] = head
            if start in self._text.call_at:
                known[start].show_call(self._text.call_at[start])
            elif start == self._text.repeats_from:
                known[start].show_text(strings.REPEATED, strings.REPEATED_SAYS, over=True)
            else:
                known[start].show_figures(*self._text.thought_figures(start))
            known[start].move(MARGIN_PX, round(box.top))
            known[start].show()
        self._place_images()

    def _place_images(self) -> None:
        """Place the images of the results that are unfolded."""
        wanted: dict[tuple[str, int], QRect] = {}
        for box in self.boxes:
            if box.piece.kind != "images" or box.hidden:
                continue
            call, side = self._text.call_at[box.piece.thought], px(IMAGE_PX)
            for number in range(len(call.images)):
                left = round(MARGIN_PX + box.text_left + number * (side + px(_IMAGE_GAP_PX)))
                wanted[call.id, number] = QRect(left, round(box.top), side, side)
        for gone in self._tiles.keys() - wanted.keys():
            tile = self._tiles.pop(gone)
            tile.hide()
            tile.deleteLater()
        for (call_id, number), rect in wanted.items():
            if (call_id, number) not in self._tiles:
                images = next(call.images for call in self._text.calls if call.id == call_id)
                opened = partial(self._act, OpenImage(images, number))
                tile = ImageTile(images[number], number + 1, len(images), self.images, opened, self)
                self._tiles[call_id, number] = tile
                tile.show()
            self._tiles[call_id, number].setGeometry(rect)

    def show_calls(self, calls: Sequence[CallRecord]) -> None:
        """Show the calls of the answer as they are now."""
        self._pauses = any(call.is_open for call in calls)
        change = self._text.show_calls(calls)
        if change is not None:
            self._apply(change)
        else:
            self._place_heads()
        self.update()

    def unfold(self, start: int, unfold: bool = True) -> None:
        """Unfold or fold the thought at source offset `start`."""
        if unfold == (start in self._unfolded):
            return
        (self._unfolded.add if unfold else self._unfolded.discard)(start)
        kept = self._selected_source()
        self.lay_out_again()
        self._select_source(kept)
        self.height_changed.emit()

    def reveal(self, number: int) -> None:
        start = self.boxes[number].piece.thought
        for head in self._heads:
            if head.start == start:
                head.setChecked(True)

    def is_hidden(self, piece: Piece) -> bool:
        return piece.thought >= 0 and piece.kind != "thought" and piece.thought not in self._unfolded

    # ---- the selection is kept when open pieces are replaced

    def _selected_source(self) -> tuple[int | None, int | None] | None:
        if self._selection is None:
            return None
        return self._source_of(self._selection.anchor), self._source_of(self._selection.head)

    def _source_of(self, place: TextPlace) -> int | None:
        place = min(place, everything(self.pieces).end)
        piece = self.boxes[place.piece].piece
        if place.char < len(piece.text):
            return source_at(piece.segments, place.char)
        last = source_at(piece.segments, place.char - 1) if place.char else None
        return None if last is None else last + 1

    def _select_source(self, kept: tuple[int | None, int | None] | None) -> None:
        if kept is None:
            return
        anchor, head = (self._place_of(offset) for offset in kept)
        self._selection = TextSelection(anchor, head) if anchor and head else None

    def _place_of(self, offset: int | None) -> TextPlace | None:
        if offset is None:
            return None
        for number, box in enumerate(self.boxes):
            segments = box.piece.segments
            if segments and offset <= segments[-1].source + segments[-1].length:
                return TextPlace(number, place_of(segments, offset))
        return None

    # ---- pointing

    def pointer_moved(self, point: QPointF | None) -> None:
        if self.mode == "origins":
            self.point_at_mark(self._mark_at(point), point)
            return
        token = -1
        if point is not None:
            place = self.place_at(point, between=False)
            source = source_at(self.boxes[place.piece].piece.segments, place.char) if place else None
            token = -1 if source is None else self.table.at(source)
        token = token if self.is_of_model(token) else -1
        self._point(token)

    def _mark_at(self, point: QPointF | None) -> Mark | None:
        place = None if point is None else self.place_at(point, between=False)
        source = source_at(self.boxes[place.piece].piece.segments, place.char) if place else None
        return None if source is None else mark_at(self.marks, source)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._released = event.position()
        super().mouseReleaseEvent(event)

    def _point(self, token: int) -> None:
        if token != self.pointed_token:
            self.point_at(token)
            self._on_pointed(token)

    def _step_to(self, token: int) -> None:
        """Point at a token with the keys, which bring it into view."""
        for number, start, end in self._shown_at(token):
            self.scroll_sideways(number, start, end)
        self._point(token)

    def _show_typed_link(self) -> None:
        """Show where a link goes that the keys point at, if its token has no tooltip: a person wrote it."""
        link, rect = self.link_of(self.pointed_token), self.token_rect(self.pointed_token)
        if link and rect and not self.is_of_model(self.pointed_token):
            self.show_address(link, rect)

    def text_clicked(self) -> None:
        mark = self._mark_at(self._released) if self.mode == "origins" else None
        if mark is None or not self._open_mark(mark):
            self._act(SelectAnswer(self._turn_id))

    def link_tip(self, point: QPointF) -> str:
        # The tooltip of a token has the address.
        return "" if self.pointed_token >= 0 else super().link_tip(point)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrow keys point at tokens, or at the marks of origins; Return opens the marked place."""
        if self.mode == "origins" and self.marks and not held(event) and self._mark_key(event.key()):
            return
        last = len(self.table) - 1
        keys = Qt.Key
        steps = {keys.Key_Right: self.pointed_token + 1, keys.Key_Left: self.pointed_token - 1}
        steps |= {keys.Key_Home: 0, keys.Key_End: last}
        if event.key() == keys.Key_Escape and self.pointed_token >= 0:
            self._point(-1)
        elif event.key() in (keys.Key_Return, keys.Key_Enter) and self.pointed_token >= 0:
            open_outside(self.link_of(self.pointed_token))
        elif event.key() in steps and not held(event) and last >= 0:
            self._step_to(max(0, min(last, steps[keys(event.key())])))
            self._show_typed_link()
        else:
            super().keyPressEvent(event)

    def _mark_key(self, key: int) -> bool:
        """Handle a key among the marks. Returns False if it does something else."""
        keys, marks = Qt.Key, self.marks
        at = next((n for n, mark in enumerate(marks) if mark is self.pointed_mark), -1)
        steps = {
            keys.Key_Right: at + 1,
            keys.Key_Left: at - 1,
            keys.Key_Home: 0,
            keys.Key_End: len(marks) - 1,
        }
        if key in steps:
            self.go_to_mark(marks[max(0, min(len(marks) - 1, steps[keys(key)]))])
        elif key in (keys.Key_Return, keys.Key_Enter) and self.pointed_mark is not None:
            self._open_mark(self.pointed_mark)
        elif key == keys.Key_Escape and self.pointed_mark is not None:
            self.point_at_mark(None)
        else:
            return False
        return True

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._point(-1)
        self.point_at_mark(None)
        super().focusOutEvent(event)

    # ---- painting

    def paint_under_text(self, painter: QPainter, box: PieceBox, lines: range) -> None:
        pointed = (
            Pointed(self.pointed_token, self.table[self.pointed_token].step)
            if self.pointed_token >= 0
            else None
        )
        if self.mode == "origins":
            shown = shown_marks(box.piece, self.marks, self.origins, self.pointed_mark)
            paint_origins(painter, box.layout, lines, shown, QPointF(box.text_left, box.text_top))
            return
        if self.mode == "off" or not (self._writing or pointed):
            return
        marks = box.marks(lines)
        if not self._writing and pointed:
            marks = [marks_of(box.layout, box.inks, number, pointed.step) for number in lines]

        def paint_between() -> None:
            if pointed:
                paint_pointed(painter, box.layout, box.inks, lines, pointed)

        is_thought = box.piece.thought >= 0 and box.piece.thought not in self._text.call_at
        opacity = _THOUGHT_TINT if is_thought else 1.0
        origin = QPointF(box.text_left, box.text_top)
        paint_marks(painter, marks, origin, opacity, paint_between)

    def paint_over_text(self, painter: QPainter) -> None:
        """Paint the caret while the answer is being generated."""
        if not self._writing or self._pauses:
            return
        x, middle = 0.0, 12.5
        box = next((box for box in reversed(self.boxes) if not box.hidden), None)
        if box and box.piece.kind == "thought":
            return  # its head shows the progress
        if box and box.layout.lines:
            line = box.layout.lines[-1]
            end = box.text_left + line.x_at(line.end)
            x = end - _CARET_GAP_PX - _CARET_WIDTH_PX if line.chunk.rtl else end + _CARET_GAP_PX
            if box.most_scroll:
                x = min(max(x, box.window.left()), box.window.right() - _CARET_WIDTH_PX)
            style = box.layout.style
            middle = box.text_top + line.baseline - style.baseline_px + style.line_px / 2
        caret_px = _CARET_HEIGHT_PX * theme.zoom
        painter.fillRect(
            QRectF(x, middle - caret_px / 2, _CARET_WIDTH_PX, caret_px),
            color("accent"),
        )

    def height_for(self, width: int) -> int:
        height = super().height_for(width)
        return max(height, 25) if self._writing else height
