"""TextCanvas: a column of laid-out pieces whose text can be selected and copied.

Owns layout, painting of plain text, and selection with mouse and keyboard. It stretches over the
reading column and `MARGIN_PX` more on each side, where tints and the focus ring may reach.
A text that it cannot lay out or paint it gives up, and says so in its place.
It is independent of tokens; `AnswerBody` adds them through `paint_under_text` and `pointer_moved`.

Screen readers read it as static text: Qt has no interface for text that a widget paints. Interfaces are
created when a screen reader requests them and live as long as their widget.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleInterface,
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAccessibleWidget, QMenu, QToolTip, QWidget

from app.controls.keys import held
from app.controls.shapes import draw_found, draw_ring, in_own_direction, show_tip
from app.richtext import strings
from app.richtext.canvas_menu import (
    CodeCopy,
    add_command,
    add_copy,
    add_select_all,
    open_outside,
    pop_up,
    to_clipboard,
)
from app.richtext.formulas import formulas
from app.richtext.markdown.piece import Piece, Styled, gap_px, report
from app.richtext.piece_box import PieceBox
from app.richtext.selection import (
    Match,
    Move,
    TextPlace,
    TextSelection,
    everything,
    moved,
    selected_pieces,
    selected_text,
    text_of,
    word_at,
)
from app.richtext.text_style import CodeColours, answer_style
from app.theme.theme import color, theme


class ReadAloud(QWidget):
    """A widget whose painted text is `readable_text`."""

    accessible: QAccessibleInterface | None = None

    @property
    def readable_text(self) -> str:
        """All that can be read in it, in order."""
        return ""


class AccessibleText(QAccessibleWidget):
    """Named by the widget's accessible name; its text is the value and the description."""

    def __init__(self, widget: ReadAloud) -> None:
        super().__init__(widget, QAccessible.Role.StaticText, widget.accessibleName())
        self._widget = widget

    def text(self, kind: QAccessible.Text) -> str:
        if kind in (QAccessible.Text.Value, QAccessible.Text.Description):
            return self._widget.readable_text
        return str(super().text(kind))


@cache
def make_readable() -> None:
    """Let screen readers read every `ReadAloud`. Once a process; needs an application."""
    QAccessible.installFactory(_interface_for)


def announce(widget: QWidget, message: str) -> None:
    """Have `message` spoken when nothing else is, if a screen reader listens."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, message))


def _interface_for(class_name: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, ReadAloud):
        return None
    interface = AccessibleText(target)
    # Qt keeps a bare pointer; without this reference Python would collect the object.
    target.accessible = interface
    return interface


MARGIN_PX = 8
FOCUS_RETURNS = (Qt.FocusReason.PopupFocusReason, Qt.FocusReason.ActiveWindowFocusReason)
_SELECTION_ALPHA = 70
_DRAG_MS = 30  # between two scroll steps during a selection
_KEY = QKeySequence.StandardKey
_MOVES: dict[QKeySequence.StandardKey, Move] = {
    _KEY.SelectPreviousChar: "left",
    _KEY.SelectNextChar: "right",
    _KEY.SelectPreviousWord: "word_left",
    _KEY.SelectNextWord: "word_right",
    _KEY.SelectPreviousLine: "up",
    _KEY.SelectNextLine: "down",
    _KEY.SelectStartOfLine: "home",
    _KEY.SelectEndOfLine: "end",
    _KEY.SelectStartOfDocument: "first",
    _KEY.SelectEndOfDocument: "last",
}


class WiderSelection(Protocol):
    """Who selects over several texts."""

    @property
    def text(self) -> str:
        """The text to copy."""
        ...

    @property
    def pieces(self) -> Sequence[Piece]:
        """The selected pieces and parts of pieces."""
        ...

    def select_all(self) -> None:
        """All of every text."""
        ...

    def begin(self, canvas: TextCanvas, place: TextPlace, extends: bool) -> bool:
        """Handle a press in `canvas`. Returns True if it extends the selection."""
        ...

    def drag(self, at: QPoint) -> None:
        """Continue a selection by mouse at the point `at` of the screen."""
        ...

    def release(self) -> None:
        """The mouse button was released."""
        ...

    def extend(self, canvas: TextCanvas, move: Move) -> None:
        """Move the end of the selection."""
        ...


class TextCanvas(ReadAloud):
    """Its owner calls `height_for(width)`, with the column's width, and `set_pieces`."""

    height_changed = Signal()
    gave_up = Signal()

    def __init__(self, size: tuple[float, int] | None = None, parent: QWidget | None = None) -> None:
        """`size` is the type size and line height of plain text, else an answer's."""
        super().__init__(parent)
        make_readable()
        self._size = size
        self._width = 720
        self.is_given_up = False
        self.quote: Callable[[], object] | None = None  # what its menu does to quote what copying would give
        self.boxes: list[PieceBox] = []
        self._selection: TextSelection | None = None
        self.beyond: WiderSelection | None = None  # who selects over several texts, if this is one of them
        self._copies: list[CodeCopy] = []
        self._found: tuple[Match, ...] = ()
        self._looked_at: Match | None = None
        self._clicked = True  # without a ring, until the keyboard gives it the focus
        self._link = ""  # where the link under the mouse goes
        self._colours = CodeColours(self)
        self._dragged_to = QPointF()
        self._drag_timer = QTimer(self, interval=_DRAG_MS)
        self._drag_timer.timeout.connect(lambda: self._drag_to(self._dragged_to))
        self.setCursor(Qt.CursorShape.IBeamCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        # Not at once: it may be in the midst of painting.
        self.gave_up.connect(self.height_changed, Qt.ConnectionType.QueuedConnection)
        theme.changed.connect(self._recolour)
        formulas().arrived.connect(self.show_formulas)

    # ---- content

    @property
    def pieces(self) -> Sequence[Piece]:
        return [box.piece for box in self.boxes]

    def set_pieces(self, pieces: Sequence[Piece]) -> None:
        """Show these instead."""
        self._lay_out(pieces)

    def let_go(self) -> None:
        """Release the layouts when the canvas is no longer shown. Waiting for Python's cycle collector would
        keep the layouts of a hundred answers in memory."""
        self.boxes = []

    def append_pieces(self, pieces: Sequence[Piece]) -> None:
        """Show these below."""
        for piece in pieces:
            self.boxes.append(self._box(piece))

    def height_for(self, width: int) -> int:
        """How high the text is in a column of that width. Lays out again if the width is another."""
        if width != self._width:
            self._width = width
            self.lay_out_again()
        return round(self.boxes[-1].bottom) if self.boxes else 0

    def lay_out_again(self) -> None:
        """Rebuild all boxes from their pieces; sideways scrolling is kept."""
        scrolled = [(number, box.scroll) for number, box in enumerate(self.boxes) if box.scroll]
        self._lay_out(self.pieces)
        for number, scroll in scrolled:
            if number < len(self.boxes):
                self.boxes[number].scroll_by(scroll - self.boxes[number].scroll)

    def show_formulas(self) -> None:
        """Lay out again what awaited its formulas; the places of characters stay."""
        moved_px = 0.0
        waited = False
        try:
            for number, box in enumerate(self.boxes):
                box.move_by(moved_px)
                if box.hidden or not box.layout.awaits_formulas:
                    continue
                waited = True
                fresh = self._made(box.piece, box.top, box.hidden, box.rule_top)
                fresh.is_whole = box.is_whole
                moved_px += fresh.bottom - box.bottom
                self.boxes[number] = fresh
            if waited:
                self.place_copies()
        except Exception as error:
            self.give_up(error)
        if waited:
            self.height_changed.emit()
            self.update()

    def _lay_out(self, pieces: Sequence[Piece]) -> None:
        self.boxes = []
        try:
            self.append_pieces(pieces)
            self.place_copies()
        except Exception as error:
            self.give_up(error)
        self.update()

    def give_up(self, error: Exception) -> None:
        """The text cannot be shown: say so where it would be."""
        report(self.accessibleName(), error)
        self.boxes, self._selection, self._found = [], None, ()
        if not self.is_given_up:  # else that sentence cannot be shown, either
            self.is_given_up = True
            self._lay_out([Piece("text", strings.UNSHOWN, (), 0, 0)])
            self.gave_up.emit()

    def place_copies(self) -> None:
        """One Copy button for each code block, in its header."""
        boxes = self.boxes_to_copy()
        while len(self._copies) < len(boxes):
            self._copies.append(CodeCopy(self))
        while len(self._copies) > len(boxes):
            gone = self._copies.pop()
            gone.hide()
            gone.deleteLater()
        for box, button in zip(boxes, self._copies):
            button.show_code(box.piece.text, MARGIN_PX + box.frame.right(), box.top)

    def boxes_to_copy(self) -> list[PieceBox]:
        """The code blocks that have a Copy button."""
        return [box for box in self.boxes if box.is_code and not box.hidden]

    def _box(self, piece: Piece) -> PieceBox:
        above = next((box for box in reversed(self.boxes) if not box.hidden), None)
        hidden = self.is_hidden(piece)
        bottom = above.bottom if above else 0.0
        top = bottom + theme.zoom * gap_px(above.piece, piece) if above and not hidden else bottom
        goes_on = (
            above is not None
            and above.piece.kind != "thought"
            and (
                (piece.thought >= 0 and above.piece.thought == piece.thought)
                or (piece.quotes and above.piece.quotes >= piece.quotes)
            )
        )
        return self._made(piece, top, hidden, bottom if goes_on else top)

    def _made(self, piece: Piece, top: float, hidden: bool, rule_top: float) -> PieceBox:
        return PieceBox(
            piece,
            top,
            self._width,
            answer_style(*self._size, zoom=theme.zoom) if self._size and piece.kind == "text" else None,
            hidden=hidden,
            rule_top=rule_top,
        )

    def reveal(self, number: int) -> None:
        """Let piece `number` be seen."""

    def is_hidden(self, piece: Piece) -> bool:
        """Whether `piece` is not to be seen now."""
        return False

    # ---- selection

    @property
    def selection(self) -> TextSelection | None:
        """The selection in this canvas; None if there is none."""
        return None if self._selection and self._selection.is_empty else self._selection

    @property
    def copied_text(self) -> str:
        """The text to copy, also from other canvases; empty without a selection."""
        return self.beyond.text if self.beyond else self.selected_text

    @property
    def selected_text(self) -> str:
        """The selected text of this canvas."""
        return text_of(self.selected_pieces)

    @property
    def selected_pieces(self) -> Sequence[Piece]:
        """The selected pieces and parts of pieces of this canvas."""
        chosen = self.selection
        return selected_pieces(self.pieces, chosen, self.is_hidden) if chosen else ()

    @property
    def readable_text(self) -> str:
        return selected_text(self.pieces, everything(self.pieces), self.is_hidden) if self.boxes else ""

    def select_all(self) -> None:
        """All of this text, and of those beyond."""
        if self.beyond:
            self.beyond.select_all()
        else:
            self.show_selection(everything(self.pieces))

    def show_selection(self, selection: TextSelection | None) -> None:
        """Select this instead. An empty one is kept: it is where dragging starts from."""
        if selection != self._selection:
            self._selection = selection
            self.update()

    def copy(self) -> bool:
        """Put the selected text on the clipboard. False if nothing is selected."""
        text = self.copied_text
        if text:
            to_clipboard(text, self.beyond.pieces if self.beyond else self.selected_pieces)
        return bool(text)

    def show_found(self, found: tuple[Match, ...], looked_at: Match | None) -> None:
        """Mark these, and the one that is looked at more strongly."""
        if (found, looked_at) != (self._found, self._looked_at):
            self._found, self._looked_at = found, looked_at
            if looked_at and looked_at.piece < len(self.boxes):
                self.scroll_sideways(looked_at.piece, looked_at.start, looked_at.end)
            self.update()

    def scroll_sideways(self, number: int, start: int, end: int) -> None:
        """Bring characters of piece `number` into view, if it scrolls sideways."""
        if self.boxes[number].most_scroll:
            rect = self.rects_of(number, start, end)[0].translated(-MARGIN_PX, 0)
            self.boxes[number].scroll_to(rect.left(), rect.right())
            self.update()

    def select_to(self, point: QPointF) -> None:
        """Let the selection end at `point`."""
        place = self.place_at(point, between=True)
        if self._selection and place:
            self._selection = TextSelection(self._selection.anchor, place)
            self.update()

    def place_at(self, point: QPointF, between: bool) -> TextPlace | None:
        """The place nearest to `point` (`between`), or the character it is on, if it is on one."""
        x, y = point.x() - MARGIN_PX, point.y()
        for number, box in enumerate(self.boxes):
            if box.hidden:
                continue
            inside = box.text_top <= y < box.text_top + box.layout.height
            if not box.layout.lines or not (inside or between):
                continue
            if box.most_scroll and not box.window.left() <= x < box.window.right():
                if not between:
                    return None
                x = min(max(x, box.window.left()), box.window.right())
            if between and y >= box.bottom and any(not later.hidden for later in self.boxes[number + 1 :]):
                continue
            line = box.layout.lines[box.layout.line_near(x - box.text_left, y - box.text_top)]
            if not between and not line.left <= x - box.text_left < line.right:
                return None
            char = line.char_at(x - box.text_left, between)
            return TextPlace(number, max(line.start, min(char, line.end)))
        return None

    def rects_of(self, number: int, start: int, end: int) -> list[QRectF]:
        """Where characters of piece `number` are on the canvas; the last ones for hidden characters."""
        box = self.boxes[min(number, len(self.boxes) - 1)]
        last = len(box.piece.text)
        found = box.layout.rects(min(start, last), min(end, last))
        for rect in found:
            rect.translate(MARGIN_PX + box.text_left, box.text_top)
        return found

    def code_at(self, point: QPointF) -> str:
        """The code block at `point`; empty if there is none."""
        for box in self.boxes:
            if box.is_code and not box.hidden and box.top <= point.y() < box.bottom:
                return box.piece.text
        return ""

    def link_at(self, point: QPointF) -> str:
        """Where the link at `point` goes; empty if there is none."""
        place = self.place_at(point, between=False)
        return self.boxes[place.piece].piece.link_at(place.char) if place else ""

    # ---- hooks

    def code_is_coloured(self, box: PieceBox) -> bool:
        """Whether the words of a code block have colours of their own now."""
        return True

    def text_passes(self, box: PieceBox, lines: range) -> list[tuple[QColor, QPainterPath | None]]:
        """The colours in which the text of `lines` is drawn in turn, and where; None: everywhere."""
        quiet = box.piece.quotes or box.piece.thought >= 0
        return [(color("text2" if quiet else "text"), None)]

    def text_clicked(self) -> None:
        """Called when the text is clicked where it has no link."""

    def add_to_menu(self, menu: QMenu, at: QPointF) -> None:
        """Called before the context menu opens at `at`."""

    def paint_under_text(self, painter: QPainter, box: PieceBox, lines: range) -> None:
        """Called before the text of `lines` is painted; the painter's origin is the column's left."""

    def pointer_moved(self, point: QPointF | None) -> None:
        """Called when the mouse moves without a button, and with None when it leaves."""

    def paint_over_text(self, painter: QPainter) -> None:
        """Called after everything else."""

    # ---- links

    def show_address(self, address: str, rect: QRectF) -> None:
        """Show in a tooltip, and to a screen reader, where the link at `rect` on the canvas goes."""
        QToolTip.showText(self.mapToGlobal(rect.bottomLeft().toPoint()), in_own_direction(address), self)
        announce(self, address)

    def _links(self) -> list[tuple[int, Styled]]:
        """The visible links in reading order, each with the number of its box."""
        boxes = [(number, box.piece) for number, box in enumerate(self.boxes) if not box.hidden]
        return [(number, each) for number, piece in boxes for each in piece.styles if each.style == "link"]

    def _step_link(self, forward: bool) -> bool:
        """Select the link after, or before, the selection's anchor and show its address, if there is one."""
        at = self._selection.anchor if self._selection else None
        links = self._links() if forward else self._links()[::-1]
        for number, link in links:
            place = TextPlace(number, link.start)
            if at is None or (place > at if forward else place < at):
                if self.beyond:
                    self.beyond.begin(self, place, False)
                self.show_selection(TextSelection(place, TextPlace(number, link.end)))
                self.scroll_sideways(number, link.start, link.end)
                self.show_address(link.target, self.rects_of(number, link.start, link.end)[0])
                return True
        return False

    def _selected_link(self) -> str:
        """Where the link goes that is selected as a whole; empty if none is."""
        for number, link in self._links() if self._selection else ():
            if self._selection == TextSelection(TextPlace(number, link.start), TextPlace(number, link.end)):
                return link.target
        return ""

    # ---- events

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            show_tip(event, self, self.link_tip(event.pos().toPointF()))
            return True
        return super().event(event)

    def link_tip(self, point: QPointF) -> str:
        """The tooltip at `point`: where a link goes."""
        return self.link_at(point)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        try:
            self._paint(painter, event)
        except Exception as error:
            self.give_up(error)
        if self.hasFocus() and not self._clicked:
            painter.resetTransform()
            draw_ring(painter, QRectF(self.rect()), 6)
        painter.end()

    def _paint(self, painter: QPainter, event: QPaintEvent) -> None:
        painter.translate(MARGIN_PX, 0)
        clip = QRectF(event.rect()).translated(-MARGIN_PX, 0)
        # One line more above and below: outlines and glyphs reach over.
        for number in self._between(clip.top() - 25, clip.bottom() + 25):
            box = self.boxes[number]
            if box.hidden:
                continue
            lines = box.lines_in(clip.adjusted(0, -25, 0, 25))
            box.paint_around(painter)
            painter.save()
            try:
                self._paint_box(painter, number, box, lines, clip)
            finally:
                painter.restore()
            box.paint_scroll_bar(painter)
        self.paint_over_text(painter)

    def _paint_box(self, painter: QPainter, number: int, box: PieceBox, lines: range, clip: QRectF) -> None:
        if box.most_scroll:
            painter.setClipRect(box.window, Qt.ClipOperation.IntersectClip)
        box.paint_behind(painter, lines)
        self.paint_under_text(painter, box, lines)
        self._paint_found(painter, number, box)
        self._paint_selection(painter, number, box)
        coloured = len(lines) and box.is_code and self.code_is_coloured(box)
        colours = self._colours.of(box, box.piece, whole=box.is_whole) if coloured else ()
        for pen, where in self.text_passes(box, lines) if len(lines) else ():
            painter.save()
            painter.setPen(pen)
            if where is not None:
                painter.setClipPath(where, Qt.ClipOperation.IntersectClip)
            box.layout.draw(painter, box.text_left, box.text_top, clip, colours)
            painter.restore()

    def _between(self, above: float, below: float) -> range:
        """The numbers of the boxes that touch those heights, without a look at all the others."""
        first = bisect_left(self.boxes, above, key=lambda box: box.bottom)
        return range(first, bisect_right(self.boxes, below, lo=first, key=lambda box: box.top))

    def _paint_selection(self, painter: QPainter, number: int, box: PieceBox) -> None:
        chosen = self._selection and self._selection.in_piece(number, len(box.piece.text))
        if not chosen:
            return
        color = theme.color("accent")
        color.setAlpha(_SELECTION_ALPHA)
        for rect in box.layout.rects(*chosen):
            painter.fillRect(rect.translated(box.text_left, box.text_top), color)

    def _paint_found(self, painter: QPainter, number: int, box: PieceBox) -> None:
        for match in self._found:
            if match.piece != number or match.end > len(box.piece.text):
                continue
            for rect in box.layout.rects(match.start, match.end):
                area = rect.translated(box.text_left, box.text_top)
                draw_found(painter, area, color("accent"), match == self._looked_at)

    def focusInEvent(self, event: QFocusEvent) -> None:
        if event.reason() not in FOCUS_RETURNS:
            self._clicked = event.reason() is Qt.FocusReason.MouseFocusReason
        super().focusInEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._clicked:
            self._clicked = True
            self.update()
        if event.button() != Qt.MouseButton.LeftButton:
            return
        place = self.place_at(event.position(), between=True)
        if place is None:
            return
        extends = bool(held(event) & Qt.KeyboardModifier.ShiftModifier)
        self.pointer_moved(None)
        if self.beyond and self.beyond.begin(self, place, extends):
            return
        anchor = self._selection.anchor if extends and self._selection else place
        self.show_selection(TextSelection(anchor, place))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not event.buttons() & Qt.MouseButton.LeftButton:
            self._point_at_link(self.link_at(event.position()))
            self.pointer_moved(event.position())
            return
        self._drag_to(event.position())

    def _drag_to(self, point: QPointF) -> None:
        """Extend the selection to `point`. Its first box scrolls while the mouse is at the box's edge."""
        self._dragged_to = point
        box = self._box_at(point.y())
        began = self._selection.anchor.piece if self._selection else -1
        if box and box is self.boxes[began] and box.scroll_by(box.drag_step(point.x() - MARGIN_PX)):
            self._drag_timer.start()
            self.update()
        else:
            self._drag_timer.stop()
        self.select_to(point)
        if self.beyond:
            self.beyond.drag(self.mapToGlobal(point.toPoint()))

    def _box_at(self, y: float) -> PieceBox | None:
        """The box that scrolls sideways at the height `y`, if any."""
        boxes = (self.boxes[number] for number in self._between(y, y))
        return next((box for box in boxes if box.most_scroll and box.top <= y < box.bottom), None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways it scrolls the wide piece under the pointer; all else is the transcript's."""
        moved = event.pixelDelta() if not event.pixelDelta().isNull() else event.angleDelta() / 3
        sideways = (
            moved.y() if held(event) & Qt.KeyboardModifier.ShiftModifier and not moved.x() else moved.x()
        )
        box = self._box_at(event.position().y())
        if box is None or (abs(moved.y()) > abs(moved.x()) and sideways != moved.y()):
            event.ignore()
        elif box.scroll_by(-sideways):
            self.pointer_moved(event.position())
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag_timer.stop()
        if self.beyond:
            self.beyond.release()
        clicked = not self.copied_text
        self.show_selection(self.selection)
        if clicked and event.button() == Qt.MouseButton.LeftButton:
            link = self.link_at(event.position())
            open_outside(link) if link else self.text_clicked()

    def _point_at_link(self, link: str) -> None:
        if link != self._link:
            self._link = link
            hand, beam = Qt.CursorShape.PointingHandCursor, Qt.CursorShape.IBeamCursor
            self.setCursor(hand if link else beam)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self.place_at(event.position(), between=False)
        if place:
            box = self.boxes[place.piece]
            low, high = word_at(box.piece.text, place.char)
            low, high = box.layout.around(low, back=True), box.layout.around(high, back=False)
            self.show_selection(TextSelection(TextPlace(place.piece, low), TextPlace(place.piece, high)))

    def leaveEvent(self, event: object) -> None:
        self._point_at_link("")
        self.pointer_moved(None)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        at = event.pos().toPointF()
        menu = self.menu_at(at)
        self.add_to_menu(menu, at)
        pop_up(menu, event.globalPos())

    def menu_at(self, at: QPointF) -> QMenu:
        """The commands for the point `at`; the caller shows the menu and deletes it."""
        menu = QMenu(self)
        add_copy(menu, self.copy, enabled=bool(self.copied_text))
        if self.quote:
            add_command(menu, strings.MENU_QUOTE, self.quote).setEnabled(bool(self.copied_text))
        code, link = self.code_at(at), self.link_at(at)
        if code:
            add_command(menu, strings.MENU_COPY_CODE, lambda: to_clipboard(code))
        if link:
            add_command(menu, strings.MENU_OPEN_LINK, lambda: open_outside(link))
            add_command(menu, strings.MENU_COPY_LINK, lambda: to_clipboard(link))
        add_select_all(menu, self.select_all)
        return menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) and self.copy():
            return
        if event.matches(QKeySequence.StandardKey.SelectAll) and self.boxes:
            self.select_all()
            return
        for key, move in _MOVES.items():
            if event.matches(key) and self.boxes:
                self._extend(move)
                return
        keys = Qt.Key
        if event.key() in (keys.Key_Left, keys.Key_Right) and not held(event):
            if self._step_link(event.key() == keys.Key_Right):
                return
        elif event.key() in (keys.Key_Return, keys.Key_Enter) and open_outside(self._selected_link()):
            return
        event.ignore()

    def _extend(self, move: Move) -> None:
        """Move the end of the selection; without one it starts where the text does."""
        if self.beyond:
            self.beyond.extend(self, move)
            return
        start = self._selection or TextSelection(TextPlace(0, 0), TextPlace(0, 0))
        head = moved(self.boxes, start.head, move)
        self.show_selection(TextSelection(start.anchor, head))
        self.scroll_sideways(head.piece, head.char, head.char)

    def _recolour(self) -> None:
        """Link colours are in the layouts; everything else is read while painting."""
        self.lay_out_again()
