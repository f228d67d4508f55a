"""A document's text as blocks that are laid out one by one, and the search in it. Pure.

A block is a line, a part of a very long line, or the lines of a paragraph wrapped at a fixed width, whose
line breaks count as spaces. Blocks are in order, do not overlap and contain all text but the white space
between paragraphs; ranges are end-exclusive character positions.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import islice

from msgspec import Struct

from app.chat.reading_map import Stretch, heading_levels
from app.richtext.selection import pattern_of

# Laid out in a few milliseconds; a line of a CSV or minified JSON can have a million characters.
MOST_CHARACTERS = 2_000
# A line of prose of at least this length was wrapped there; one that does not begin like prose was not.
_WRAPPED_CHARACTERS = 40
_NO_PROSE = re.compile(r"\s|[-*+|>#~`•]|\d+[.)]\s")


class TextBlock(Struct, frozen=True):
    """`opens` and `closes`: it is the first or last block of its paragraph."""

    start: int
    end: int
    heading: bool = False
    opens: bool = True
    closes: bool = True


class BlockPart(Struct, frozen=True):
    """A part of a block that is read, in characters of the block; `stretch` is the number of its stretch."""

    first: int
    last: int
    stretch: int


def blocks_of(text: str) -> tuple[TextBlock, ...]:
    """Returns the blocks of `text`."""
    found: list[TextBlock] = []
    start, opens, before = 0, True, ""
    lines = text.split("\n")
    for line, level in zip(lines, heading_levels(lines)):
        end = start + len(line)
        if line.strip():
            heading = level > 0
            if not opens and not heading and _continues(before, line):
                joined = end - found[-1].start
                if joined <= MOST_CHARACTERS:
                    found[-1] = TextBlock(found[-1].start, end, opens=found[-1].opens, closes=False)
                    start, before = end + 1, line
                    continue
            if heading and found:
                found[-1] = _closing(found[-1])
            pieces = list(_pieces(text, start, end))
            for number, (first, last) in enumerate(pieces):
                found.append(TextBlock(first, last, heading, opens and number == 0, closes=False))
            opens = heading
            if heading:
                found[-1] = _closing(found[-1])
        else:
            if found:
                found[-1] = _closing(found[-1])
            opens = True
        start, before = end + 1, line
    if found:
        found[-1] = _closing(found[-1])
    return tuple(found)


def parts_of(block: TextBlock, stretches: Sequence[Stretch], starts: Sequence[int]) -> tuple[BlockPart, ...]:
    """Returns the read parts of `block`. `starts` are the stretches' first characters."""
    found = []
    number = max(0, bisect_right(starts, block.start) - 1)
    while number < len(stretches) and stretches[number].first < block.end:
        stretch = stretches[number]
        first, last = max(block.start, stretch.first), min(block.end, stretch.last)
        if first < last:
            found.append(BlockPart(first - block.start, last - block.start, number))
        number += 1
    return tuple(found)


def block_at(starts: Sequence[int], character: int) -> int:
    """Returns the index of the block with `character`, or of the one before; `starts` are the blocks' first
    characters.
    """
    return max(0, bisect_right(starts, character) - 1)


def _continues(before: str, line: str) -> bool:
    """Whether the line `before` was wrapped before `line`."""
    return len(before) >= _WRAPPED_CHARACTERS and not _NO_PROSE.match(before) and not _NO_PROSE.match(line)


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    while end - start > MOST_CHARACTERS:
        space = text.rfind(" ", start, start + MOST_CHARACTERS)
        cut = space + 1 if space > start else start + MOST_CHARACTERS
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, end)]


def _closing(block: TextBlock) -> TextBlock:
    return TextBlock(block.start, block.end, block.heading, block.opens, closes=True)


# A single letter would match everywhere in a long document.
MOST = 10_000


class Matches(Struct, frozen=True):
    """Match i is the range `starts[i]` to `ends[i]` (end-exclusive); `current` is its selected match, or −1.

    `whole`: there are no further matches.
    """

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    current: int = -1
    whole: bool = True

    def within(self, block: TextBlock) -> tuple[BlockPart, ...]:
        """Returns the matching parts of `block`, in its characters; `stretch` is the match's number."""
        found = []
        for number in range(bisect_right(self.ends, block.start), bisect_left(self.starts, block.end)):
            first, last = max(block.start, self.starts[number]), min(block.end, self.ends[number])
            found.append(BlockPart(first - block.start, last - block.start, number))
        return tuple(found)


NONE = Matches()


def matches_of(text: str, needle: str, shown: Callable[[int], bool], first_seen: int) -> Matches:
    """Returns the matches of `needle` in the `shown` parts of `text`; the first from `first_seen` on is
    current.
    """
    pattern = pattern_of(needle)
    if pattern is None:
        return NONE
    found = [match.span() for match in islice(pattern.finditer(text), MOST + 1)]
    whole = len(found) <= MOST
    found = [span for span in found[:MOST] if shown(span[0])]
    if not found:
        return Matches(whole=whole)
    starts, ends = zip(*found)
    return Matches(starts, ends, bisect_left(starts, first_seen) % len(starts), whole)
