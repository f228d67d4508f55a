"""PieceLayout: one piece of text broken into lines, and the way between characters and pixels.

Positions are Python string indices into the piece's text; QTextLayout counts UTF-16 units, and
the translation happens here and nowhere else. The text is laid out in chunks, one a hard line.
Text that grows at its end (`extend`) lays out only its last chunk again, and a chunk that has
become long is cut at a line start: line breaking is greedy, so what stands above never changes.
Coordinates are relative to the text's own left top.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QPainter,
    QTextCharFormat,
    QTextFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.chat.piece import Styled
from app.chat.text_style import TextStyle, code_style

_LONG_CHUNK_LINES = 14
_KEPT_OPEN_LINES = 3
_INLINE_CODE_PX = 13


class _Chunk:
    """A stretch of text with no hard line break inside."""

    def __init__(self, start: int, text: str, top: float) -> None:
        self.start = start
        self.text = text
        self.top = top
        self.layout = QTextLayout(text)
        # UTF-16 offsets differ from string indices only behind characters outside the basic plane.
        self.units: list[int] | None = None
        if text and max(text) > "\uffff":
            self.units = list(accumulate((1 + (c > "\uffff") for c in text), initial=0))

    def unit(self, char: int) -> int:
        return self.units[char] if self.units else char

    def char(self, unit: int) -> int:
        return bisect_right(self.units, unit) - 1 if self.units else unit


@dataclass(frozen=True)
class VisualLine:
    """The characters [start, end) stand on one line whose top is at `top`."""

    chunk: _Chunk
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

    def char_at(self, x: float, between: bool) -> int:
        """The character at `x`, or with `between` the nearest gap between two."""
        where = QTextLine.CursorPosition
        how = where.CursorBetweenCharacters if between else where.CursorOnCharacter
        return self.chunk.start + self.chunk.char(self.line.xToCursor(x, how))

    @property
    def width(self) -> float:
        """How far the text reaches, spaces at its end not counted."""
        text = self.chunk.text[self.start - self.chunk.start : self.end - self.chunk.start]
        natural = float(self.line.naturalTextWidth())
        # Qt leaves out spaces where a line wraps, but counts them where the text ends.
        return min(natural, self.x_at(self.start + len(text.rstrip()))) if text[-1:].isspace() else natural


class PieceLayout:
    """`lines` is in order and covers the text; hard line breaks belong to no line."""

    def __init__(
        self,
        text: str,
        style: TextStyle,
        width: float,
        styles: Sequence[Styled] = (),
        link: QColor | None = None,
    ) -> None:
        self.style = style
        self.text = ""
        self.lines: list[VisualLine] = []
        self._width = width
        self._styles = styles
        self._link = link
        self._chunks: list[_Chunk] = []
        self.extend(text)

    @property
    def height(self) -> float:
        return len(self.lines) * self.style.line_px

    def extend(self, text: str) -> int:
        """Show `text` instead, which starts with what was shown. The number of the first changed line."""
        start = 0
        if self._chunks:
            last = self._chunks.pop()
            start = last.start
            while self.lines and self.lines[-1].chunk is last:
                self.lines.pop()
        first_line = len(self.lines)
        self.text = text
        for hard_line in text[start:].split("\n"):
            self._add(start, hard_line)
            start += len(hard_line) + 1
        return first_line

    def line_at(self, y: float) -> int:
        """The number of the line at height `y`, the nearest if `y` is outside."""
        return max(0, min(len(self.lines) - 1, int(y // self.style.line_px)))

    def line_of(self, char: int) -> int:
        """The number of the line on which character `char` stands."""
        return max(0, bisect_right(self.lines, char, key=lambda line: line.start) - 1)

    def rects(self, start: int, end: int) -> list[QRectF]:
        """What the characters [start, end) cover, a rectangle of full line height a line."""
        found: list[QRectF] = []
        for line in self.lines[self.line_of(start) : self.line_of(max(start, end - 1)) + 1]:
            low, high = max(start, line.start), min(end, line.end)
            left, right = line.x_at(low), line.x_at(high)
            if high == line.end and high < end:
                right = max(right, line.width)
            found.append(QRectF(min(left, right), line.top, abs(right - left), self.style.line_px))
        return found

    def draw(self, painter: QPainter, left: float, top: float, clip: QRectF) -> None:
        """Draw the text that lies in `clip` with its left top at (`left`, `top`), in the painter's pen."""
        first = self.line_at(clip.top() - top)
        last = self.line_at(clip.bottom() - top)
        drawn: _Chunk | None = None
        for line in self.lines[first : last + 1]:
            if line.chunk is not drawn:
                drawn = line.chunk
                # Some room around the clip: glyphs may reach out of their line.
                drawn.layout.draw(painter, QPointF(left, top + drawn.top), [], clip.adjusted(-8, -30, 8, 30))

    def _add(self, start: int, text: str) -> None:
        """Lay out one hard line; cut it while it is long."""
        top = len(self.lines) * self.style.line_px
        chunk = _Chunk(start, text, top)
        lines = self._lay_out(chunk)
        if len(lines) > _LONG_CHUNK_LINES:
            cut = lines[-_KEPT_OPEN_LINES].start
            head = _Chunk(start, text[: cut - start], top)
            self._chunks.append(head)
            self.lines += self._lay_out(head)
            self._add(cut, text[cut - start :])
            return
        self._chunks.append(chunk)
        self.lines += lines

    def _lay_out(self, chunk: _Chunk) -> list[VisualLine]:
        layout, style = chunk.layout, self.style
        layout.setCacheEnabled(True)
        layout.setFont(style.font)
        option = QTextOption(Qt.AlignmentFlag.AlignLeft)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setTabStopDistance(4 * 7.5)
        layout.setTextOption(option)
        formats = self._formats(chunk)
        if formats:
            layout.setFormats(formats)
        lines: list[VisualLine] = []
        layout.beginLayout()
        while True:
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(self._width)
            number = len(lines)
            line.setPosition(QPointF(0, number * style.line_px + style.baseline_px - line.ascent()))
            start = chunk.start + chunk.char(line.textStart())
            end = chunk.start + chunk.char(line.textStart() + line.textLength())
            top = chunk.top + number * style.line_px
            lines.append(VisualLine(chunk, line, start, end, top, top + style.baseline_px))
        layout.endLayout()
        return lines

    def _formats(self, chunk: _Chunk) -> list[QTextLayout.FormatRange]:
        found: list[QTextLayout.FormatRange] = []
        for styled in self._styles:
            low = max(styled.start, chunk.start) - chunk.start
            high = min(styled.end, chunk.start + len(chunk.text)) - chunk.start
            if low >= high:
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
                    if self._link:
                        text_format.setForeground(self._link)
                case "code":
                    text_format.setFontFamilies(code_style().font.families())
                    text_format.setProperty(QTextFormat.Property.FontPixelSize, _INLINE_CODE_PX)
                    text_format.setFontLetterSpacing(0)
            item = QTextLayout.FormatRange()
            item.start = chunk.unit(low)
            item.length = chunk.unit(high) - chunk.unit(low)
            item.format = text_format
            found.append(item)
        return found
