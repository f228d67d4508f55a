"""Piece: one stretch of an answer as it is laid out: a paragraph, a list item, a code block. No Qt.

`text` is what can be seen and selected, `segments` say where in the answer's source it came from
(absolute offsets), `styles` how parts of it look. A list marker is not part of the text.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from app.richtext.markdown.spans import TextSegment

PieceKind = Literal["text", "heading", "code", "table", "rule", "thought"]
Style = Literal["bold", "italic", "code", "link", "strike"]


class Styled(Struct, frozen=True, gc=False):
    """The visible characters [start, end) have this style. Stretches may overlap.

    `target` is where a link goes.
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
    `thought` is its header and has no text.
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
        return next((s.target for s in self.styles if s.target and s.start <= char < s.end), "")


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
