"""CopyCursor: where in the text the answer is being copied from, followed across changed words.

A suffix match breaks at the first token that differs from its source and needs several tokens to
become long again, though an edited copy mostly goes on right behind the change. So the thread
keeps its place: after a token that differs it takes it for a replaced one and moves on by one,
or, if the token is one of the source's next three, for words left out. It is lost after
`_PATIENCE` differences with no two tokens in a row that agree.

It takes up a new place where a suffix of two tokens matches and it had none (or has just failed),
or of four and its own run is shorter than that match.

Invariant: `at` is an offset into the index's text or `NOWHERE`; nothing is promised about it but
that. `run` counts the tokens that agreed in a row, `trust` does so too and is only halved by a
difference: the longer it went well, the likelier it goes on behind a change (1 to 3% in copies
with one word in fifty changed). Knows no probabilities.
"""

from __future__ import annotations

from core.drafting.evidence.suffix_index import NOWHERE, ROOT, SuffixIndex

_PATIENCE = 8
_LOOK_AHEAD = 3
_TAKE_UP = 2
_CHANGE_OVER = 4


class CopyCursor:
    """Of one request, beside its index."""

    __slots__ = ("_differences", "at", "run", "trust")

    def __init__(self) -> None:
        self.lose()

    def lose(self) -> None:
        """There is no source."""
        self.at: int = NOWHERE
        self.run: int = 0
        self.trust: int = 0
        self._differences: int = 0

    def follow(self, index: SuffixIndex, token: int) -> None:
        """`token` comes next; `index` does not hold it yet."""
        text = index.text
        if not 0 <= self.at < len(text):
            self.lose()
            return
        if text[self.at] == token:
            self.at += 1
            self.run += 1
            self.trust += 1
            if self.run > 1:
                self._differences = 0
            return
        self.run = 0
        self.trust //= 2
        self._differences += 1
        if self._differences > _PATIENCE:
            self.lose()
            return
        ahead = text[self.at + 1 : self.at + 1 + _LOOK_AHEAD]
        self.at += ahead.index(token) + 2 if token in ahead else 1

    def take_up(self, index: SuffixIndex) -> None:
        """Start anew where the index, which holds the newest token by now, has a better match."""
        place = index.tip()
        if place == ROOT:
            return
        matched = index.length(place)
        alive = self.at >= 0 and self.run > 0
        if matched >= (_CHANGE_OVER if alive else _TAKE_UP) and (not alive or self.run < matched - 2):
            self.at, self._differences = index.newest(place), 0
            self.run = self.trust = matched
