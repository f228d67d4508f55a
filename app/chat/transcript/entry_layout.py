"""EntryLayout: where entries of known heights stand under each other, and what stays put when one changes.

Pure: heights in, places out. All numbers are pixels from the top of the conversation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple


class Anchor(NamedTuple):
    """Something the reader looks at: `offset` px (or, `scaled`, that share) of entry `place`'s
    height is above the view's top."""

    place: int
    offset: float
    scaled: bool = False


class EntryLayout:
    """`heights[i]` high entries with `gaps[i]` under them, the first one `first_px` from the top."""

    def __init__(self, heights: Sequence[int] = (), gaps: Sequence[int] = (), first_px: int = 0) -> None:
        self.heights = list(heights)
        steps = (height + gap for height, gap in zip(heights, gaps, strict=True))
        *self.tops, self.end = accumulate(steps, initial=first_px)

    def __len__(self) -> int:
        return len(self.tops)

    def bottom(self, index: int) -> int:
        """Where entry `place` ends."""
        return self.tops[index] + self.heights[index]

    def between(self, low: float, high: float) -> range:
        """The entries that touch [low, high)."""
        first = max(0, bisect_right(self.tops, low) - 1)
        if first < len(self) and self.bottom(first) <= low:
            first += 1
        return range(first, max(first, bisect_left(self.tops, high)))

    def anchor(self, view_top: float, view_bottom: float, measured: Sequence[bool]) -> Anchor | None:
        """What must not move: the first measured entry in the view, else the share of the first one."""
        seen = self.between(view_top, view_bottom)
        for index in seen:
            if measured[index]:
                return Anchor(index, view_top - self.tops[index])
        if not seen:
            return None
        height = max(1, self.heights[seen[0]])
        return Anchor(seen[0], (view_top - self.tops[seen[0]]) / height, scaled=True)

    def view_top(self, anchor: Anchor) -> int:
        """Where the view has to start so that `anchor` is where it was."""
        if anchor.place >= len(self):
            return self.end
        offset = anchor.offset * self.heights[anchor.place] if anchor.scaled else anchor.offset
        return round(self.tops[anchor.place] + offset)
