"""Search in the visible text of pieces. No Qt.

Case is ignored, and any white space matches any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from app.richtext.markdown.piece import Piece


class Match(Struct, frozen=True, gc=False):
    """The visible characters [start, end) of piece number `piece`."""

    piece: int
    start: int
    end: int


def pattern_of(needle: str) -> re.Pattern[str] | None:
    """What matches `needle`: any capitals, any white space for any other. None if there are no words."""
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
