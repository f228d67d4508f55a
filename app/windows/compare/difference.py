"""Difference: which words two texts have in common. Pure, no Qt."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from msgspec import Struct

# Words, runs of white space, and single other characters.
_PIECES = re.compile(r"\w+|\s+|[^\w\s]")


class Stretch(Struct, frozen=True):
    """Characters [start, end) of a text; `common` if the other text has them at this place, too."""

    start: int
    end: int
    common: bool


class Difference(Struct, frozen=True):
    """Each text from its beginning to its end; `alike` is the share of words in common, 0 to 1."""

    left: tuple[Stretch, ...]
    right: tuple[Stretch, ...]
    alike: float


def difference(left: str, right: str) -> Difference:
    """By words, so that a changed word is marked whole."""
    ours, theirs = _PIECES.findall(left), _PIECES.findall(right)
    matcher = SequenceMatcher(None, ours, theirs, autojunk=len(ours) * len(theirs) > 4_000_000)
    sides: tuple[list[Stretch], list[Stretch]] = ([], [])
    at = [0, 0]
    common = 0
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, pieces in enumerate((ours[a:b], theirs[c:d])):
            end = at[side] + sum(map(len, pieces))
            if end > at[side]:
                sides[side].append(Stretch(at[side], end, kind == "equal"))
            at[side] = end
        common += sum(not piece.isspace() for piece in ours[a:b]) if kind == "equal" else 0
    words = max(sum(not piece.isspace() for piece in pieces) for pieces in (ours, theirs))
    return Difference(tuple(sides[0]), tuple(sides[1]), common / words if words else 1.0)
