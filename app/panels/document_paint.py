"""A document's text as blocks that are laid out one by one; the search in it, its layout and its painting.

A block is a line, a part of a very long line, or the lines of a paragraph wrapped at a fixed width, whose
line breaks count as spaces. Blocks are in order, do not overlap and contain all text but the white space
between paragraphs; ranges are end-exclusive character positions.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QPainter,
    QPainterPath,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.chat.reading_map import Stretch, heading_levels
from app.controls.shapes import blend
from app.richtext.selection import pattern_of, utf16_length
from app.theme.fonts import enlarged, ui_font
from app.theme.theme import color

# Laid out in a few milliseconds; a line of a CSV or minified JSON can have a million characters.
MOST_CHARACTERS = 2_000
# A line of prose of at least this length was wrapped there; one that does not begin like prose was not.
_WRAPPED_CHARACTERS = 40
_NO_PROSE = re.compile(r"\s|[-*+|>#~`•]|\d+[.)]\s")


class TextBlock(Struct, frozen=True):
    """`opens` and `closes`: it is the first or last block of its paragraph."""

    start: int
    end: int
    heading: bool = False
    opens: bool = True
    closes: bool = True


class BlockPart(Struct, frozen=True):
    """A part of a block that is read, in characters of the block; `stretch` is the number of its stretch."""

    first: int
    last: int
    stretch: int


def blocks_of(text: str) -> tuple[TextBlock, ...]:
    found: list[TextBlock] = []
    start, opens, before = 0, True, ""
    lines = text.split("\n")
    for line, level in zip(lines, heading_levels(lines)):
        end = start + len(line)
        if line.strip():
            heading = level > 0
            if not opens and not heading and _continues(before, line):
                joined = end - found[-1].start
                if joined <= MOST_CHARACTERS:
                    found[-1] = TextBlock(found[-1].start, end, opens=found[-1].opens, closes=False)
                    start, before = end + 1, line
                    continue
            if heading and found:
                found[-1] = _closing(found[-1])
            pieces = list(_pieces(text, start, end))
            for number, (first, last) in enumerate(pieces):
                found.append(TextBlock(first, last, heading, opens and number == 0, closes=False))
            opens = heading
            if heading:
                found[-1] = _closing(found[-1])
        else:
            if found:
                found[-1] = _closing(found[-1])
            opens = True
        start, before = end + 1, line
    if found:
        found[-1] = _closing(found[-1])
    return tuple(found)


def parts_of(block: TextBlock, stretches: Sequence[Stretch], starts: Sequence[int]) -> tuple[BlockPart, ...]:
    """Returns the read parts of `block`. `starts` are the stretches' first characters."""
    found = []
    number = max(0, bisect_right(starts, block.start) - 1)
    while number < len(stretches) and stretches[number].first < block.end:
        stretch = stretches[number]
        first, last = max(block.start, stretch.first), min(block.end, stretch.last)
        if first < last:
            found.append(BlockPart(first - block.start, last - block.start, number))
        number += 1
    return tuple(found)


def block_at(starts: Sequence[int], character: int) -> int:
    """Returns the index of the block with `character`, or of the one before; `starts` are the blocks' first
    characters.
    """
    return max(0, bisect_right(starts, character) - 1)


def _continues(before: str, line: str) -> bool:
    """Whether the line `before` was wrapped before `line`."""
    return len(before) >= _WRAPPED_CHARACTERS and not _NO_PROSE.match(before) and not _NO_PROSE.match(line)


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    while end - start > MOST_CHARACTERS:
        space = text.rfind(" ", start, start + MOST_CHARACTERS)
        cut = space + 1 if space > start else start + MOST_CHARACTERS
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, end)]


def _closing(block: TextBlock) -> TextBlock:
    return TextBlock(block.start, block.end, block.heading, block.opens, closes=True)


# A single letter would match everywhere in a long document.
MOST_MATCHES = 10_000


class Matches(Struct, frozen=True):
    """Match i is the range `starts[i]` to `ends[i]` (end-exclusive); `current` is its selected match, or −1.

    `whole`: there are no further matches.
    """

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    current: int = -1
    whole: bool = True

    def within(self, block: TextBlock) -> tuple[BlockPart, ...]:
        """Returns the matching parts of `block`, in its characters; `stretch` is the match's number."""
        found = []
        for number in range(bisect_right(self.ends, block.start), bisect_left(self.starts, block.end)):
            first, last = max(block.start, self.starts[number]), min(block.end, self.ends[number])
            found.append(BlockPart(first - block.start, last - block.start, number))
        return tuple(found)


NO_MATCHES = Matches()


def matches_of(text: str, needle: str, shown: Callable[[int], bool], first_seen: int) -> Matches:
    """Returns the matches of `needle` in the `shown` parts of `text`; the first from `first_seen` on is
    current.
    """
    pattern = pattern_of(needle)
    if pattern is None:
        return NO_MATCHES
    found = [match.span() for match in islice(pattern.finditer(text), MOST_MATCHES + 1)]
    whole = len(found) <= MOST_MATCHES
    found = [span for span in found[:MOST_MATCHES] if shown(span[0])]
    if not found:
        return Matches(whole=whole)
    starts, ends = zip(*found)
    return Matches(starts, ends, bisect_left(starts, first_seen) % len(starts), whole)


LEFT_PX, RIGHT_PX = 2, 16
TEXT_LEFT_PX, TEXT_RIGHT_PX = 11, 10
_BAR_PX = 2
_RADIUS_PX = 6.0


class BlockPainter:
    """For blocks in a column `width` wide; `current` is the stretch that was jumped to, or −1."""

    def __init__(self, measures: DocumentMeasures, width: int, current: int) -> None:
        self._measures = measures
        self._right = width - RIGHT_PX
        self._current = current

    def paint(
        self,
        painter: QPainter,
        block: TextBlock,
        layout: QTextLayout,
        parts: Sequence[BlockPart] | None,
        y: float,
        height: float,
    ) -> None:
        """At `y`, with all room around it `height` high. `parts` are read; None: nothing is marked."""
        above = self._measures.pads(block)[0]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = utf16_length(layout.text())
        for part in parts or ():
            tint = color("accent_tint")
            if part.stretch == self._current:
                tint = blend(color("accent_mid"), tint, 0.35)
            painter.setPen(Qt.PenStyle.NoPen)
            if part.first == 0 and part.last == whole:
                inside = QRectF(LEFT_PX, y, self._right - LEFT_PX, height - self._measures.gap(block))
                if block.heading:
                    inside.setTop(y + above - 3)
                painter.fillPath(_right_rounded(inside, block.opens, block.closes), tint)
                self._paint_bar(painter, inside.top(), inside.height())
            else:
                self._paint_lines(painter, layout, part, y + above, tint)
        dim = parts is not None and not block.heading
        painter.setPen(color("dim" if dim else "text"))
        layout.draw(painter, QPointF(LEFT_PX + TEXT_LEFT_PX, y + above))

    def _paint_lines(
        self, painter: QPainter, layout: QTextLayout, part: BlockPart, y: float, tint: QColor
    ) -> None:
        """The tint of some of a block's characters, and the bar next to their lines."""
        for row in self.rows(layout, part, y):
            painter.setBrush(tint)
            painter.drawRoundedRect(row.adjusted(-2, 0, 2, 0), 3, 3)
            self._paint_bar(painter, row.top(), row.height())

    def rows(self, layout: QTextLayout, part: BlockPart, y: float) -> Iterator[QRectF]:
        """The rectangles of `part`, line by line, each as high as a line; the text begins at `y`."""
        line_px = self._measures.line_px
        for index in range(layout.lineCount()):
            line = layout.lineAt(index)
            first = max(part.first, line.textStart())
            last = min(part.last, line.textStart() + line.textLength())
            if first >= last:
                continue
            begin, end = _x(line, first), _x(line, last)
            # Qt's line box begins slightly below its row.
            lead = (line_px - line.height()) / 2
            yield QRectF(LEFT_PX + TEXT_LEFT_PX + begin, y + line.y() - lead, end - begin, line_px)

    def _paint_bar(self, painter: QPainter, top: float, height: float) -> None:
        painter.fillRect(QRectF(LEFT_PX, top, _BAR_PX, height), color("accent"))


def characters(text: str, count: int) -> int:
    """How many characters of `text` its first `count` UTF-16 units are."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * count].decode("utf-16-le", "ignore"))


def _x(line: QTextLine, position: int) -> float:
    return cast(tuple[float, int], line.cursorToX(position))[0]


def _right_rounded(box: QRectF, above: bool, below: bool) -> QPainterPath:
    """A path rounded on the right, where a paragraph begins and ends."""
    path = QPainterPath()
    path.addRoundedRect(box, _RADIUS_PX, _RADIUS_PX)
    square = QPainterPath()
    half = box.height() / 2
    square.addRect(box.adjusted(0, 0, -_RADIUS_PX, 0))
    if not above:
        square.addRect(box.adjusted(0, 0, 0, -half))
    if not below:
        square.addRect(box.adjusted(0, half, 0, 0))
    return path.united(square)


# More than any screen shows.
_MOST_LAYOUTS = 400


class DocumentLayouts:
    """A cache of laid-out blocks. `measures` are the sizes of the texts."""

    def __init__(self, measures: DocumentMeasures) -> None:
        self._measures = measures
        self._layouts: dict[int, QTextLayout] = {}

    def __len__(self) -> int:
        return len(self._layouts)

    def of(
        self, number: int, block: TextBlock, text: str, parts: Sequence[BlockPart], width: float
    ) -> QTextLayout:
        """Returns block `number` laid out at that width; text outside `parts` is dim."""
        layout = self._layouts.pop(number, None)
        if layout is None:
            layout = self._lay_out(block, text, parts, width)
        self._layouts[number] = layout  # newest last
        return layout

    def drop(self, number: int) -> None:
        """Drop the layout of block `number`."""
        self._layouts.pop(number, None)

    def drop_oldest(self) -> None:
        """Drop all but the recently used layouts."""
        while len(self._layouts) > _MOST_LAYOUTS:
            self._layouts.pop(next(iter(self._layouts)))

    def clear(self) -> None:
        """Drop all layouts: text, width or colours changed."""
        self._layouts.clear()

    def _lay_out(self, block: TextBlock, text: str, parts: Sequence[BlockPart], width: float) -> QTextLayout:
        # A line break inside a block comes from wrapping at a fixed width.
        layout = QTextLayout(text.replace("\n", " "), self._measures.font(block.heading))
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        layout.setTextOption(option)
        if parts and not block.heading:
            layout.setFormats([_ink(part) for part in parts])
        line_px = self._measures.line_of(block)
        layout.beginLayout()
        y = 0.0
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            line.setPosition(QPointF(0, y + (line_px - line.height()) / 2))
            y += line_px
        layout.endLayout()
        return layout


def in_units(parts: Sequence[BlockPart], text: str) -> tuple[BlockPart, ...]:
    """Returns `parts` in UTF-16 units, as Qt counts."""
    if not parts or max(text) <= "\uffff":
        return tuple(parts)
    return tuple(
        BlockPart(utf16_length(text[: p.first]), utf16_length(text[: p.last]), p.stretch) for p in parts
    )


def _ink(part: BlockPart) -> QTextLayout.FormatRange:
    found = QTextLayout.FormatRange()
    found.start, found.length = part.first, part.last - part.first
    ink = QTextCharFormat()
    ink.setForeground(color("text"))
    found.format = ink
    return found


_FONT_PX = 12.5
_LINE_PX, _HEADING_LINE_PX = 19, 18
# Around a paragraph: inside its tint, and below it.
_TOP_PX, _BOTTOM_PX, _GAP_PX = 5, 6, 7
_HEADING_TOP_PX, _HEADING_GAP_PX = 14, 6


@dataclass(frozen=True)
class DocumentMeasures:
    """Sizes of the texts in px; line heights and gaps are whole numbers."""

    zoom: float = 1.0

    @property
    def line_px(self) -> int:
        """The line height of normal text."""
        return round(_LINE_PX * self.zoom)

    def line_of(self, block: TextBlock) -> int:
        """The line height of a block."""
        return round(_HEADING_LINE_PX * self.zoom) if block.heading else self.line_px

    def font(self, heading: bool = False) -> QFont:
        """The font of a block."""
        return ui_font(enlarged(_FONT_PX, self.zoom), 600 if heading else 400)

    def pads(self, block: TextBlock) -> tuple[float, float, float]:
        """Returns three heights in px: above the text, below it inside the tint, and below the tint."""
        if block.heading:
            return (round(_HEADING_TOP_PX * self.zoom), 0.0, self.gap(block))
        above = round(_TOP_PX * self.zoom) if block.opens else 0.0
        below = round(_BOTTOM_PX * self.zoom) if block.closes else 0.0
        return (above, below, self.gap(block))

    def gap(self, block: TextBlock) -> float:
        """Space below a block's tint."""
        if block.heading:
            return round(_HEADING_GAP_PX * self.zoom)
        return round(_GAP_PX * self.zoom) if block.closes else 0.0
