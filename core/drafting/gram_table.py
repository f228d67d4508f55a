"""GramTable: what a model tends to say after the last few tokens, counted beforehand; never changes.

A *context* is the last n tokens, n from 0 (any position) up. For each context in the table it
holds how often it occurred and the probabilities of a few followers, counted from a model's answers to other
prompts (sums of the model's probabilities) or from text.

Contexts are identified by 32 bits of a hash: with 100,000 contexts, one look-up in 40,000 hits another
context, which costs one wrong guess. The keys of an order are sorted in one flat array, so a table takes
little more memory than its file and needs no conversion.

Invariants: the shares of a context are in descending order, above 0 and at most 1, and sum to at most about
1. Ids belong to one tokenizer family, which the loader of a file checks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from math import log2
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from core.drafting.ngram_mod import NgramTable, TableWriter

# 2^64 divided by the golden ratio, odd: Knuth's multiplicative hash.
MULTIPLIER = 0x9E3779B97F4A7C15
SHIFT = 29
_MASK = (1 << 64) - 1
# A total t is stored as round(STEPS · log2 t): steps of 4%, up to 2^15.9.
_STEPS = 16
FULL_SHARE = 255


class GramRow(NamedTuple):
    """A context of `order` tokens that occurred `total` times; `followers` are (token, share)."""

    order: int
    total: float
    followers: tuple[tuple[int, float], ...]


class Level(Struct, frozen=True):
    """All contexts of one order, by ascending key.

    `keys` and `totals` have one item per context, `starts` one more: the followers of context i are
    `ids[starts[i]:starts[i + 1]]`, and `shares` (255 is 1.0) is parallel to `ids`. `totals` are codes, see
    `total_code`.
    """

    keys: array[int]
    totals: bytes
    starts: array[int]
    ids: array[int]
    shares: bytes


class GramTable:
    """`levels[n]` holds the contexts of n tokens."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = tuple(levels)

    def __len__(self) -> int:
        """Contexts of all orders."""
        return sum(len(level.keys) for level in self.levels)

    def lookup(self, context: Sequence[int]) -> list[GramRow]:
        """Rows of the contexts that end `context`, longest context first. About 5 µs."""
        found: list[GramRow] = []
        state, known = 0, len(context)
        for order, level in enumerate(self.levels):
            if order:
                if order > known:
                    break
                state = extend_hash(state, context[-order])
            keys, key = level.keys, state >> 32
            at = bisect_left(keys, key)
            if at < len(keys) and keys[at] == key:
                start, end = level.starts[at], level.starts[at + 1]
                followers = zip(level.ids[start:end], map(_SHARES.__getitem__, level.shares[start:end]))
                found.append(GramRow(order, _TOTALS[level.totals[at]], tuple(followers)))
        found.reverse()
        return found


def extend_hash(state: int, token: int) -> int:
    """The hash state of a context with one older `token` prepended; 0 is the state of the empty context.

    The key is the upper half. `tests.tuning.gram_count` computes the same on arrays.
    """
    state = ((state ^ (token + 1)) * MULTIPLIER) & _MASK
    return state ^ (state >> SHIFT)


def total_code(total: float) -> int:
    """The code, 0 to 255, of a total of at least 1."""
    return min(round(_STEPS * log2(max(total, 1.0))), 255)


_SHARES = tuple(share / FULL_SHARE for share in range(FULL_SHARE + 1))
_TOTALS = tuple(2.0 ** (code / _STEPS) for code in range(256))


# ---- evidence from tables


# κ: occurrences at which a context's row weighs as much as the shorter contexts'.
_KAPPA = 0.5
# Probability of a token that is in no row, not even in that of the empty context.
_MIN_PROBABILITY = 1e-4
# A table whose expected hits reach the first and whose hits are below this share of them is unreliable here:
# another language, another model, or a malicious file. In 2 of 39 recorded answers it is.
_MIN_EXPECTED = 3.0
_MIN_HIT_RATIO = 0.05
_DECAY = 0.98
# Cached contexts: a growing draft looks up the same few again and again.
_CACHED_CONTEXTS = 256


_second = itemgetter(1)


class TokenProbabilities(NamedTuple):
    """`probabilities` maps the tokens of all rows to their probabilities; any other token has `other`."""

    probabilities: dict[int, float]
    other: float


class Learned:
    """A prebuilt table's rows as one probability per token, for one request.

    From the shortest context to the longest, p = (N · share + κ · p of the shorter context) / (N + κ), so a
    context counts in proportion to its occurrences N. Tokens in no row share the probability `other`.
    Invariant: probabilities are in (0, 1). Source: interpolation of contexts as in Witten and Bell (1991),
    with one κ for all. `table` is shared and never changes.
    """

    def __init__(self, table: GramTable) -> None:
        self._table = table
        self._cache: dict[tuple[int, ...], TokenProbabilities] = {}
        # Expected hits and hits of the table's best guess, decayed per token of the answer.
        self._expected = self._hits = 0.0

    @property
    def is_unreliable(self) -> bool:
        """Whether the table's best guesses in this answer are nearly all wrong."""
        return self._expected >= _MIN_EXPECTED and self._hits < _MIN_HIT_RATIO * self._expected

    def observe(self, tail: tuple[int, ...], token: int) -> None:
        """Records that `token` followed `tail`."""
        best, probability = max(self.after(tail).probabilities.items(), key=_second, default=(-1, 0.0))
        self._expected = self._expected * _DECAY + probability
        self._hits = self._hits * _DECAY + (best == token)

    def after(self, tail: tuple[int, ...]) -> TokenProbabilities:
        """Probabilities of the token after `tail`."""
        outlook = self._cache.get(tail)
        if outlook is None:
            if len(self._cache) >= _CACHED_CONTEXTS:
                self._cache.clear()
            outlook = self._cache[tail] = _interpolate(self._table.lookup(tail))
        return outlook


def _interpolate(rows: Sequence[GramRow]) -> TokenProbabilities:
    probabilities: dict[int, float] = {}
    other = _MIN_PROBABILITY
    for row in reversed(rows):
        backoff = _KAPPA / (row.total + _KAPPA)
        weight = 1.0 - backoff
        mixed = {token: value * backoff for token, value in probabilities.items()}
        for token, share in row.followers:
            mixed[token] = mixed.get(token, other * backoff) + weight * share
        probabilities, other = mixed, max(_MIN_PROBABILITY / 10, other * backoff)
    return TokenProbabilities(probabilities, other)


class TableCursor(NamedTuple):
    """A position in the n-gram table: the hash of the n tokens before it, and the run there. None: too few
    tokens.
    """

    hash: int | None
    run: int


class Remembered:
    """What followed the last n tokens in any earlier chat, from the family's shared n-gram table, for one
    request.

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
