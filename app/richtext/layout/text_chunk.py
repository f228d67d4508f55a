"""Chunk: a stretch of text without hard line breaks, broken into lines by Qt.

Positions are Python string indices into the piece's text; QTextLayout counts UTF-16 units, and
the translation happens here and nowhere else. Each chunk has one base direction (UAX #9): right to
left if its first letter with a direction is Hebrew, Arabic or the like.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFont, QTextCharFormat, QTextFormat, QTextLayout, QTextLine, QTextOption

from app.controls.shapes import RTL_LETTERS
from app.richtext.layout.text_style import TextStyle, code_style
from app.richtext.markdown.piece import Align, Styled

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
