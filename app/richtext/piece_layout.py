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

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QPainterPath,
    QTextCharFormat,
    QTextFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.controls.shapes import RTL_LETTERS, is_rtl
from app.richtext.formulas import Shape, formulas
from app.richtext.html import formula_of
from app.richtext.markdown.piece import Align, Styled
from app.richtext.text_style import TextStyle, code_style

_ALIGN = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "center": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}
_TAB_PX = 4 * 7.5
_FORMULA_GAP_PX = 3  # above and below, at least
_DISPLAY_GAP_PX = 6
_CODE_STYLES = 50  # looked at for the direction of a text


def without_code(text: str, styles: Sequence[Styled], offset: int = 0) -> str:
    """`text`, which is at `offset` of its piece, with spaces for the code and formulas at its beginning.

    Code and formulas have no say in the direction of the words around them.
    """
    if not RTL_LETTERS.search(text):
        return text
    for styled in styles[:_CODE_STYLES]:
        start, end = max(0, styled.start - offset), min(styled.end - offset, len(text))
        if styled.style in ("code", "formula", "display") and start < end:
            text = text[:start] + " " * (end - start) + text[end:]
    return text


@dataclass(frozen=True)
class PlacedFormula:
    """The characters [start, end) of the piece are shown as a typeset formula, in one piece."""

    start: int
    end: int
    shape: Shape
    display: bool


# In place of a formula in Qt's layout, as a letter: lines are not broken between it and punctuation.
_PLACEHOLDER = "x"


class Chunk:
    """`start` is its index in the piece's text, `top` the top of its first line.

    `rtl` is its base direction; `is_mixed` if any of its text runs from right to left. All characters of a
    formula are one unit of Qt's.
    """

    def __init__(
        self, start: int, text: str, top: float, rtl: bool = False, formulas: Sequence[PlacedFormula] = ()
    ) -> None:
        self.start = start
        self.text = text
        self.top = top
        self.rtl = rtl
        self.formulas = formulas
        shown = text
        # Offsets differ from string indices only behind formulas and characters outside the basic plane.
        self.units: list[int] | None = None
        if formulas or (text and max(text) > "\uffff"):
            widths = [1 + (c > "\uffff") for c in text]
            for formula in reversed(formulas):
                first, last = formula.start - start, formula.end - start
                shown = shown[:first] + _PLACEHOLDER + shown[last:]
                widths[first:last] = [0] * (last - first - 1) + [1]
            self.units = list(accumulate(widths, initial=0))
        self.is_mixed = rtl or RTL_LETTERS.search(shown) is not None
        self.layout = QTextLayout(_whole(shown))

    def unit(self, char: int) -> int:
        return self.units[char] if self.units else char

    def char(self, unit: int) -> int:
        if not self.units:
            return unit
        # The first of a formula's characters.
        return bisect_left(self.units, self.units[bisect_right(self.units, unit) - 1])

    def formula_at(self, char: int) -> PlacedFormula | None:
        """The formula that character `char` of the piece belongs to."""
        return next((each for each in self.formulas if each.start <= char < each.end), None)

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
    height: float
    size_px: float

    def x_at(self, char: int) -> float:
        """The left edge of character `char`, or the right edge of the one before at the line's end.

        The characters of a formula share its width.
        """
        formula = self.chunk.formula_at(char) if self.chunk.formulas else None
        if formula and char > formula.start:
            width = formula.shape.size_px(self.size_px)[0]
            return self.left_of(formula) + width * (char - formula.start) / (formula.end - formula.start)
        # The binding returns the position and the clamped cursor, and types neither.
        x = cast(tuple[float, int], self.line.cursorToX(self.chunk.unit(char - self.chunk.start)))
        return x[0]

    @property
    def formulas(self) -> list[PlacedFormula]:
        """The formulas on this line."""
        return [each for each in self.chunk.formulas if self.start <= each.start < self.end]

    def left_of(self, formula: PlacedFormula) -> float:
        """The left edge of a formula on this line."""
        unit = self.chunk.unit(formula.start - self.chunk.start)
        runs = self.line.glyphRuns(unit, 1) if self.chunk.is_mixed else []
        return runs[0].positions()[0].x() if runs else self.x_at(formula.start)

    def reach(self, start: int, end: int) -> tuple[float, float]:
        """How far formulas in [start, end) reach above and below the baseline."""
        found = [
            each.shape.size_px(self.size_px)
            for each in self.formulas
            if each.start < end and start < each.end
        ]
        return max((each[1] for each in found), default=0.0), max((each[2] for each in found), default=0.0)

    def spans(self, start: int, end: int) -> list[tuple[float, float]]:
        """The extents of the characters [start, end) of this line: left and right edges, from left to right.

        In text of both directions neighbouring characters may be apart.
        """
        if not self.chunk.is_mixed:
            left, right = self.x_at(start), self.x_at(end)
            return [(min(left, right), max(left, right))]
        # The cursor's places at a change of direction belong to the text before it: only glyphs say.
        first, last = (self.chunk.unit(char - self.chunk.start) for char in (start, end))
        cut = self.chunk.formula_at(end) if start < end else None
        last += cut is not None and cut.start < end  # a part of a formula is all of it
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
        char = self.chunk.start + self.chunk.char(self.line.xToCursor(x, how))
        formula = self.chunk.formula_at(char)
        if formula is None or between:
            return char
        share = (x - self.left_of(formula)) / max(1.0, formula.shape.size_px(self.size_px)[0])
        return formula.start + max(
            0, min(int(share * (formula.end - formula.start)), formula.end - formula.start - 1)
        )

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
    if _is_displayed(chunk, style, width):
        align = "center"
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
    top = 0.0
    while True:
        line = layout.createLine()
        if not line.isValid():
            break
        line.setLineWidth(width)
        start = chunk.start + chunk.char(line.textStart())
        end = chunk.start + chunk.char(line.textStart() + line.textLength())
        above, below = _room(chunk, start, end, style)
        line.setPosition(QPointF(left, top + above + style.baseline_px - line.ascent()))
        baseline = chunk.top + top + above + style.baseline_px
        height = style.line_px + above + below
        lines.append(VisualLine(chunk, line, start, end, chunk.top + top, baseline, height, style.size_px))
        top += height
    layout.endLayout()
    return lines


def _is_displayed(chunk: Chunk, style: TextStyle, width: float) -> bool:
    """Whether a chunk is a displayed formula narrower than `width`, with at most a point behind it."""
    lone = chunk.formulas[0] if len(chunk.formulas) == 1 else None
    if lone is None or not lone.display or chunk.text[: lone.start - chunk.start].strip():
        return False
    rest = chunk.text[lone.end - chunk.start :].strip(" .,;:")
    return not rest and lone.shape.size_px(style.size_px)[0] < width


def _room(chunk: Chunk, start: int, end: int, style: TextStyle) -> tuple[int, int]:
    """The room that the formulas of a line need above and below those of a line of text, in whole pixels."""
    above = below = 0.0
    for formula in chunk.formulas:
        if start <= formula.start < end:
            _, ascent, descent = formula.shape.size_px(style.size_px)
            gap = _DISPLAY_GAP_PX if formula.display else _FORMULA_GAP_PX
            above = max(above, ascent + gap - style.baseline_px)
            below = max(below, descent + gap - (style.line_px - style.baseline_px))
    return math.ceil(above), math.ceil(below)


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
    for formula in chunk.formulas:
        text_format = QTextCharFormat()
        text_format.setForeground(QColor(Qt.GlobalColor.transparent))
        text_format.setFontWeight(QFont.Weight.Normal)
        text_format.setFontItalic(False)
        text_format.setFontStrikeOut(False)
        text_format.setFontLetterSpacingType(QFont.SpacingType.AbsoluteSpacing)
        text_format.setFontLetterSpacing(
            formula.shape.size_px(style.size_px)[0] - _placeholder_px(style.font)
        )
        item = QTextLayout.FormatRange()
        item.start, item.length = chunk.unit(formula.start - chunk.start), 1
        item.format = text_format
        found.append(item)
    return found


@cache
def _placeholder_px(font: QFont) -> float:
    plain = QFont(font)
    plain.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, 0)
    plain.setWeight(QFont.Weight.Normal)
    return QFontMetricsF(plain).horizontalAdvance(_PLACEHOLDER)


_UNWRAPPED_PX = 1e6
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
        *,
        wraps: bool = True,
    ) -> None:
        """`rtl`: the base direction of all lines; without it each hard line has its own.

        Not `wraps`: hard lines are as wide as they are, up to `_LONG_CHUNK_CHARACTERS`, so that growing costs
        the same for a line of any length; longer ones continue on the next line.
        """
        self._rtl = rtl
        self._wraps = wraps
        self._widest = 0.0  # of the lines, unless they wrap
        self.style = style
        self.text = ""
        self.lines: list[VisualLine] = []
        self._width = width
        self._styles = sorted(styles, key=lambda styled: styled.start)
        # Up to where each of them or one before it reaches.
        self._reach = list(accumulate((styled.end for styled in self._styles), max))
        self._link = link
        self._chunks: list[Chunk] = []
        self._formulas: list[PlacedFormula] = []
        self.awaits_formulas = False  # whether one is typeset now
        for styled in self._styles:
            if formula := formula_of(styled):
                if shape := formulas().get(formula):
                    self._formulas.append(PlacedFormula(styled.start, styled.end, shape, formula.display))
                elif not formulas().knows(formula):
                    self.awaits_formulas = True
        self.extend(text)

    @property
    def height(self) -> float:
        return self.lines[-1].top + self.lines[-1].height if self.lines else 0.0

    @property
    def full_width(self) -> float:
        """The width of the parts that are not broken into lines."""
        formulas = (each.shape.size_px(self.style.size_px)[0] for each in self._formulas)
        return max(formulas, default=self._widest)

    def continues(self, number: int) -> bool:
        """Whether the hard line of line `number` continues on the next line."""
        line, following = self.lines[number], self.lines[number + 1 : number + 2]
        return bool(following) and following[0].chunk is not line.chunk and following[0].start == line.end

    def around(self, char: int, *, back: bool) -> int:
        """The place `char`, or the beginning (`back`) or end of the formula that it is inside of."""
        inside = next((each for each in self._formulas if each.start < char < each.end), None)
        return char if inside is None else inside.start if back else inside.end

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
        while start <= len(text):
            end = text.find("\n", start)
            while end >= 0 and self.around(end, back=False) != end:  # a formula may contain line breaks
                end = text.find("\n", self.around(end, back=False))
            end = end if end >= 0 else len(text)
            self._add(start, text[start:end])
            start = end + 1
        for old, new in zip(before, self.lines[first_line:]):
            if (old.start, old.end) != (new.start, new.end):
                break
            first_line += 1
        return first_line

    def line_at(self, y: float) -> int:
        """The number of the line at height `y`, the nearest if `y` is outside."""
        return max(0, bisect_right(self.lines, y, key=lambda line: line.top) - 1)

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
        """The area of the characters [start, end), one rectangle of full line height per line."""
        found: list[QRectF] = []
        for line in self.lines[self.line_of(start) : self.line_of(max(start, end - 1)) + 1]:
            low, high = max(start, line.start), min(end, line.end)
            spans = line.spans(low, high) or [(line.x_at(low), line.x_at(low))]
            if high == line.end and high < end and not line.chunk.is_mixed:
                spans = [(spans[0][0], max(spans[0][1], line.right))]
            found += [QRectF(left, line.top, right - left, line.height) for left, right in spans]
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
            self.draw_formulas(painter, line, left, top)

    def draw_formulas(self, painter: QPainter, line: VisualLine, left: float, top: float) -> None:
        """Draw the formulas of `line`."""
        for formula in line.formulas:
            at = QPointF(left + line.left_of(formula), top + line.baseline)
            formula.shape.paint(painter, at, self.style.size_px)

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
        # Every second one in a run of touching stretches.
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
            top = self.height
            part = text[:_LONG_CHUNK_CHARACTERS]
            if len(part) < len(text) and self._formulas:
                end = self.around(start + len(part), back=True)
                part = text[: (end if end > start else self.around(start + len(part), back=False)) - start]
            chunk = Chunk(start, part, top, rtl, self._formulas_in(start, len(part)))
            lines = self._lay_out(chunk)
            is_last = len(part) == len(text)
            if is_last and len(lines) <= _LONG_CHUNK_LINES:
                self._keep(chunk, lines)
                return
            # A line may have thousands of zero-width characters: then it is cut anywhere.
            cut = lines[-_KEPT_OPEN_LINES].start - start if len(lines) > _KEPT_OPEN_LINES else len(part)
            if cut < len(part):
                chunk = Chunk(start, text[:cut], top, rtl, self._formulas_in(start, cut))
                lines = self._lay_out(chunk)
            self._keep(chunk, lines)
            start, text = start + cut, text[cut:]

    def _keep(self, chunk: Chunk, lines: list[VisualLine]) -> None:
        self._chunks.append(chunk)
        self.lines += lines
        if not self._wraps:
            self._widest = max(self._widest, *(max(line.right, line.x_at(line.end)) for line in lines))

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
        width = self._width if self._wraps else _UNWRAPPED_PX
        return lay_out(chunk, self.style, width, self._styles_in(chunk), self._link)

    def _formulas_in(self, start: int, length: int) -> list[PlacedFormula]:
        return [each for each in self._formulas if start <= each.start < start + length]

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
    """The stretches as Qt's format ranges."""
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
