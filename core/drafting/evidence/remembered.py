"""Remembered: what followed the last n tokens in any earlier chat, from the family's table.

The table has no tags, so a guess of it may be somebody else's: that it was right all the way here
is what makes it believable. Its *run* is how many places in a row it was right before this one;
at places after guesses that are assumed to have come, those count.

Teaches the table too: an answer that `auto` drafts is remembered like any other. Knows no
probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.drafting.tables.ngram_table import NgramTable
from core.drafting.tables.table_writer import TableWriter


class Trail(NamedTuple):
    """A place in the table: the hash of the n tokens before it, and the run there. None: too few tokens."""

    hash: int | None
    run: int


class Remembered:
    """Of one request; `table` is shared by all. Its figures count what came where it had a guess."""

    def __init__(self, table: NgramTable) -> None:
        self.table = table
        self._scribe = TableWriter(table)
        self._run = 0

    def read(self, prompt: Sequence[int]) -> None:
        """Take in a prompt. A run begins with the answer: what was read is nobody's guess."""
        self._scribe.read(prompt)

    def hear(self, token: int) -> None:
        """The answer goes on with `token`."""
        here = self.trail()
        expected = None if here.hash is None else self.table.peek(here.hash)
        if expected is not None:
            self.table.record(1, int(expected == token))
        self._run = self._run + 1 if expected == token else 0
        self._scribe.hear((token,))

    def trail(self) -> Trail:
        """The end of the text."""
        return Trail(self._scribe.hash if self._scribe.full else None, self._run)

    def after(self, trail: Trail, window: Sequence[int], token: int) -> Trail:
        """The place behind `token`, if that comes; the last n of `window` are the tokens before it."""
        table = self.table
        if trail.hash is None or len(window) < table.n:
            return Trail(None, 0)
        run = trail.run + 1 if table.peek(trail.hash) == token else 0
        return Trail(table.roll(trail.hash, window[-table.n], token), run)

    def guess(self, trail: Trail) -> int | None:
        """The token that followed there, if the table holds one. Counted in the table's figures."""
        return None if trail.hash is None else self.table.get(trail.hash)
