"""Piece: one stretch of an answer as it is laid out: a paragraph, a list item, a code block. No Qt.

`text` is the visible, selectable text, `segments` say where in the answer's source it came from
(absolute offsets), `styles` how parts of it look. A list marker is not part of the text.

`TextSegment`s map visible characters to the source: syntax is left out and padding may be put in. Ranges are
end-exclusive.

`report` logs what could not be shown as intended: a block that cannot be parsed is shown as source, a text
that cannot be laid out or painted is replaced by a sentence.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct


class TextSegment(Struct, frozen=True, gc=False):
    """`length` visible characters from `start` are the source's from `source`, one for one."""

    start: int
    source: int
    length: int

    @property
    def end(self) -> int:
        return self.start + self.length


class Span(Struct, frozen=True, gc=False):
    """The visible characters [start, end) belong to token number `token`."""

    token: int
    start: int
    end: int


def segments_of(origins: Iterable[int]) -> tuple[TextSegment, ...]:
    """Segments for visible characters whose source offsets are `origins` (−1: put in, no source)."""
    found: list[TextSegment] = []
    start, source, length = 0, -1, 0
    for place, origin in enumerate(origins):
        if length and origin == source + length:
            length += 1
            continue
        if length:
            found.append(TextSegment(start, source, length))
        start, source, length = place, origin, 1 if origin >= 0 else 0
    if length:
        found.append(TextSegment(start, source, length))
    return tuple(found)


def source_at(segments: Sequence[TextSegment], place: int) -> int | None:
    """The source offset of the visible character at `place`; None if it was put in."""
    index = bisect_right(segments, place, key=lambda segment: segment.start) - 1
    if index < 0 or place >= segments[index].end:
        return None
    return segments[index].source + place - segments[index].start


def place_of(segments: Sequence[TextSegment], source: int) -> int:
    """The first visible place that shows source offset `source` or anything after it."""
    for segment in segments:
        if source < segment.source + segment.length:
            return segment.start + max(0, source - segment.source)
    return segments[-1].end if segments else 0


def shown_range(segments: Sequence[TextSegment], start: int, end: int) -> tuple[int, int] | None:
    """The visible range of the source range [start, end); None if no part of it is visible."""
    low: int | None = None
    high = 0
    for segment in segments:
        a = max(start, segment.source)
        b = min(end, segment.source + segment.length)
        if a < b:
            if low is None:
                low = segment.start + a - segment.source
            high = segment.start + b - segment.source
    return None if low is None else (low, high)


LOG = logging.getLogger("draftlight.window.unshown")


def report(what: str, error: Exception) -> None:
    """`what` failed with `error`. Nothing of the text itself is logged."""
    LOG.error("%s could not be shown: %s", what, type(error).__name__, exc_info=error)


PieceKind = Literal["text", "heading", "code", "table", "rule", "thought", "images"]
# formula: inline LaTeX; display: LaTeX in a separate paragraph, or meant to be.
Style = Literal["bold", "italic", "code", "link", "strike", "formula", "display"]


class Styled(Struct, frozen=True, gc=False):
    """The visible characters [start, end) have this style. Stretches may overlap.

    `target` is where a link goes, or the LaTeX of a formula, whose visible characters are its source.
    """

    start: int
    end: int
    style: Style
    target: str = ""


class TableCell(Struct, frozen=True, gc=False):
    """The visible characters [start, end) of a table cell. Row 0 is the head."""

    row: int
    column: int
    start: int
    end: int


Align = Literal["left", "center", "right"]


class Piece(Struct, frozen=True):
    """`source_start`, `source_end`: the source range it was made from, syntax included.

    `depth` counts the lists around it, `quotes` the block quotes. `level` is a heading's. `cells`
    and `aligns` (one a column) are a table's, whose text has a tab between cells and a line a row.
    `thought` is the start of the thought that the piece is part of (−1: none); the piece of kind
    `thought` is its header and has no text. A call and its result are folded like a thought. `images` has no
    text either; its `level` is their number.
    """

    kind: PieceKind
    text: str
    segments: tuple[TextSegment, ...]
    source_start: int
    source_end: int
    styles: tuple[Styled, ...] = ()
    level: int = 0
    marker: str = ""
    depth: int = 0
    quotes: int = 0
    language: str = ""
    cells: tuple[TableCell, ...] = ()
    aligns: tuple[Align, ...] = ()
    thought: int = -1

    def link_at(self, char: int) -> str:
        """Where the link at character `char` goes; empty if there is none."""
        return next((s.target for s in self.styles if s.style == "link" and s.start <= char < s.end), "")


def plain_piece(source: str, start: int, end: int) -> Piece:
    """The source from `start` to `end` unchanged, without line breaks around it."""
    while start < end and source[start] in "\r\n":
        start += 1
    shown_end = end
    while shown_end > start and source[shown_end - 1] in "\r\n":
        shown_end -= 1
    segments = (TextSegment(0, start, shown_end - start),) if shown_end > start else ()
    return Piece("text", source[start:shown_end], segments, start, end)


def open_code_piece(source: str, start: int, body: int, end: int, language: str) -> Piece:
    """A fenced block that is still being written: its code starts at `body`.

    A last line of fence characters only is held back: it is about to become the closing fence.
    """
    shown_end = end
    last_line = source.rfind("\n", body, end) + 1 or body
    tail = source[last_line:end].strip()
    if tail and not tail.strip("`~"):
        shown_end = last_line
    while shown_end > body and source[shown_end - 1] in "\r\n":
        shown_end -= 1
    segments = (TextSegment(0, body, shown_end - body),) if shown_end > body else ()
    return Piece("code", source[body:shown_end], segments, start, end, language=language)


def gap_px(above: Piece, below: Piece) -> int:
    """The space between two pieces that follow each other, without zoom."""
    if below.kind == "thought":
        return 12
    if above.kind == "thought":
        return 4 if below.thought >= 0 else 8
    if above.thought >= 0 > below.thought:
        return 14
    if "code" in (above.kind, below.kind) or "table" in (above.kind, below.kind):
        return 12
    if below.thought >= 0 and above.thought >= 0:
        return 8
    if below.kind == "heading":
        return 20 if below.level <= 2 else 16
    if above.kind == "heading":
        return 6
    if above.depth and below.depth:
        return 5
    if below.depth:
        return 8
    return 11
