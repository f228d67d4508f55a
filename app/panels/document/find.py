"""Where the words that are looked for stand in a document, and which of the places is looked at. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import islice

from msgspec import Struct

from app.panels.document.blocks import BlockPart, TextBlock
from app.richtext.canvas.selection import pattern_of

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
