"""Selection: the selected text of an answer, and its text for copying. No Qt.

A place is a gap between two characters of a piece. Copied text is the visible text: no Markdown
syntax, list markers kept, one empty line between paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from app.richtext.markdown.piece import Piece

_MARKERS = {"•": "-", "☐": "- [ ]", "☑": "- [x]"}
_WORD = re.compile(r"\w+")


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
    """All of `pieces`."""
    last = len(pieces) - 1
    return TextSelection(
        TextPlace(0, 0), TextPlace(last, len(pieces[last].text)) if pieces else TextPlace(0, 0)
    )


def word_at(text: str, char: int) -> tuple[int, int]:
    """The word around `char`, or the one character if there is none."""
    for match in _WORD.finditer(text):
        if match.start() <= char < match.end():
            return match.span()
    return (char, min(char + 1, len(text)))


def selected_text(
    pieces: Sequence[Piece], selection: TextSelection, hidden: Callable[[Piece], bool] = lambda piece: False
) -> str:
    """The text to copy, without `hidden` pieces and headers of thoughts."""
    copied: list[str] = []
    above: Piece | None = None
    for number in range(selection.start.piece, min(selection.end.piece + 1, len(pieces))):
        piece = pieces[number]
        if piece.kind == "thought" or hidden(piece):
            continue
        if above:
            copied.append("\n" if above.depth and piece.depth else "\n\n")
        chosen = selection.in_piece(number, len(piece.text)) or (0, 0)
        if piece.marker and chosen[0] == 0:
            copied.append("  " * (piece.depth - 1) + _MARKERS.get(piece.marker, piece.marker) + " ")
        # Spreadsheets and editors would take a line separator for a new row.
        copied.append(piece.text[chosen[0] : chosen[1]].replace("\u2028", " "))
        above = piece
    # A selection inside one item is just words.
    if selection.start.piece == selection.end.piece:
        return copied[-1] if copied else ""
    return "".join(copied)
