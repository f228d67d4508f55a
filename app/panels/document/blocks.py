"""A document's text as blocks that are laid out one by one: lines, and pieces of lines that are very long.

Lines of a paragraph that was wrapped at a fixed width are one block, in which line breaks are spaces.
Pure. Blocks are in order, do not overlap and hold all that is not white space between paragraphs;
ranges are characters of the text, end-exclusive.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import islice

from msgspec import Struct

from app.chat.reading.reading_map import Stretch, heading_levels
from app.richtext.canvas.matches import pattern_of

# Laid out in a few milliseconds; a line of a CSV or minified JSON can have a million characters.
MOST_CHARACTERS = 2_000
# A line of prose that is at least so long was wrapped there; one that begins otherwise than prose was not.
_WRAPPED_CHARACTERS = 40
_NO_PROSE = re.compile(r"\s|[-*+|>#~`•]|\d+[.)]\s")


class TextBlock(Struct, frozen=True):
    """`opens` and `closes`: whether it is the first or last of its paragraph."""

    start: int
    end: int
    heading: bool = False
    opens: bool = True
    closes: bool = True


class BlockPart(Struct, frozen=True):
    """Some of a block, in its own characters, that is read; `stretch` is which stretch it belongs to."""

    first: int
    last: int
    stretch: int


def blocks_of(text: str) -> tuple[TextBlock, ...]:
    """All blocks of `text`."""
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
    """What of `block` is read. `starts` are the stretches' first characters."""
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
    """The block that holds `character`, or the one before it; `starts` are the blocks' first characters."""
    return max(0, bisect_right(starts, character) - 1)


def _continues(before: str, line: str) -> bool:
    """Whether the paragraph's line `before` was wrapped where `line` begins."""
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


# One letter in a long document is everywhere; nobody steps through that many.
MOST = 10_000


class Matches(Struct, frozen=True):
    """Match i is the characters `starts[i]` to `ends[i]` (end-exclusive); `current` is looked at, or −1.

    `whole` says that there are no more than these.
    """

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    current: int = -1
    whole: bool = True

    def within(self, block: TextBlock) -> tuple[BlockPart, ...]:
        """What of `block` is in a match, in its own characters; `stretch` is the match's number."""
        found = []
        for number in range(bisect_right(self.ends, block.start), bisect_left(self.starts, block.end)):
            first, last = max(block.start, self.starts[number]), min(block.end, self.ends[number])
            found.append(BlockPart(first - block.start, last - block.start, number))
        return tuple(found)


NONE = Matches()


def matches_of(text: str, needle: str, shown: Callable[[int], bool], first_seen: int) -> Matches:
    """Where `needle` is in `text`, of what is `shown`; the first from `first_seen` on is looked at."""
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
