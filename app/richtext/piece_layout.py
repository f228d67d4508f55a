"""PieceLayout: one piece of text broken into lines, with conversions between characters and pixels.

Positions are Python string indices into the piece's text. The text is laid out in chunks, one per hard line.
When text is appended (`extend`), only the last chunk is laid out again, and a long chunk is cut at a line
start: line breaking is greedy, so that the lines above never change.
Coordinates are relative to the text's own left top.

A chunk is a stretch of text without hard line breaks, broken into lines by Qt. QTextLayout counts UTF-16
units; chunks alone translate them. Each chunk has one base direction (UAX #9), that of its first letter with
one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QPainter,
    QPainterPath,
    QTextCharFormat,
    QTextFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.controls.shapes import RTL_LETTERS, is_rtl
from app.richtext.markdown.piece import Align, Styled
from app.richtext.text_style import TextStyle, code_style

_ALIGN = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "center": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}
_TAB_PX = 4 * 7.5
_CODE_STYLES = 50  # looked at for the direction of a text


def without_code(text: str, styles: Sequence[Styled], offset: int = 0) -> str:
    """`text`, which is at `offset` of its piece, with spaces for the inline code at its beginning.

    Code has no say in the direction of the words around it.
    """
    if not RTL_LETTERS.search(text):
        return text
    for styled in styles[:_CODE_STYLES]:
        start, end = max(0, styled.start - offset), min(styled.end - offset, len(text))
        if styled.style == "code" and start < end:
            text = text[:start] + " " * (end - start) + text[end:]
    return text


class Chunk:
    """`start` is its index in the piece's text, `top` the top of its first line.

    `rtl` is its base direction; `is_mixed` if any of its text runs from right to left.
    """

    def __init__(self, start: int, text: str, top: float, rtl: bool = False) -> None:
        self.start = start
        self.text = text
        self.top = top
        self.rtl = rtl
        self.is_mixed = rtl or RTL_LETTERS.search(text) is not None
        self.layout = QTextLayout(_whole(text))
        # UTF-16 offsets differ from string indices only behind characters outside the basic plane.
        self.units: list[int] | None = None
        if text and max(text) > "\uffff":
            self.units = list(accumulate((1 + (c > "\uffff") for c in text), initial=0))

    def unit(self, char: int) -> int:
        return self.units[char] if self.units else char

    def char(self, unit: int) -> int:
        return bisect_right(self.units, unit) - 1 if self.units else unit

    def range_of(self, start: int, end: int) -> tuple[int, int] | None:
        """The part of the piece's characters [start, end) that is in here, as units: start and length."""
        low = max(start, self.start) - self.start
        high = min(end, self.start + len(self.text)) - self.start
        return (self.unit(low), self.unit(high) - self.unit(low)) if low < high else None


def _whole(text: str) -> str:
    """`text` as Qt takes it, as long as it is: half a character Qt would leave out, and all places be off."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


@dataclass(frozen=True)
class VisualLine:
    """The characters [start, end) on one line whose top is at `top`."""

    chunk: Chunk
    line: QTextLine
    start: int
    end: int
    top: float
    baseline: float

    def x_at(self, char: int) -> float:
        """The left edge of character `char`, or the right edge of the one before at the line's end."""
        # The binding returns the position and the clamped cursor, and types neither.
        x = cast(tuple[float, int], self.line.cursorToX(self.chunk.unit(char - self.chunk.start)))
        return x[0]

    def spans(self, start: int, end: int) -> list[tuple[float, float]]:
        """What the characters [start, end) of this line cover: left and right edges, from left to right.

        In text of both directions neighbouring characters may be apart.
        """
        if not self.chunk.is_mixed:
            left, right = self.x_at(start), self.x_at(end)
            return [(min(left, right), max(left, right))]
        # The cursor's places at a change of direction belong to the text before it: only glyphs say.
        first, last = (self.chunk.unit(char - self.chunk.start) for char in (start, end))
        areas = (
            [run.boundingRect() for run in self.line.glyphRuns(first, last - first)] if first < last else []
        )
        edges = [(area.left(), area.right()) for area in areas]
        found: list[tuple[float, float]] = []
        for left, right in sorted(edges):
            if found and left <= found[-1][1] + 0.75:
                found[-1] = (found[-1][0], max(found[-1][1], right))
            elif right > left:
                found.append((left, right))
        return found

    def char_at(self, x: float, between: bool) -> int:
        """The character at `x`, or with `between` the nearest gap between two."""
        where = QTextLine.CursorPosition
        how = where.CursorBetweenCharacters if between else where.CursorOnCharacter
        return self.chunk.start + self.chunk.char(self.line.xToCursor(x, how))

    @property
    def left(self) -> float:
        """The left edge of the text."""
        return self.line.naturalTextRect().left() if self.chunk.is_mixed else self.x_at(self.start)

    @property
    def right(self) -> float:
        """The right edge of the text; spaces at the end of a left-to-right line do not count."""
        if self.chunk.is_mixed:
            return self.line.naturalTextRect().right()
        text = self.chunk.text[self.start - self.chunk.start : self.end - self.chunk.start]
        if not text[-1:].isspace():
            return self.x_at(self.end)
        # Qt leaves out spaces where a line wraps, but counts them where the text ends.
        return self.x_at(self.start + len(text.rstrip()))


def lay_out(
    chunk: Chunk,
    style: TextStyle,
    width: float,
    styles: Sequence[Styled],
    link: QColor | None,
    *,
    left: float = 0.0,
    align: Align = "left",
) -> list[VisualLine]:
    """Break `chunk` into lines of `width`, on the style's grid, from `left` on."""
    layout = chunk.layout
    layout.setCacheEnabled(True)
    layout.setFont(style.font)
    # Left is where a line starts, unless it runs the other way.
    option = QTextOption(_ALIGN["right" if chunk.rtl and align == "left" else align])
    option.setTextDirection(Qt.LayoutDirection.RightToLeft if chunk.rtl else Qt.LayoutDirection.LeftToRight)
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    option.setTabStopDistance(_TAB_PX)
    layout.setTextOption(option)
    formats = _formats(chunk, styles, link, style)
    if formats:
        layout.setFormats(formats)
    lines: list[VisualLine] = []
    layout.beginLayout()
    while True:
        line = layout.createLine()
        if not line.isValid():
            break
        line.setLineWidth(width)
        number = len(lines)
        line.setPosition(QPointF(left, number * style.line_px + style.baseline_px - line.ascent()))
        start = chunk.start + chunk.char(line.textStart())
        end = chunk.start + chunk.char(line.textStart() + line.textLength())
        top = chunk.top + number * style.line_px
        lines.append(VisualLine(chunk, line, start, end, top, top + style.baseline_px))
    layout.endLayout()
    return lines


def _formats(
    chunk: Chunk, styles: Sequence[Styled], link: QColor | None, style: TextStyle
) -> list[QTextLayout.FormatRange]:
    found: list[QTextLayout.FormatRange] = []
    for styled in styles:
        place = chunk.range_of(styled.start, styled.end)
        if place is None:
            continue
        text_format = QTextCharFormat()
        match styled.style:
            case "bold":
                text_format.setFontWeight(QFont.Weight.DemiBold)
            case "italic":
                text_format.setFontItalic(True)
            case "strike":
                text_format.setFontStrikeOut(True)
            case "link":
                if link:
                    text_format.setForeground(link)
            case "code":
                text_format.setFontFamilies(code_style().font.families())
                size_px = round(style.size_px * 13 / 15)
                text_format.setProperty(QTextFormat.Property.FontPixelSize, size_px)
                text_format.setFontLetterSpacing(0)
        item = QTextLayout.FormatRange()
        item.start, item.length = place
        item.format = text_format
        found.append(item)
    return found


_LONG_CHUNK_LINES = 14
_LONG_CHUNK_CHARACTERS = 2_000
_KEPT_OPEN_LINES = 3


class PieceLayout:
    """`lines` is in order and covers the text; hard line breaks belong to no line."""

    def __init__(
        self,
        text: str,
        style: TextStyle,
        width: float,
        styles: Sequence[Styled] = (),
        link: QColor | None = None,
        rtl: bool | None = None,
    ) -> None:
        """`rtl`: the base direction of all lines; without it each hard line has its own."""
        self._rtl = rtl
        self.style = style
        self.text = ""
        self.lines: list[VisualLine] = []
        self._width = width
        self._styles = sorted(styles, key=lambda styled: styled.start)
        # Up to where each of them or one before it reaches.
        self._reach = list(accumulate((styled.end for styled in self._styles), max))
        self._link = link
        self._chunks: list[Chunk] = []
        self.extend(text)

    @property
    def height(self) -> float:
        return len(self.lines) * self.style.line_px

    def extend(self, text: str) -> int:
        """Show `text`, which starts with the current text. Returns the number of the first changed line."""
        start = 0
        before: list[VisualLine] = []
        if self._chunks:
            last = self._chunks.pop()
            start = last.start
            while self.lines and self.lines[-1].chunk is last:
                before.insert(0, self.lines.pop())
        first_line = len(self.lines)
        self.text = text
        for hard_line in text[start:].split("\n"):
            self._add(start, hard_line)
            start += len(hard_line) + 1
        for old, new in zip(before, self.lines[first_line:]):
            if (old.start, old.end) != (new.start, new.end):
                break
            first_line += 1
        return first_line

    def line_at(self, y: float) -> int:
        """The number of the line at height `y`, the nearest if `y` is outside."""
        return max(0, min(len(self.lines) - 1, int(y // self.style.line_px)))

    def line_near(self, x: float, y: float) -> int:
        """The number of the line nearest to a point."""
        return self.line_at(y)

    def lines_between(self, above: float, below: float) -> range:
        """The numbers of the lines that touch those heights."""
        if not self.lines or below < 0 or above > self.height:
            return range(0)
        return range(self.line_at(above), self.line_at(below) + 1)

    def line_of(self, char: int) -> int:
        """The number of the line with character `char`."""
        return max(0, bisect_right(self.lines, char, key=lambda line: line.start) - 1)

    def rects(self, start: int, end: int) -> list[QRectF]:
        """What the characters [start, end) cover, a rectangle of full line height a line."""
        found: list[QRectF] = []
        for line in self.lines[self.line_of(start) : self.line_of(max(start, end - 1)) + 1]:
            low, high = max(start, line.start), min(end, line.end)
            spans = line.spans(low, high) or [(line.x_at(low), line.x_at(low))]
            if high == line.end and high < end and not line.chunk.is_mixed:
                spans = [(spans[0][0], max(spans[0][1], line.right))]
            found += [QRectF(left, line.top, right - left, self.style.line_px) for left, right in spans]
        return found

    def draw(
        self,
        painter: QPainter,
        left: float,
        top: float,
        clip: QRectF,
        colours: Sequence[tuple[int, int, QColor]] = (),
    ) -> None:
        """Draw the text that lies in `clip` with its left top at (`left`, `top`), in the painter's pen.

        `colours` are stretches (start, end, colour) that have another; only paint, no layout.
        """
        first = self.line_at(clip.top() - top)
        last = self.line_at(clip.bottom() - top)
        drawn: Chunk | None = None
        for line in self.lines[first : last + 1]:
            if line.chunk is not drawn:
                drawn = line.chunk
                # Some room around the clip: glyphs may reach out of their line.
                self._draw_chunk(painter, drawn, QPointF(left, top), clip.adjusted(-8, -30, 8, 30), colours)

    def _draw_chunk(
        self,
        painter: QPainter,
        chunk: Chunk,
        corner: QPointF,
        clip: QRectF,
        colours: Sequence[tuple[int, int, QColor]],
    ) -> None:
        """Qt leaves out a stretch that begins where another ends: those are drawn by themselves."""
        where = corner + QPointF(0, chunk.top)
        here = _stretches_in(chunk, colours)
        touching = [b for a, b in pairwise(here) if a[1] == b[0]]
        if not touching:
            chunk.layout.draw(painter, where, _ranges(chunk, here), clip)
            return
        # Of a run of touching stretches every second one.
        second: list[tuple[int, int, QColor]] = []
        for before, stretch in pairwise(here):
            if before[1] == stretch[0] and before not in second:
                second.append(stretch)
        places, others = QPainterPath(), QPainterPath()
        for start, end, _ in second:
            for rect in self.rects(start, end):
                places.addRect(rect.translated(corner))
        others.addRect(clip)
        first = [stretch for stretch in here if stretch not in second]
        for stretches, part in ((first, others.subtracted(places)), (second, places)):
            painter.save()
            try:
                painter.setClipPath(part, Qt.ClipOperation.IntersectClip)
                chunk.layout.draw(painter, where, _ranges(chunk, stretches), clip)
            finally:
                painter.restore()

    def _add(self, start: int, text: str) -> None:
        """Lay out one hard line, in parts while it is long."""
        rtl = self._rtl
        if rtl is None:
            rtl = self._direction(start)
        while True:
            top = len(self.lines) * self.style.line_px
            part = text[:_LONG_CHUNK_CHARACTERS]
            chunk = Chunk(start, part, top, rtl)
            lines = self._lay_out(chunk)
            is_last = len(part) == len(text)
            if is_last and len(lines) <= _LONG_CHUNK_LINES:
                self._chunks.append(chunk)
                self.lines += lines
                return
            # A line may have thousands of zero-width characters: then it is cut anywhere.
            cut = lines[-_KEPT_OPEN_LINES].start - start if len(lines) > _KEPT_OPEN_LINES else len(part)
            if cut < len(part):
                chunk = Chunk(start, text[:cut], top, rtl)
                lines = self._lay_out(chunk)
            self._chunks.append(chunk)
            self.lines += lines
            start, text = start + cut, text[cut:]

    def _direction(self, start: int) -> bool:
        """Whether the hard line at `start` runs from right to left; one without letters does as the text."""
        line_start = self.text.rfind("\n", 0, start) + 1
        for begin, stop in ((line_start, "\n"), (0, "\0")):
            part = self.text[begin : begin + _LONG_CHUNK_CHARACTERS].partition(stop)[0]
            found = is_rtl(without_code(part, self._styles, begin))
            if found is not None:
                return found
        return False

    def _lay_out(self, chunk: Chunk) -> list[VisualLine]:
        return lay_out(chunk, self.style, self._width, self._styles_in(chunk), self._link)

    def _styles_in(self, chunk: Chunk) -> Sequence[Styled]:
        """The styles that overlap `chunk`."""
        first = bisect_right(self._reach, chunk.start)
        last = bisect_left(self._styles, chunk.start + len(chunk.text), key=lambda styled: styled.start)
        return self._styles[first:last]


def _stretches_in(chunk: Chunk, colours: Sequence[tuple[int, int, QColor]]) -> list[tuple[int, int, QColor]]:
    """The stretches that are in `chunk`; `colours` are in order and do not overlap."""
    first = bisect_right(colours, chunk.start, key=lambda stretch: stretch[1])
    last = bisect_left(colours, chunk.start + len(chunk.text), key=lambda stretch: stretch[0])
    return list(colours[first:last])


def _ranges(chunk: Chunk, stretches: Sequence[tuple[int, int, QColor]]) -> list[QTextLayout.FormatRange]:
    """As Qt takes them."""
    found: list[QTextLayout.FormatRange] = []
    for start, end, colour in stretches:
        place = chunk.range_of(start, end)
        if place:
            item = QTextLayout.FormatRange()
            item.start, item.length = place
            text_format = QTextCharFormat()
            text_format.setForeground(colour)
            item.format = text_format
            found.append(item)
    return found
