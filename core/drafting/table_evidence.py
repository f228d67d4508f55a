"""Evidence from a family's tables: `Learned` from contexts of a few tokens, `Remembered` from long ones."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from core.drafting.gram_counts import GramCounts
from core.drafting.gram_table import GramRow, GramTable
from core.drafting.ngram_mod import NgramTable, TableWriter
from core.drafting.odds import logit

# κ: occurrences at which a context's row weighs as much as the shorter contexts'.
_KAPPA = 0.5
# Probability of a token that is in no row, not even in that of the empty context: without any row, and the
# least that rows leave of it.
_UNSEEN, _LEAST_UNSEEN = 1e-4, 1e-5
# A table whose expected hits reach the first and whose hits are below this share of them is unreliable here:
# another language, another model, or a malicious file. In 2 of 39 recorded answers it is.
_MIN_EXPECTED = 3.0
_MIN_HIT_RATIO = 0.05
_DECAY = 0.98
# Most probable tokens that are kept ready with a context.
LIKELIEST = 4
# Cached contexts: a growing draft looks up the same few again and again.
_CACHED_CONTEXTS = 256


_second = itemgetter(1)


class TokenProbabilities(NamedTuple):
    """`probabilities` maps the tokens of all rows to their probabilities; any other token has `other`.

    `trust`: how far the rows, rather than nothing, state them, 0 to 1. `likeliest`: the most probable tokens
    with their log-odds, best first.
    """

    probabilities: dict[int, float]
    other: float
    trust: float = 1.0
    likeliest: tuple[tuple[int, float], ...] = ()


class Learned:
    """The rows of a prebuilt table and of own counts as one probability per token, for one request.

    From the shortest context to the longest, a prebuilt row before an own one: p = w · share + (1 − w) · p of
    the rows before. The weight w of a prebuilt row grows with its occurrences N: N / (N + κ). That of own
    counts is how often rows like it come true (`GramCounts.trust`). Tokens in no row share the probability
    `other`. Invariant: probabilities are in (0, 1). Source: interpolation of contexts as in Witten and Bell
    (1991), with one κ for all. Neither table is changed here.
    """

    def __init__(self, table: GramTable | None, own: GramCounts | None = None) -> None:
        self._table = table
        self._own = own
        self._cache: dict[tuple[int, ...], TokenProbabilities] = {}
        # Expected hits and hits of the best guess, decayed per token of the answer.
        self._expected = self._hits = 0.0

    @property
    def is_unreliable(self) -> bool:
        """Whether the best guesses in this answer are nearly all wrong."""
        return self._expected >= _MIN_EXPECTED and self._hits < _MIN_HIT_RATIO * self._expected

    def observe(self, tail: tuple[int, ...], token: int) -> None:
        """Records that `token` followed `tail`."""
        outlook = self.after(tail)
        best = outlook.likeliest[0][0] if outlook.likeliest else -1
        self._expected = self._expected * _DECAY + outlook.probabilities.get(best, 0.0)
        self._hits = self._hits * _DECAY + (best == token)

    def after(self, tail: tuple[int, ...]) -> TokenProbabilities:
        """Probabilities of the token after `tail`."""
        outlook = self._cache.get(tail)
        if outlook is None:
            if len(self._cache) >= _CACHED_CONTEXTS:
                self._cache.clear()
            outlook = self._cache[tail] = _interpolate(self._rows(tail))
        return outlook

    def _rows(self, tail: tuple[int, ...]) -> list[tuple[float, GramRow]]:
        """The weight and the row of each context that a table holds, shortest first."""
        rows: list[tuple[float, GramRow]] = []
        if self._table is not None:
            rows += ((row.total / (row.total + _KAPPA), row) for row in self._table.lookup(tail))
        if self._own is not None:
            rows += ((self._own.trust(row), row) for row in self._own.lookup(tail))
        return sorted(rows, key=lambda weighed: weighed[1].order)


def _interpolate(rows: Sequence[tuple[float, GramRow]]) -> TokenProbabilities:
    probabilities: dict[int, float] = {}
    other, unstated = _UNSEEN, 1.0
    for weight, row in rows:
        backoff = 1.0 - weight
        mixed = {token: value * backoff for token, value in probabilities.items()}
        for token, share in row.followers:
            mixed[token] = mixed.get(token, other * backoff) + weight * share
        probabilities, other = mixed, max(_LEAST_UNSEEN, other * backoff)
        unstated *= backoff
    best = nlargest(LIKELIEST, probabilities.items(), key=_second)
    likeliest = tuple((token, logit(probability)) for token, probability in best)
    return TokenProbabilities(probabilities, other, 1.0 - unstated, likeliest)


class TableCursor(NamedTuple):
    """A position in the n-gram table: the hash of the n tokens before it, and the run there. None: too few
    tokens.
    """

    hash: int | None
    run: int


class Remembered:
    """Tokens that followed the last n tokens in any earlier chat, from the family's shared n-gram table, for
    one request.

    The table has no tags, so an entry may belong to another n-gram. An entry is credible if the table was
    right at the positions before it: the *run* is the number of consecutive correct entries, including those
    at assumed positions. Also writes the table. Its counters record how often an entry was right.
    """

    def __init__(self, table: NgramTable) -> None:
        self.table = table
        self._writer = TableWriter(table)
        self._run = 0

    def read(self, prompt: Sequence[int]) -> None:
        """Writes a prompt. Runs start with the answer, because prompt tokens test no guess."""
        self._writer.read(prompt)

    def observe(self, token: int) -> None:
        """Records the answer's next `token` and writes it."""
        here = self.table_cursor()
        expected = None if here.hash is None else self.table.peek(here.hash)
        if expected is not None:
            self.table.record(1, int(expected == token))
        self._run = self._run + 1 if expected == token else 0
        self._writer.observe((token,))

    def table_cursor(self) -> TableCursor:
        """The end of the text."""
        return TableCursor(self._writer.hash if self._writer.full else None, self._run)

    def after(self, table_cursor: TableCursor, window: Sequence[int], token: int) -> TableCursor:
        """The position after `token`, assuming that it is right; the last n of `window` are the tokens before
        it.
        """
        table = self.table
        if table_cursor.hash is None or len(window) < table.n:
            return TableCursor(None, 0)
        run = table_cursor.run + 1 if table.peek(table_cursor.hash) == token else 0
        return TableCursor(table.roll(table_cursor.hash, window[-table.n], token), run)

    def guess(self, table_cursor: TableCursor) -> int | None:
        """The token in the table at that position, if any. Counted in the table's counters."""
        return None if table_cursor.hash is None else self.table.get(table_cursor.hash)
