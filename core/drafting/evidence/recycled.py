"""Recycled: what the verifier ranked high where it has already been asked, kept as evidence.

A forward gives the verifier's best ids at every row, and plain decoding uses the first only. Two
uses of the others:
- *after* a token: what ranked high the last time this token was the last one. A weak guess at
  what follows, but there is one as soon as a token occurs twice.
- *passed over*: what ranked high one or two places ago and was not said. Such words come soon:
  in recorded answers the runner-up of one place is the very next token 5% of the time, often
  where nothing else is known at all.

Invariant: at most one row of ids a token, the newest; at most `capacity` rows, the least recently
written one leaves. Knows no probabilities, for the verifier's are not handed over.

Source: the adjacency matrix of "Token Recycling" (Luo et al., 2024), kept as a dict of rows
without its breadth-first tree; that words passed over come soon is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[int, ...]

ROW_IDS = 8
# About a vocabulary's worth: there is a row for each different token at most.
CAPACITY_ROWS = 1 << 16


class Recycled:
    """Of one request. Rows are best first."""

    def __init__(self, capacity: int = CAPACITY_ROWS) -> None:
        self._capacity = capacity
        self._after: dict[int, Row] = {}
        self._passed: tuple[Row, Row] = ((), ())

    def __len__(self) -> int:
        """Rows held."""
        return len(self._after)

    def see(self, last: int, ids: Sequence[int], said: int) -> None:
        """After `last` the verifier ranked `ids`, and `said` was said."""
        row = self.see_rejected(last, ids)
        newest = self._passed[0]
        self._passed = (
            tuple(token for token in row if token != said),
            tuple(token for token in newest if token != said),
        )

    def see_rejected(self, last: int, ids: Sequence[int]) -> Row:
        """The same for a place that was verified and is not part of the answer."""
        row = tuple(ids[:ROW_IDS])
        self._after.pop(last, None)
        self._after[last] = row
        if len(self._after) > self._capacity:
            del self._after[next(iter(self._after))]
        return row

    def after(self, last: int) -> Row:
        """What ranked high the last time `last` was the last token; empty if that is not known."""
        return self._after.get(last, ())

    def passed_over(self, places_ago: int) -> Row:
        """What ranked high 1 or 2 places ago (1 is the newest place seen) and has not been said since."""
        return self._passed[places_ago - 1]
