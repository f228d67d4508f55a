"""PieceLayout: one piece of text broken into lines, with conversions between characters and pixels.

Positions are Python string indices into the piece's text. The text is laid out in chunks, one per hard line.
When text is appended (`extend`), only the last chunk is laid out again, and a long chunk is cut at a line
start: line breaking is greedy, so that the lines above never change.
Coordinates are relative to the text's own left top.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QTextCharFormat, QTextLayout

from app.controls.shapes import is_rtl
from app.richtext.layout.text_chunk import Chunk, VisualLine, lay_out, without_code
from app.richtext.layout.text_style import TextStyle
from app.richtext.markdown.piece import Styled

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
