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
from typing import NamedTuple

from msgspec import Struct

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
