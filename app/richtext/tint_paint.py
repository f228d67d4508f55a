"""Paints the marks of one piece's lines: a tint behind accepted tokens, dots under bonus tokens, and the
outline of the pointed step.

Order: tints, the pointed token, outlines, dots; the text is painted on top, elsewhere. Only lines in
the update region are visited, and marks that do not depend on the pointer are cached per line (`LineMarks`),
because scrolling paints the same lines repeatedly.

An *ink* is the visible part of a token on one hard line, without spaces around it, line breaks and indents.
A *run* is a row of neighboring inks of one class and step on one hard line, and gets one mark. A run is
*joined* at an end where it touches the neighboring token's ink inside a word.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap, QPixmapCache

from app.richtext.markdown.piece import Span
from app.richtext.piece_layout import PieceLayout, VisualLine
from app.theme.theme import color
from core.events import Origin

# Everything from the first to the last character of a hard line that is not white space.
_INK = re.compile(r"\S(?:[^\n]*\S)?")


class Ink(Struct, frozen=True, gc=False):
    """The visible characters [start, end) show token number `token`."""

    token: int
    start: int
    end: int
    origin: Origin
    step: int


class TintRun(Struct, frozen=True, gc=False):
    """Inks [first, last] (indices into the table) with one class and step: one mark over [start, end)."""

    first: int
    last: int
    start: int
    end: int
    origin: Origin
    step: int
    joined_left: bool = False
    joined_right: bool = False


class InkTable:
    """The inks and runs of one piece. Grows at the end; `cut` takes the end off again."""

    def __init__(self) -> None:
        self.inks: list[Ink] = []
        self.runs: list[TintRun] = []

    def extend(self, text: str, spans: Iterable[Span], origins: Iterable[tuple[Origin, int]]) -> None:
        """Add `spans` of the visible `text`; `origins` gives each span's class and step."""
        grown_from = len(self.inks)
        for span, (origin, step) in zip(spans, origins, strict=True):
            for match in _INK.finditer(text, span.start, span.end):
                self.inks.append(Ink(span.token, match.start(), match.end(), origin, step))
        self._group(text, grown_from)

    def cut(self, text: str, token: int) -> None:
        """Forget all inks of tokens from number `token` on."""
        keep = bisect_left(self.inks, token, key=lambda ink: ink.token)
        del self.inks[keep:]
        while self.runs and self.runs[-1].last >= keep:
            self.runs.pop()
        last = self.runs[-1].last + 1 if self.runs else 0
        self._group(text, last)

    def runs_between(self, start: int, end: int) -> list[TintRun]:
        """The runs that have a character in [start, end)."""
        low = bisect_right(self.runs, start, key=lambda run: run.end)
        high = bisect_left(self.runs, end, key=lambda run: run.start)
        return self.runs[low:high]

    def inks_between(self, start: int, end: int) -> list[Ink]:
        """The inks that have a character in [start, end)."""
        low = bisect_right(self.inks, start, key=lambda ink: ink.end)
        high = bisect_left(self.inks, end, key=lambda ink: ink.start)
        return self.inks[low:high]

    def numbers_of(self, token: int) -> range:
        """The numbers of the inks that show `token`."""
        low = bisect_left(self.inks, token, key=lambda ink: ink.token)
        return range(low, bisect_right(self.inks, token, lo=low, key=lambda ink: ink.token))

    def run_of(self, number: int) -> TintRun | None:
        """The run that ink `number` is in; None for a normal one."""
        index = bisect_right(self.runs, number, key=lambda run: run.first) - 1
        run = self.runs[index] if index >= 0 else None
        return run if run and number <= run.last else None

    def _group(self, text: str, first: int) -> None:
        """Bring `runs` up to date when inks from number `first` on are new."""
        inks = self.inks
        # The run before may go on, or become joined at its right end: group it again.
        while self.runs and self.runs[-1].last >= first - 1:
            first = self.runs.pop().first
        while first < len(inks):
            head = inks[first]
            last = first
            while last + 1 < len(inks) and _continues(text, inks[last], inks[last + 1]):
                last += 1
            if head.origin != "normal":
                self.runs.append(
                    TintRun(
                        first,
                        last,
                        head.start,
                        inks[last].end,
                        head.origin,
                        head.step,
                        first > 0 and inks[first - 1].end == head.start,
                        last + 1 < len(inks) and inks[last + 1].start == inks[last].end,
                    )
                )
            first = last + 1


def _continues(text: str, ink: Ink, following: Ink) -> bool:
    same = ink.origin == following.origin and ink.step == following.step
    return same and text.find("\n", ink.end, following.start) < 0


TokenColors = Literal["drafts", "origins", "off"]

DOT_PX = 1.8
DOT_PITCH_PX = 3.6
_JOIN_PX = 1.0
_RULE_GAP_PX = 1.5  # below a formula


@dataclass(frozen=True)
class Pointed:
    """The token under the pointer and its step."""

    token: int
    step: int


@dataclass(frozen=True)
class _Fragment:
    """A run's part on one line."""

    rect: QRectF
    square_left: bool
    square_right: bool


@dataclass(frozen=True)
class LineMarks:
    """All of one line, from the text's left top: tints of accepted tokens, dots under bonus tokens."""

    accepted: QPainterPath
    bonus: tuple[QRectF, ...]


def marks_of(layout: PieceLayout, inks: InkTable, number: int, only_step: int | None = None) -> LineMarks:
    """The marks of line `number`, of one step if given."""
    line, measures = layout.lines[number], layout.style.tint
    accepted, bonus = QPainterPath(), []
    accepted.setFillRule(Qt.FillRule.WindingFill)
    for run in inks.runs_between(line.start, line.end):
        if only_step not in (None, run.step):
            continue
        if run.origin == "bonus":
            below = max(measures.rule, line.reach(run.start, run.end)[1] + _RULE_GAP_PX)
            top = line.baseline + below - DOT_PX / 2
            spans = line_spans(layout, line, run.start, run.end)
            bonus += [QRectF(left, top, right - left, DOT_PX) for left, right in spans if right > left]
            continue
        for fragment in _fragments(layout, line, run):
            if fragment.square_left or fragment.square_right:
                shape = _shape(fragment.rect, measures.radius, fragment.square_left, fragment.square_right)
                accepted.addPath(shape)
            else:
                accepted.addRoundedRect(fragment.rect, measures.radius, measures.radius)
    return LineMarks(accepted, tuple(bonus))


def paint_marks(
    painter: QPainter,
    marks: Sequence[LineMarks],
    origin: QPointF,
    opacity: float = 1.0,
    paint_between: Callable[[], object] = lambda: None,
) -> None:
    """Paint the marks of lines whose text's left top is `origin`.

    `paint_between` is called after the tints, with the painter's origin there.
    """
    painter.save()
    painter.translate(origin)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setOpacity(opacity)
    painter.setBrush(color("accepted_tint"))
    for line in marks:
        if not line.accepted.isEmpty():
            painter.drawPath(line.accepted)
    painter.setOpacity(1.0)
    paint_between()
    painter.setOpacity(opacity)
    tile = dot_tile(color("bonus_line"), painter.deviceTransform().m11())
    for line in marks:
        for row in line.bonus:
            painter.drawTiledPixmap(row, tile)
    painter.restore()


def dot_tile(color: QColor, ratio: float) -> QPixmap:
    """A tile with a row of dots, because stroking many dots is slow."""
    key = f"draftlight-dots:{color.rgba():x}:{ratio:g}"
    tile = QPixmap()
    if QPixmapCache.find(key, tile):
        return tile
    # Five dots are a whole number of pixels on screens of one and of two pixels a unit.
    tile = QPixmap(round(5 * DOT_PITCH_PX * ratio), math.ceil(DOT_PX * ratio))
    tile.setDevicePixelRatio(ratio)
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    for dot in range(5):
        painter.drawEllipse(QRectF(0.1 + dot * DOT_PITCH_PX, 0, DOT_PX, DOT_PX))
    painter.end()
    QPixmapCache.insert(key, tile)
    return tile


def paint_pointed(
    painter: QPainter, layout: PieceLayout, inks: InkTable, lines: range, pointed: Pointed
) -> None:
    """Paint the pointed token on `lines`, numbers of `layout.lines`, and the outline of its step."""
    for number in lines:
        _paint_token(painter, layout, layout.lines[number], inks, pointed.token)
    for number in lines:
        line = layout.lines[number]
        for run in inks.runs_between(line.start, line.end):
            for fragment in _fragments(layout, line, run) if run.step == pointed.step else ():
                _outline(painter, fragment, layout.style.tint.radius)


def dots(color: QColor) -> QPen:
    """Round dots 3.6 px apart: dashes of no length with round caps. Dash lengths count in pen widths."""
    pen = QPen(color, DOT_PX)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setDashPattern([0.01, DOT_PITCH_PX / DOT_PX - 0.01])
    return pen


def line_spans(layout: PieceLayout, line: VisualLine, start: int, end: int) -> list[tuple[float, float]]:
    """The extents of [start, end) on `line`, without spaces where the line wraps: left and right edges."""
    low, high = max(start, line.start), min(end, line.end)
    text = layout.text
    while high > low and high < end and text[high - 1].isspace():
        high -= 1
    while low < high and low > start and text[low].isspace():
        low += 1
    return line.spans(low, high) if low < high else []


def _fragments(layout: PieceLayout, line: VisualLine, run: TintRun) -> list[_Fragment]:
    found: list[_Fragment] = []
    spans = [(left, right) for left, right in line_spans(layout, line, run.start, run.end) if right > left]
    measures = layout.style.tint
    before = run.joined_left and run.start >= line.start
    behind = run.joined_right and run.end <= line.end
    if line.chunk.is_mixed:
        # Which edge is the run's first depends on the letters there; between two directions none is joined.
        # The run may begin or end on another line, even in another chunk.
        first, last = max(run.start, line.start), min(run.end, line.end) - 1
        backwards = (before or behind) and first < last and line.x_at(first) > line.x_at(last)
        before, behind = (behind, before) if backwards else (before, behind)
        before, behind = before and len(spans) == 1, behind and len(spans) == 1
    for left, right in spans:
        left += _JOIN_PX if before else -measures.overhang
        right += 0 if behind else measures.overhang
        rect = _band(layout, line, left, right, run.start, run.end)
        found.append(_Fragment(rect, before, behind))
    return found


def _band(layout: PieceLayout, line: VisualLine, left: float, right: float, start: int, end: int) -> QRectF:
    """The tint's height over the characters [start, end), as high as the formulas there."""
    measures = layout.style.tint
    above, below = line.reach(start, end)
    top = max(measures.top, above + _JOIN_PX)
    bottom = max(measures.height - measures.top, below + _JOIN_PX)
    return QRectF(left, line.baseline - top, right - left, top + bottom)


def _outline(painter: QPainter, fragment: _Fragment, radius: float) -> None:
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(color("accepted_line"), 1))
    rect = fragment.rect.adjusted(-0.5, -0.5, 0.5, 0.5)
    painter.drawPath(_shape(rect, radius + 0.5, fragment.square_left, fragment.square_right))


def _paint_token(
    painter: QPainter, layout: PieceLayout, line: VisualLine, inks: InkTable, token: int
) -> None:
    """The token takes the hover tint, inside its run's shape; a normal one a grey one."""
    measures = layout.style.tint
    painter.setPen(Qt.PenStyle.NoPen)
    for number in inks.numbers_of(token):
        ink = inks.inks[number]
        if ink.start >= line.end or ink.end <= line.start:
            continue
        run = inks.run_of(number)
        fragments = _fragments(layout, line, run) if run else []
        for left, right in line_spans(layout, line, ink.start, ink.end):
            if right <= left:
                continue
            rect = _band(layout, line, left, right, ink.start, ink.end)
            if ink.origin == "normal":
                painter.setBrush(color("fill2"))
                painter.drawRoundedRect(rect, measures.radius, measures.radius)
                continue
            painter.setBrush(color(f"{ink.origin}_hover"))
            for fragment in fragments:
                # The tint hangs over at the ends of its run.
                if abs(rect.left() - fragment.rect.left()) <= measures.overhang + _JOIN_PX:
                    rect.setLeft(fragment.rect.left())
                if abs(rect.right() - fragment.rect.right()) <= measures.overhang + _JOIN_PX:
                    rect.setRight(fragment.rect.right())
                path = QPainterPath()
                path.addRect(rect)
                shape = _shape(fragment.rect, measures.radius, fragment.square_left, fragment.square_right)
                painter.drawPath(path.intersected(shape))


def _shape(rect: QRectF, radius: float, square_left: bool, square_right: bool) -> QPainterPath:
    """`rect` with round corners except on the square sides."""
    radius = min(radius, rect.width() / 2)
    left, right = 0.0 if square_left else radius, 0.0 if square_right else radius
    path = QPainterPath(QPointF(rect.left() + left, rect.top()))
    path.lineTo(rect.right() - right, rect.top())
    if right:
        path.arcTo(rect.right() - 2 * right, rect.top(), 2 * right, 2 * right, 90, -90)
    path.lineTo(rect.right(), rect.bottom() - right)
    if right:
        path.arcTo(rect.right() - 2 * right, rect.bottom() - 2 * right, 2 * right, 2 * right, 0, -90)
    path.lineTo(rect.left() + left, rect.bottom())
    if left:
        path.arcTo(rect.left(), rect.bottom() - 2 * left, 2 * left, 2 * left, 270, -90)
    path.lineTo(rect.left(), rect.top() + left)
    if left:
        path.arcTo(rect.left(), rect.top(), 2 * left, 2 * left, 180, -90)
    path.closeSubpath()
    return path
