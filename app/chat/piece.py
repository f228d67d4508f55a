"""Piece: one stretch of an answer as it is laid out: a paragraph, a list item, a code block. No Qt.

`text` is what can be seen and selected, `segments` say where in the answer's source it came from
(absolute offsets), `styles` how parts of it look. A list marker is not part of the text.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from app.chat.spans import Segment

PieceKind = Literal["text", "heading", "code", "table", "rule"]
Style = Literal["bold", "italic", "code", "link", "strike"]


class Styled(Struct, frozen=True):
    """The visible characters [start, end) have this style. Stretches may overlap."""

    start: int
    end: int
    style: Style


class Piece(Struct, frozen=True):
    """`source_start`, `source_end`: the source range it was made from, syntax included.

    `depth` counts the lists around it, `quotes` the block quotes. `level` is a heading's.
    """

    kind: PieceKind
    text: str
    segments: tuple[Segment, ...]
    source_start: int
    source_end: int
    styles: tuple[Styled, ...] = ()
    level: int = 0
    marker: str = ""
    depth: int = 0
    quotes: int = 0
    language: str = ""


def plain_piece(source: str, start: int, end: int) -> Piece:
    """The source from `start` to `end` as it stands, without line breaks around it."""
    while start < end and source[start] in "\r\n":
        start += 1
    shown_end = end
    while shown_end > start and source[shown_end - 1] in "\r\n":
        shown_end -= 1
    segments = (Segment(0, start, shown_end - start),) if shown_end > start else ()
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
    segments = (Segment(0, body, shown_end - body),) if shown_end > body else ()
    return Piece("code", source[body:shown_end], segments, start, end, language=language)


def gap_px(above: Piece, below: Piece) -> int:
    """The space between two pieces that follow each other."""
    if "code" in (above.kind, below.kind):
        return 12
    if below.kind == "heading":
        return 20 if below.level <= 2 else 16
    if above.kind == "heading":
        return 6
    if above.depth and below.depth:
        return 5
    if below.depth:
        return 8
    return 11
