"""Tints: which visible characters are inked by which token, and which inks share one tint. No Qt.

An *ink* is the part of a token that can be seen on one hard line: no spaces around it, no line
breaks, no indents. A *run* is a row of neighbouring inks of one class and step on one hard line;
it gets one tint. A run is *joined* at an end where it touches the neighbouring token's ink
without a space between, that is inside a word.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from msgspec import Struct

from app.richtext.markdown.spans import Span
from core.events import Origin

# Everything from the first to the last character of a hard line that is not white space.
_INK = re.compile(r"\S(?:[^\n]*\S)?")


class Ink(Struct, frozen=True, gc=False):
    """The visible characters [start, end) show token number `token`."""

    token: int
    start: int
    end: int
    origin: Origin
    step: int


class TintRun(Struct, frozen=True, gc=False):
    """Inks [first, last] (indices into the table) with one class and step: one tint over [start, end)."""

    first: int
    last: int
    start: int
    end: int
    origin: Origin
    step: int
    joined_left: bool = False
    joined_right: bool = False


class InkTable:
    """The inks and runs of one piece. Grows at the end; `cut` takes the end off again."""

    def __init__(self) -> None:
        self.inks: list[Ink] = []
        self.runs: list[TintRun] = []

    def extend(self, text: str, spans: Iterable[Span], origins: Iterable[tuple[Origin, int]]) -> None:
        """Add `spans` of the visible `text`; `origins` gives each span's class and step."""
        grown_from = len(self.inks)
        for span, (origin, step) in zip(spans, origins, strict=True):
            for match in _INK.finditer(text, span.start, span.end):
                self.inks.append(Ink(span.token, match.start(), match.end(), origin, step))
        self._group(text, grown_from)

    def cut(self, text: str, token: int) -> None:
        """Forget all inks of tokens from number `token` on."""
        keep = bisect_left(self.inks, token, key=lambda ink: ink.token)
        del self.inks[keep:]
        while self.runs and self.runs[-1].last >= keep:
            self.runs.pop()
        last = self.runs[-1].last + 1 if self.runs else 0
        self._group(text, last)

    def runs_between(self, start: int, end: int) -> list[TintRun]:
        """The runs that have a character in [start, end)."""
        low = bisect_right(self.runs, start, key=lambda run: run.end)
        high = bisect_left(self.runs, end, key=lambda run: run.start)
        return self.runs[low:high]

    def inks_between(self, start: int, end: int) -> list[Ink]:
        """The inks that have a character in [start, end)."""
        low = bisect_right(self.inks, start, key=lambda ink: ink.end)
        high = bisect_left(self.inks, end, key=lambda ink: ink.start)
        return self.inks[low:high]

    def numbers_of(self, token: int) -> range:
        """The numbers of the inks that show `token`."""
        low = bisect_left(self.inks, token, key=lambda ink: ink.token)
        return range(low, bisect_right(self.inks, token, lo=low, key=lambda ink: ink.token))

    def run_of(self, number: int) -> TintRun | None:
        """The run that ink `number` is in; None for a normal one."""
        index = bisect_right(self.runs, number, key=lambda run: run.first) - 1
        run = self.runs[index] if index >= 0 else None
        return run if run and number <= run.last else None

    def _group(self, text: str, first: int) -> None:
        """Bring `runs` up to date when inks from number `first` on are new."""
        inks = self.inks
        # The run before may go on, or become joined at its right end: group it again.
        while self.runs and self.runs[-1].last >= first - 1:
            first = self.runs.pop().first
        while first < len(inks):
            head = inks[first]
            last = first
            while last + 1 < len(inks) and _continues(text, inks[last], inks[last + 1]):
                last += 1
            if head.origin != "normal":
                self.runs.append(
                    TintRun(
                        first,
                        last,
                        head.start,
                        inks[last].end,
                        head.origin,
                        head.step,
                        first > 0 and inks[first - 1].end == head.start,
                        last + 1 < len(inks) and inks[last + 1].start == inks[last].end,
                    )
                )
            first = last + 1


def _continues(text: str, ink: Ink, following: Ink) -> bool:
    same = ink.origin == following.origin and ink.step == following.step
    return same and text.find("\n", ink.end, following.start) < 0
