"""DocumentView: a document's text with the read parts marked, for texts of any length.

Only visible blocks are laid out. Other heights are estimated until they are measured, a few milliseconds at a
time while idle, without moving the visible text. Read parts have a tint and a bar; all other text is dim.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QHideEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QShowEvent,
    QTextLayout,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QMenu, QWidget

from app.chat.reading_map import Stretch
from app.controls.focus_ring import FocusRing
from app.controls.scroll_bar import DragScroll
from app.controls.shapes import draw_found
from app.panels import strings
from app.panels.document_paint import (
    LEFT_PX,
    NO_MATCHES,
    RIGHT_PX,
    TEXT_LEFT_PX,
    TEXT_RIGHT_PX,
    BlockPainter,
    BlockPart,
    DocumentLayouts,
    DocumentMeasures,
    Matches,
    TextBlock,
    block_at,
    blocks_of,
    characters,
    in_units,
    parts_of,
)
from app.richtext.canvas_menu import add_copy, add_select_all, pop_up, to_clipboard
from app.richtext.selection import word_at
from app.theme.theme import color, system_reduces_motion, theme

_START_PX, _END_PX = 8.0, 24
_SELECTED_ALPHA = 0.28  # as in answers
_MEASURING_S = 0.004
# An odd number of half periods: the flash begins strong and ends at the mark's strength.
_FLASHES, _FLASH_MS = 5, 220


class DocumentView(QAbstractScrollArea):
    """`moved` is emitted when other characters are visible."""

    moved = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._measures = DocumentMeasures(theme.zoom)
        self.text = ""
        self._blocks: tuple[TextBlock, ...] = ()
        self._starts: list[int] = []
        self._shown: list[int] = []
        self.stretches: tuple[Stretch, ...] = ()
        self._stretch_starts: list[int] = []
        self._marked = False
        self._kept_only = False
        self.current_stretch = -1  # the one that was jumped to
        self.place: Stretch | None = None  # marked by `show_place`
        self._flashes = 0
        self._flash_timer = QTimer(self, interval=_FLASH_MS)
        self._flash_timer.timeout.connect(self._flash)
        self._matches = NO_MATCHES
        self._anchor = 0  # the character where a selection begins
        self._selected: Stretch | None = None
        self._drag = DragScroll(self, self._extend_to_pointer)
        self._pointer = QPointF()
        self._heights: list[float] = []
        self._measured: list[bool] = []
        self._tops: list[float] = []
        self._layouts = DocumentLayouts(self._measures)
        self._next_measure = 0
        self._moving = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(strings.DOCUMENT_TEXT)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self._ring = FocusRing(self, 0)
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._measure_some)
        self.verticalScrollBar().setSingleStep(self._measures.line_px)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        theme.changed.connect(self._recolor)
        theme.zoomed.connect(self._zoomed)
        self._recolor()

    # ---- display

    def show_text(self, text: str) -> None:
        """Show another document from its beginning, without marks."""
        self.text = text
        self._blocks = blocks_of(text)
        self._starts = [block.start for block in self._blocks]
        self.stretches, self._stretch_starts, self._marked = (), [], False
        self.current_stretch, self._selected = -1, None
        self._leave_place()
        self._choose_shown()
        self.verticalScrollBar().setValue(0)

    def show_stretches(self, stretches: Sequence[Stretch], marked: bool = True) -> None:
        """Set the read stretches. Not `marked`: everything was read, and nothing is dim."""
        self.stretches, self._marked = tuple(stretches), marked
        self._stretch_starts = [stretch.first for stretch in stretches]
        self.current_stretch = -1
        self._layouts.clear()
        if self._kept_only:
            self._choose_shown()
        self.viewport().update()

    def set_kept_only(self, kept_only: bool) -> None:
        """Hide the paragraphs without read text."""
        if kept_only != self._kept_only:
            first, _ = self.visible_characters()
            self._kept_only = kept_only
            self._choose_shown()
            self.scroll_to_character(first)

    def show_matches(self, matches: Matches) -> None:
        """Mark the matches of a search, and go to the current one."""
        self._matches = matches
        if matches.current >= 0:
            self.scroll_to_character(matches.starts[matches.current], self.viewport().height() // 4)
        self.viewport().update()

    def shows(self, character: int) -> bool:
        """Whether the paragraph of the character is displayed."""
        wanted = block_at(self._starts, character)
        return bool(self._shown) and self._shown[block_at(self._shown, wanted)] == wanted

    @property
    def current_text(self) -> str:
        """The text of the current stretch or of the marked characters; empty without either."""
        if self.place is not None:
            return self.text[self.place.first : self.place.last].strip()
        if self.current_stretch < 0:
            return ""
        stretch = self.stretches[self.current_stretch]
        return self.text[stretch.first : stretch.last].strip()

    @property
    def laid_out(self) -> int:
        """The number of blocks with a layout."""
        return len(self._layouts)

    # ---- places

    def visible_characters(self) -> tuple[int, int]:
        """The visible characters, end-exclusive."""
        if not self._shown:
            return (0, 0)
        top = self.verticalScrollBar().value()
        bottom = top + self.viewport().height()
        first, last = self._place_at(top), self._place_at(max(top, bottom - 1))
        start, end = self._blocks[self._shown[first]], self._blocks[self._shown[last]]
        return (
            start.start + self._into(first, top),
            end.start + max(1, self._into(last, bottom)),
        )

    def scroll_to_character(self, character: int, margin_px: int = 0) -> None:
        """Scroll the line of `character` to the top, or this far below it."""
        if not self._shown:
            return
        wanted = block_at(self._starts, character)
        place = block_at(self._shown, wanted)
        # Measure the blocks in between first, so that the position is exact.
        for near in range(max(0, place - 8), min(len(self._shown), place + 60)):
            self._measure(near)
        self._retop()
        line_px = 0.0
        if self._shown[place] == wanted:
            line = self._layout(place).lineForTextPosition(character - self._blocks[wanted].start)
            line_px = line.y() if line.isValid() else 0.0
        y = self._tops[place] + line_px - margin_px
        self.verticalScrollBar().setValue(round(y) if y > _START_PX + self._measures.line_px / 2 else 0)

    def jump(self, steps: int) -> bool:
        """Go to the next (1) or previous (−1) read stretch. Returns False if there is none."""
        if not self.stretches:
            return False
        if self.current_stretch >= 0:
            target = self.current_stretch + steps
        else:
            first, _ = self.visible_characters()
            after = block_at(self._stretch_starts, first)
            ahead = self.stretches[after].first >= first
            target = after + (min(0, steps) if ahead else max(0, steps))
        if not 0 <= target < len(self.stretches):
            return False
        self.select_stretch(target)
        return True

    def show_place(self, first: int, last: int) -> None:
        """Mark exactly these characters, centred, with a flash, and announce them to screen readers.

        They stay marked and centred, even in a view that is resized only then, until a person scrolls.
        """
        if not self.text:
            return
        self.current_stretch, self.place = -1, Stretch(first, last)
        self._centre_place()
        self._flashes = 0 if system_reduces_motion() else _FLASHES
        self._flash_timer.start()
        self.setAccessibleDescription(self.text[first:last].strip())
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))
        self.viewport().update()

    def _centre_place(self) -> None:
        place = self.place
        if place is not None:
            middle = (place.first + place.last) // 2
            self.scroll_to_character(middle, (self.viewport().height() - self._measures.line_px) // 2)
            self.place = place  # now: later scrolling by the person ends it

    def _flash(self) -> None:
        self._flashes -= 1
        if self._flashes <= 0:
            self._flash_timer.stop()
        self.viewport().update()

    def select_stretch(self, number: int) -> None:
        """Select a stretch and announce it to screen readers."""
        self.place = None
        stretch = self.stretches[number]
        self.scroll_to_character(stretch.first, self.viewport().height() // 4)
        self.current_stretch = number  # now: later scrolling by the person ends it
        words = self.text[stretch.first : stretch.last].strip()
        spoken = strings.PASSAGE_OF.format(number=number + 1, count=len(self.stretches), text=words)
        self.setAccessibleDescription(spoken)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))
        self.viewport().update()

    # ---- selection

    @property
    def selected_text(self) -> str:
        """The selected part of the document as it is in the file; empty without a selection."""
        return "" if self._selected is None else self.text[self._selected.first : self._selected.last]

    def copy(self) -> None:
        """Copy the selected text."""
        if self.selected_text:
            to_clipboard(self.selected_text)

    def select_all(self) -> None:
        """Select the whole document."""
        self._select(0, len(self.text))

    def _select(self, first: int, last: int) -> None:
        self._selected = Stretch(min(first, last), max(first, last)) if first != last else None
        self.viewport().update()

    def _extend_to_pointer(self) -> None:
        self._select(self._anchor, self._character_at(self._pointer))

    def _character_at(self, point: QPointF) -> int:
        """The character whose left edge is nearest to `point` of the viewport."""
        if not self._shown:
            return 0
        y = point.y() + self.verticalScrollBar().value()
        place = self._place_at(y)
        block, layout = self._blocks[self._shown[place]], self._layout(place)
        row = (y - self._tops[place] - self._measures.pads(block)[0]) // self._measures.line_of(block)
        line = layout.lineAt(max(0, min(layout.lineCount() - 1, int(row))))
        position = line.xToCursor(point.x() - LEFT_PX - TEXT_LEFT_PX)
        return block.start + characters(layout.text(), position)

    # ---- Qt

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._pointer = event.position()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._extend_to_pointer()
        else:
            self._anchor = self._character_at(self._pointer)
            self._select(self._anchor, self._anchor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._pointer = event.position()
            self._extend_to_pointer()
            self._drag.drag(event.globalPosition().toPoint())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag.stop()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if not self._blocks:
            return
        at = self._character_at(event.position())
        block = self._blocks[block_at(self._starts, at)]
        first, last = word_at(self.text[block.start : block.end], at - block.start)
        self._anchor = block.start + first
        self._select(self._anchor, block.start + last)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        add_copy(menu, self.copy, enabled=bool(self.selected_text))
        add_select_all(menu, self.select_all)
        pop_up(menu, event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
            return
        bar = self.verticalScrollBar()
        steps = {
            Qt.Key.Key_Up: -bar.singleStep(),
            Qt.Key.Key_Down: bar.singleStep(),
            Qt.Key.Key_PageUp: -bar.pageStep(),
            Qt.Key.Key_PageDown: bar.pageStep(),
            Qt.Key.Key_Space: bar.pageStep(),
            Qt.Key.Key_Home: -bar.maximum(),
            Qt.Key.Key_End: bar.maximum(),
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            super().keyPressEvent(event)
        else:
            bar.setValue(bar.value() + step)

    def _zoomed(self) -> None:
        self._measures = DocumentMeasures(theme.zoom)
        self._layouts = DocumentLayouts(self._measures)
        self.verticalScrollBar().setSingleStep(self._measures.line_px)
        self._lay_out_again()

    def _lay_out_again(self) -> None:
        """Lay out for a new width; the visible text stays."""
        first = self.visible_characters()[0] if self._tops else 0
        current = self.current_stretch
        self._choose_shown()
        if self.place is not None:
            self._centre_place()
        elif current >= 0:
            self.select_stretch(current)
        else:
            self.scroll_to_character(first)

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().width() != event.oldSize().width():
            self._lay_out_again()
        else:
            self._set_range()

    def showEvent(self, event: QShowEvent) -> None:
        self._go_on_measuring()

    def hideEvent(self, event: QHideEvent) -> None:
        self._timer.stop()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint and isinstance(event, QPaintEvent):
            self._paint()
            return True
        return super().viewportEvent(event)

    def _paint(self) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(self.viewport().rect(), color("window"))
        if not self._shown:
            return
        top = self.verticalScrollBar().value()
        bottom = top + self.viewport().height()
        place = self._place_at(top)
        y = self._tops[place] - top
        block_painter = BlockPainter(self._measures, self.viewport().width(), self.current_stretch)
        accent = color("accent")
        selected = QColor(accent)
        selected.setAlphaF(_SELECTED_ALPHA)
        changed = False
        while place < len(self._shown) and y < bottom - top:
            changed |= self._measure(place)
            block, layout = self._blocks[self._shown[place]], self._layout(place)
            parts = self._units(block) if self._marked else None
            block_painter.paint(painter, block, layout, parts, y, self._heights[place])
            text_y = y + self._measures.pads(block)[0]
            for part in in_units(self._matches.within(block), self._text_of(block)):
                for row in block_painter.rows(layout, part, text_y):
                    draw_found(painter, row, accent, part.stretch == self._matches.current)
            for part in self._parts_of(block, self._selected):
                for row in block_painter.rows(layout, part, text_y):
                    painter.fillRect(row, selected)
            for part in self._parts_of(block, self.place):
                for row in block_painter.rows(layout, part, text_y):
                    draw_found(painter, row, accent, self._flashes % 2 == 1)
                    painter.fillRect(QRectF(row.left(), row.bottom() - 1.5, row.width(), 1.5), accent)
            y += self._heights[place]
            place += 1
        if changed:
            self._retop()
        self._layouts.drop_oldest()

    # ---- measuring

    def _choose_shown(self) -> None:
        """Select the displayed blocks and estimate their heights."""
        numbers = range(len(self._blocks))
        if self._kept_only and self._marked:
            self._shown = [number for number in numbers if self._parts(self._blocks[number])]
        else:
            self._shown = list(numbers)
        self._layouts.clear()
        letter_px = QFontMetricsF(self._measures.font()).averageCharWidth()
        per_line = max(4.0, self._text_width() / max(1.0, letter_px))
        self._heights = [self._guess(self._blocks[number], per_line) for number in self._shown]
        self._measured = [False] * len(self._shown)
        self._next_measure = 0
        self._retop()
        self._go_on_measuring()
        self.viewport().update()

    def _guess(self, block: TextBlock, per_line: float) -> float:
        lines = math.ceil((block.end - block.start) / per_line)
        return sum(self._measures.pads(block)) + max(1, lines) * self._measures.line_of(block)

    def _measure(self, place: int) -> bool:
        """Lay out the block; returns whether its height differs from the estimate."""
        if self._measured[place]:
            return False
        block = self._blocks[self._shown[place]]
        lines = self._layout(place).lineCount()
        height = sum(self._measures.pads(block)) + lines * self._measures.line_of(block)
        changed = height != self._heights[place]
        self._heights[place], self._measured[place] = height, True
        return changed

    def _measure_some(self) -> None:
        until_s = time.perf_counter() + _MEASURING_S
        changed = False
        while self._next_measure < len(self._shown) and time.perf_counter() < until_s:
            place = self._next_measure
            self._next_measure += 1
            if not self._measured[place]:
                changed = self._measure(place) or changed
                self._layouts.drop(self._shown[place])
        if changed:
            self._retop()
        if self._next_measure >= len(self._shown):
            self._timer.stop()

    def _go_on_measuring(self) -> None:
        if self.isVisible() and self._next_measure < len(self._shown):
            self._timer.start()

    def _retop(self) -> None:
        """Compute tops from heights; the block at the upper edge stays in position."""
        anchor, into = -1, 0.0
        if self._tops and len(self._tops) == len(self._heights) + 1:
            value = self.verticalScrollBar().value()
            anchor = self._place_at(value)
            into = value - self._tops[anchor]
        self._tops = list(accumulate(self._heights, initial=_START_PX))
        self._set_range()
        if anchor >= 0:
            self._moving = True
            self.verticalScrollBar().setValue(round(self._tops[anchor] + into))
            self._moving = False
        self.moved.emit()

    def _set_range(self) -> None:
        bar = self.verticalScrollBar()
        height = self.viewport().height()
        self._moving = True
        bar.setPageStep(max(1, height - self._measures.line_px))
        bar.setRange(0, max(0, round(self._tops[-1] if self._tops else 0) + _END_PX - height))
        self._moving = False

    def _scrolled(self) -> None:
        self.viewport().update()
        if not self._moving:
            self.current_stretch = -1
            self._leave_place()
            self.moved.emit()

    def _leave_place(self) -> None:
        self.place = None
        self._flash_timer.stop()

    # ---- layouts

    def _layout(self, place: int) -> QTextLayout:
        number = self._shown[place]
        block = self._blocks[number]
        parts = self._units(block) if self._marked else ()
        return self._layouts.of(number, block, self._text_of(block), parts, self._text_width())

    def _parts(self, block: TextBlock) -> tuple[BlockPart, ...]:
        return parts_of(block, self.stretches, self._stretch_starts)

    def _units(self, block: TextBlock) -> tuple[BlockPart, ...]:
        return in_units(self._parts(block), self._text_of(block))

    def _parts_of(self, block: TextBlock, stretch: Stretch | None) -> tuple[BlockPart, ...]:
        """The part of `block` that is in `stretch`, in UTF-16 units."""
        parts = parts_of(block, (stretch,), (stretch.first,)) if stretch else ()
        return in_units(parts, self._text_of(block))

    def _text_of(self, block: TextBlock) -> str:
        return self.text[block.start : block.end]

    def _text_width(self) -> float:
        return max(60.0, self.viewport().width() - LEFT_PX - RIGHT_PX - TEXT_LEFT_PX - TEXT_RIGHT_PX)

    def _place_at(self, y: float) -> int:
        """The index of the displayed block at this height of the whole text."""
        return min(len(self._shown) - 1, max(0, bisect_right(self._tops, y) - 1))

    def _into(self, place: int, y: float) -> int:
        """The character in the block at this height."""
        block = self._blocks[self._shown[place]]
        share = (y - self._tops[place]) / max(1.0, self._heights[place])
        return round((block.end - block.start) * max(0.0, min(1.0, share)))

    def _recolor(self) -> None:
        palette = self.viewport().palette()
        palette.setColor(QPalette.ColorRole.Window, color("window"))
        self.viewport().setPalette(palette)
        self._layouts.clear()
        self.viewport().update()
