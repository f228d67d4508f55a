"""GramTable: what a model tends to say after the last few tokens, learned beforehand, never changed.

A *context* is the last n tokens, n from 0 (any place at all) to `highest_order`. For each context
that earned its place it knows how often it was met and with which probability each of a few
tokens followed. It was counted from answers of a model to other prompts (the model's own
probabilities added up) or from text; the table does not care which.

Contexts are found by 32 bits of a hash: with 100,000 of them one look-up in 40,000 meets a
stranger, which costs a wrong guess and nothing else. The keys of an order lie sorted in one flat
array, so a table takes little more memory than its file and is ready as soon as it is read.

Invariants: shares of a context come largest first, are above 0 and at most 1, and sum to at most
about 1. Ids belong to one tokenizer family; whoever loads a table checks that. Knows no file format.

Joined: the table of a family's answers and the table of texts, asked as one.

Rows come longest context first; of one length the answers' row outweighs the texts'. Neither need
be there. Knows no file and no request.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from math import log2
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

# 2^64 divided by the golden ratio, odd: Knuth's multiplicative hash.
MULTIPLIER = 0x9E3779B97F4A7C15
SHIFT = 29
_MASK = (1 << 64) - 1
# A total t is kept as round(STEPS · log2 t): 4% coarse, up to 2^15.9.
_STEPS = 16
FULL_SHARE = 255


class GramSeen(NamedTuple):
    """A context of `order` tokens that was met `total` times; `followers` are (token, share)."""

    order: int
    total: float
    followers: tuple[tuple[int, float], ...]


class Level(Struct, frozen=True):
    """All contexts of one order, by ascending key.

    `keys` and `totals` have an item for each context; `starts` one more: the followers of context
    i are `ids[starts[i]:starts[i + 1]]`, with their `shares` (255 is all) beside them. `totals`
    are codes, see `total_code`.
    """

    keys: array[int]
    totals: bytes
    starts: array[int]
    ids: array[int]
    shares: bytes


class GramTable:
    """`levels[n]` holds the contexts of n tokens. Not copied: hand them over."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._levels = tuple(levels)

    def __len__(self) -> int:
        """Contexts held, of all orders."""
        return sum(len(level.keys) for level in self._levels)

    @property
    def highest_order(self) -> int:
        """Tokens of the longest contexts; the caller need not hand over more."""
        return max(len(self._levels) - 1, 0)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The whole content, to write it to disk."""
        return self._levels

    def look(self, context: Sequence[int]) -> list[GramSeen]:
        """What is known about the place after `context`, longest contexts first. About 5 µs."""
        found: list[GramSeen] = []
        state, known = 0, len(context)
        for order, level in enumerate(self._levels):
            if order:
                if order > known:
                    break
                state = extended(state, context[-order])
            keys, key = level.keys, state >> 32
            at = bisect_left(keys, key)
            if at < len(keys) and keys[at] == key:
                start, end = level.starts[at], level.starts[at + 1]
                followers = zip(level.ids[start:end], map(_SHARES.__getitem__, level.shares[start:end]))
                found.append(GramSeen(order, _TOTALS[level.totals[at]], tuple(followers)))
        found.reverse()
        return found


def extended(state: int, token: int) -> int:
    """The hash state of a context with one older `token` before it; 0 is that of the empty one.

    The key is its upper half. `core.tables.gram_count` does the same on arrays.
    """
    state = ((state ^ (token + 1)) * MULTIPLIER) & _MASK
    return state ^ (state >> SHIFT)


def total_code(total: float) -> int:
    """The code, 0 to 255, of a total of at least 1."""
    return min(round(_STEPS * log2(max(total, 1.0))), 255)


_SHARES = tuple(share / FULL_SHARE for share in range(FULL_SHARE + 1))
_TOTALS = tuple(2.0 ** (code / _STEPS) for code in range(256))


# What a place in a text counts beside one in an answer. A text says what people wrote, not what the
# model says, and there is far more of it. Between 0.01 and 1 it hardly matters (notes/rehearsal.md).
_TEXT_WORTH = 0.01

_order = attrgetter("order")


class Joined:
    """`answers` and `texts` are frozen and shared."""

    def __init__(self, answers: GramTable | None, texts: GramTable | None) -> None:
        self._answers = answers
        self._texts = texts

    def look(self, context: Sequence[int]) -> list[GramSeen]:
        """What is known about the place after `context`, longest contexts first."""
        rows = self._answers.look(context) if self._answers is not None else []
        if self._texts is None:
            return rows
        # The texts' row of no context says which words are frequent in general. The answers' says
        # that of answers, and is there whenever they are.
        least = 1 if rows else 0
        rows += [
            GramSeen(row.order, row.total * _TEXT_WORTH, row.followers)
            for row in self._texts.look(context)
            if row.order >= least
        ]
        rows.sort(key=_order, reverse=True)  # stable: the answers' row stays first
        return rows
