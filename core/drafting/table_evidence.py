"""Learned: what a family's models tend to say after the last few tokens, as probabilities.

A frozen table knows, for contexts of none to a few tokens, what followed them in a model's own
answers to other prompts. Here the contexts' rows become one probability a token: from the
shortest context to the longest,

    p = (N · share + κ · p of the shorter context) / (N + κ)

so a long context is believed as far as it has been seen. A token in no row keeps what is left
over, `unknown`. Invariant: probabilities are in (0, 1). Knows no chat, no draft and no costs.

Source: interpolation of contexts as in Witten and Bell (1991), with one κ for all.

Remembered: what followed the last n tokens in any earlier chat, from the family's table.

The table has no tags, so a guess of it may be somebody else's: that it was right all the way here
is what makes it believable. Its *run* is how many places in a row it was right before this one;
at places after guesses that are assumed to have come, those count.

Teaches the table too: an answer that `auto` drafts is remembered like any other. Knows no
probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

from core.drafting.gram_table import GramSeen
from core.drafting.ngram_table import NgramTable, TableWriter

# κ: places a context must have been seen at for its row to weigh as much as the shorter ones'.
_BELIEF = 0.5
# A token that no row holds, not even the one of no context.
_LEAST = 1e-4
# A table that has promised to be right so many times, and was in less than this share, is wrong here:
# another language, another model, or a hostile file. Of 39 recorded answers two are so.
_PROMISES = 3.0
_KEPT = 0.05
_DECAY = 0.98
# The same few places are asked for again and again while a draft grows.
_REMEMBERED = 256


_second = itemgetter(1)


class Outlook(NamedTuple):
    """`likely` maps the tokens of all rows to their probabilities; any other token has `unknown`."""

    likely: dict[int, float]
    unknown: float


class Continuations(Protocol):
    """What was learned beforehand: a gram table, or several asked as one."""

    def look(self, context: Sequence[int]) -> Sequence[GramSeen]:
        """What is known about the place after `context`, longest contexts first, no context last."""


class Learned:
    """`table` is shared and frozen; this is of one request."""

    def __init__(self, table: Continuations) -> None:
        self._table = table
        self._known: dict[tuple[int, ...], Outlook] = {}
        # What its likeliest guesses promised, and how many came; decayed counts of the answer's tokens.
        self._promised = self._came = 0.0

    @property
    def is_wrong(self) -> bool:
        """Whether what comes in this answer is not what the table says at all."""
        return self._promised >= _PROMISES and self._came < _KEPT * self._promised

    def hear(self, tail: tuple[int, ...], token: int) -> None:
        """After `tail` the answer went on with `token`."""
        best, likely = max(self.after(tail).likely.items(), key=_second, default=(-1, 0.0))
        self._promised = self._promised * _DECAY + likely
        self._came = self._came * _DECAY + (best == token)

    def after(self, tail: tuple[int, ...]) -> Outlook:
        """What comes after the newest tokens `tail`."""
        outlook = self._known.get(tail)
        if outlook is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            outlook = self._known[tail] = _interpolated(self._table.look(tail))
        return outlook


def _interpolated(rows: Sequence[GramSeen]) -> Outlook:
    likely: dict[int, float] = {}
    unknown = _LEAST
    for row in reversed(rows):
        backed = _BELIEF / (row.total + _BELIEF)
        trusted = 1.0 - backed
        longer = {token: value * backed for token, value in likely.items()}
        for token, share in row.followers:
            longer[token] = longer.get(token, unknown * backed) + trusted * share
        likely, unknown = longer, max(_LEAST / 10, unknown * backed)
    return Outlook(likely, unknown)


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
