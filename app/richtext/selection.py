"""Selection, caret and search in the visible text of an answer.

A place is a gap between two characters of a piece. Copied text is the visible text: no Markdown syntax, list
markers kept, one empty line between paragraphs. A search ignores case, and any white space matches any other.
No painting, no events.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QTextBoundaryFinder

from app.richtext.html import part_of
from app.richtext.markdown.piece import Piece
from app.richtext.piece_box import PieceBox

_MARKERS = {"•": "-", "☐": "- [ ]", "☑": "- [x]"}


class TextPlace(NamedTuple):
    """Before character `char` of piece number `piece`. Ordered as the text is read."""

    piece: int
    char: int


class TextSelection(Struct, frozen=True):
    """From where the mouse went down (`anchor`) to where it is now (`head`)."""

    anchor: TextPlace
    head: TextPlace

    @property
    def start(self) -> TextPlace:
        return min(self.anchor, self.head)

    @property
    def end(self) -> TextPlace:
        return max(self.anchor, self.head)

    @property
    def is_empty(self) -> bool:
        return self.anchor == self.head

    def in_piece(self, number: int, length: int) -> tuple[int, int] | None:
        """The selected characters of piece `number`, which has `length`; None if there are none."""
        if not self.start.piece <= number <= self.end.piece:
            return None
        low = self.start.char if number == self.start.piece else 0
        high = self.end.char if number == self.end.piece else length
        return (low, high) if low < high else None


def everything(pieces: Sequence[Piece]) -> TextSelection:
    last = len(pieces) - 1
    return TextSelection(
        TextPlace(0, 0), TextPlace(last, len(pieces[last].text)) if pieces else TextPlace(0, 0)
    )


def word_at(text: str, char: int) -> tuple[int, int]:
    """The word around `char` with its combining marks, or one visible character if there is none."""
    start = end = char
    while start and _is_in_word(text[start - 1]):
        start -= 1
    while end < len(text) and _is_in_word(text[end]):
        end += 1
    if end > char and any(each.isalnum() or each == "_" for each in text[start:end]):
        return start, end
    if char >= len(text):
        return char, char
    start = _boundary(text, char, back=True, may_stay=True)
    return start, _boundary(text, start, back=False)


def _boundary(text: str, char: int, *, back: bool, may_stay: bool = False) -> int:
    """The next place around `char` between two graphemes; `char` if `may_stay` and it is one."""
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, text)
    finder.setPosition(utf16_length(text[:char]))
    if may_stay and finder.isAtBoundary():
        return char
    at = finder.toPreviousBoundary() if back else finder.toNextBoundary()
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * at].decode("utf-16-le", "surrogatepass"))


def _is_in_word(character: str) -> bool:
    """Whether it is a letter, a figure, "_", or a mark that belongs to one, as in हिन्दी."""
    is_mark = unicodedata.category(character)[0] == "M" or character in "\u200c\u200d"
    return character.isalnum() or character == "_" or is_mark


def selected_pieces(
    pieces: Sequence[Piece], selection: TextSelection, hidden: Callable[[Piece], bool] = lambda piece: False
) -> list[Piece]:
    """The selected pieces and parts of pieces, without `hidden` ones and headers of thoughts.

    A part from the middle of an item has no marker, nor has a selection inside one item.
    """
    chosen: list[Piece] = []
    for number in range(selection.start.piece, min(selection.end.piece + 1, len(pieces))):
        piece = pieces[number]
        if piece.kind in ("thought", "images") or hidden(piece):
            continue
        first = selection.start.char if number == selection.start.piece else 0
        start, end = selection.in_piece(number, len(piece.text)) or (0, 0)
        part = part_of(piece, start, end)
        bare = first > 0 or selection.start.piece == selection.end.piece
        chosen.append(replace(part, marker="", thought=-1) if bare else replace(part, thought=-1))
    return chosen


def text_of(pieces: Sequence[Piece]) -> str:
    """The text to copy of selected pieces."""
    copied: list[str] = []
    for number, piece in enumerate(pieces):
        if number:
            copied.append("\n" if pieces[number - 1].depth and piece.depth else "\n\n")
        if piece.marker:
            copied.append("  " * (piece.depth - 1) + _MARKERS.get(piece.marker, piece.marker) + " ")
        # Spreadsheets and editors would take a line separator for a new row.
        copied.append(piece.text.replace("\u2028", " "))
    return "".join(copied)


def selected_text(
    pieces: Sequence[Piece], selection: TextSelection, hidden: Callable[[Piece], bool] = lambda piece: False
) -> str:
    """The text to copy, without `hidden` pieces and headers of thoughts."""
    return text_of(selected_pieces(pieces, selection, hidden))


Move = Literal["left", "right", "word_left", "word_right", "up", "down", "home", "end", "first", "last"]

_MIRRORED: dict[Move, Move] = {
    "left": "right", "right": "left", "word_left": "word_right", "word_right": "word_left",
}  # fmt: skip


def moved(boxes: Sequence[PieceBox], place: TextPlace, move: Move) -> TextPlace:
    """`place` after `move`; it stays where it is at the ends of the text."""
    without_text = ("thought", "images")
    seen = [n for n, box in enumerate(boxes) if not box.hidden and box.piece.kind not in without_text]
    if not seen:
        return place
    if move in ("first", "last"):
        return (
            TextPlace(seen[0], 0) if move == "first" else TextPlace(seen[-1], len(boxes[seen[-1]].piece.text))
        )
    if move in ("up", "down", "home", "end"):
        return _along_lines(boxes, seen, place, move)
    text, char = boxes[place.piece].piece.text, place.char
    if boxes[place.piece].rtl:  # an arrow goes where it points
        move = _MIRRORED.get(move, move)
    back = move in ("left", "word_left")
    if (back and char == 0) or (not back and char >= len(text)):
        other = _neighbour(seen, place.piece, -1 if back else 1)
        if other is None:
            return place
        return TextPlace(other, len(boxes[other].piece.text) if back else 0)
    layout = boxes[place.piece].layout
    if move in ("left", "right"):
        return TextPlace(place.piece, layout.around(_boundary(text, char, back=back), back=back))
    step, ahead = (-1, -1) if back else (1, 0)
    for in_word in (False, True):  # to the next word, then to its other end
        while 0 <= char + ahead < len(text) and _is_in_word(text[char + ahead]) is in_word:
            char += step
    char = _boundary(text, char, back=back, may_stay=True)
    return TextPlace(place.piece, layout.around(char, back=back))


def _along_lines(boxes: Sequence[PieceBox], seen: Sequence[int], place: TextPlace, move: Move) -> TextPlace:
    layout = boxes[place.piece].layout
    number = layout.line_of(place.char)
    line = layout.lines[number]
    if move == "home":
        return TextPlace(place.piece, line.start)
    if move == "end":
        return TextPlace(place.piece, line.end)
    step = -1 if move == "up" else 1
    x = boxes[place.piece].text_left + line.x_at(min(max(place.char, line.start), line.end))
    target = place.piece
    if not 0 <= number + step < len(layout.lines):
        other = _neighbour(seen, place.piece, step)
        if other is None:
            return moved(boxes, place, "first" if step < 0 else "last")
        target = other
        lines = boxes[target].layout.lines
        line = lines[-1] if step < 0 else lines[0]
    else:
        line = layout.lines[number + step]
    char = line.char_at(x - boxes[target].text_left, between=True)
    return TextPlace(target, max(line.start, min(char, line.end)))


def _neighbour(seen: Sequence[int], piece: int, step: int) -> int | None:
    index = seen.index(piece) + step if piece in seen else 0
    return seen[index] if 0 <= index < len(seen) else None


def utf16_length(text: str) -> int:
    """The length of `text` in UTF-16 units, as Qt counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Match(Struct, frozen=True, gc=False):
    """The visible characters [start, end) of piece number `piece`."""

    piece: int
    start: int
    end: int


def pattern_of(needle: str) -> re.Pattern[str] | None:
    """Pattern of `needle`, ignoring case and the kind of white space. None if it has no words."""
    words = needle.split()
    return re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE) if words else None


def matches_in(pieces: Sequence[Piece], needle: str) -> tuple[Match, ...]:
    """Where `needle` is in `pieces`, in reading order; an empty one is nowhere."""
    pattern = pattern_of(needle)
    if pattern is None:
        return ()
    return tuple(
        Match(number, match.start(), match.end())
        for number, piece in enumerate(pieces)
        for match in pattern.finditer(piece.text)
    )
