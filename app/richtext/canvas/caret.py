"""Caret: where the end of a selection goes when a key moves it. No painting, no events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from app.richtext.canvas.selection import TextPlace
from app.richtext.layout.piece_box import PieceBox

Move = Literal["left", "right", "word_left", "word_right", "up", "down", "home", "end", "first", "last"]

_MIRRORED: dict[Move, Move] = {
    "left": "right", "right": "left", "word_left": "word_right", "word_right": "word_left",
}  # fmt: skip
_WORD_END = re.compile(r"\W*\w+|\W+")


def moved(boxes: Sequence[PieceBox], place: TextPlace, move: Move) -> TextPlace:
    """`place` after `move`; it stays where it is at the ends of the text."""
    seen = [number for number, box in enumerate(boxes) if not box.hidden and box.piece.kind != "thought"]
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
    if move == "left":
        return TextPlace(place.piece, char - 1)
    if move == "right":
        return TextPlace(place.piece, char + 1)
    if move == "word_right":
        match = _WORD_END.match(text, char)
        return TextPlace(place.piece, match.end() if match else len(text))
    starts = [match.start() for match in re.finditer(r"\w+", text) if match.start() < char]
    return TextPlace(place.piece, starts[-1] if starts else 0)


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
