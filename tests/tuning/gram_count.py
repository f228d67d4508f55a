"""GramCounter: positions in, a GramTable out. Counting, pruning and quantising, on arrays.

A *position* is where a token was chosen: the tokens before it, and the most probable ids with their
probabilities (a model's answer) or the one token that followed (a text). A context's total is the number of
its positions; a follower's share is its summed probability divided by the total.

Pruned as in Stolcke (“Entropy-based pruning of backoff language models”, 1998): the worth of a context is
total × relative entropy to the longest kept shorter context, and the contexts with the greatest worth per
byte are kept. Two deviations: a total is discounted first (a context seen once is seen again less often than
its count says), and the shorter distribution is used without back-off weights, because the drafter mixes
orders in its own way.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.gram_table import FULL_SHARE, MULTIPLIER, SHIFT, GramTable, Level, total_code

_Words = NDArray[np.uint64]
_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]

_MULTIPLIER = np.uint64(MULTIPLIER)
_SHIFT = np.uint64(SHIFT)
# Contexts that would start before the first token are not counted.
_NO_STATE = np.uint64(0)
# Assumed share of a follower that the shorter context does not list.
_FLOOR = 1e-4
# Bounds of the search for the minimum worth, in nats per byte.
_LEAST_WORTH, _MOST_WORTH = 1e-6, 1e6
# File size of a context and of each follower, in bytes.
_CONTEXT_BYTES = 6
_FOLLOWER_BYTES = 3


class Pruning(Struct, frozen=True):
    """Limits of a table.

    `most_bytes`: approximate file size. `followers`: maximum per context. `least_share`: followers with
    smaller shares are dropped. `discount`: subtracted from totals when weighing contexts.
    """

    most_bytes: int = 1_500_000
    highest_order: int = 4
    followers: int = 6
    least_share: float = 0.02
    discount: float = 0.5


class GramCounter:
    """`add` answers or texts, then `table`. Takes about 100 bytes per position."""

    def __init__(self, highest_order: int = 4) -> None:
        self.highest_order = highest_order
        self.positions = 0
        self._states: list[_Words] = []
        self._known: list[NDArray[np.int8]] = []
        self._tokens: list[_Ids] = []
        self._shares: list[_Floats] = []
        self._owners: list[_Ids] = []

    def add(
        self,
        prompt: Sequence[int],
        out: Sequence[int],
        tops: Sequence[Sequence[int]] = (),
        shares: Sequence[Sequence[float]] = (),
    ) -> None:
        """Counts every position of `out`. Without `shares`, the token that followed has probability 1."""
        if not out:
            return
        text = np.array([*prompt[max(0, len(prompt) - self.highest_order) :], *out], dtype=np.uint64)
        start = len(text) - len(out)
        states, known = _states(text, start, self.highest_order)
        if shares and tops:
            widths = np.array([len(row) for row in shares])
            tokens = np.array([token for row in tops for token in row], dtype=np.int64)
            weights = np.array([share for row in shares for share in row], dtype=np.float64)
        else:
            widths = np.ones(len(out), dtype=np.int64)
            tokens = np.array(out, dtype=np.int64)
            weights = np.ones(len(out))
        self._states.append(states)
        self._known.append(known)
        self._tokens.append(tokens)
        self._shares.append(weights)
        self._owners.append(np.repeat(np.arange(len(out)) + self.positions, widths))
        self.positions += len(out)

    def table(self, pruning: Pruning) -> GramTable:
        """The table of everything added. More can be added afterwards."""
        pieces = self.pieces(pruning)
        while True:
            try:
                next(pieces)
            except StopIteration as done:
                finished: GramTable = done.value
                return finished

    def pieces(self, pruning: Pruning) -> Generator[None, None, GramTable]:
        """Like `table`, in steps of under a second for 100,000 positions; the table is the generator's return
        value.
        """
        if not self.positions:
            return GramTable(())
        states = np.concatenate(self._states)
        known = np.concatenate(self._known)
        tokens, weights = np.concatenate(self._tokens), np.concatenate(self._shares)
        owners = np.concatenate(self._owners)
        counted: list[_Counted] = []
        for n in range(min(pruning.highest_order, self.highest_order) + 1):
            counted.append(_count(states[:, n], known >= n, tokens, weights, owners, pruning))
            yield
        parents = _parents_of(states, known, counted)
        yield
        return (yield from _pruned(counted, parents, pruning))


class _Counted(Struct):
    """One order: contexts by ascending key; followers of context i are rows starts[i]:starts[i + 1]."""

    keys: _Words
    totals: _Floats
    starts: _Ids
    ids: _Ids
    shares: _Floats


def _states(text: _Words, start: int, highest: int) -> tuple[_Words, NDArray[np.int8]]:
    """Hash states [positions, highest + 1] of the contexts before text[start:], and their available
    orders.
    """
    ends = np.arange(start, len(text))
    states = np.zeros((len(ends), highest + 1), dtype=np.uint64)
    for order in range(1, highest + 1):
        at = ends - order
        mixed = (states[:, order - 1] ^ (text[np.maximum(at, 0)] + np.uint64(1))) * _MULTIPLIER
        states[:, order] = np.where(at >= 0, mixed ^ (mixed >> _SHIFT), _NO_STATE)
    return states, np.minimum(ends, highest).astype(np.int8)


def _count(
    states: _Words,
    known: NDArray[np.bool_],
    tokens: _Ids,
    weights: _Floats,
    owners: _Ids,
    pruning: Pruning,
) -> _Counted:
    keys, which = np.unique(states[known] >> np.uint64(32), return_inverse=True)
    totals = np.bincount(which, minlength=len(keys)).astype(np.float64)
    context = np.full(len(states), -1, dtype=np.int64)
    context[known] = which
    rows = context[owners]
    rows_of_order = rows >= 0
    pairs, row = np.unique(rows[rows_of_order] << 32 | tokens[rows_of_order], return_inverse=True)
    summed = np.bincount(row, weights=weights[rows_of_order], minlength=len(pairs))
    owner, ids = pairs >> 32, pairs & 0xFFFFFFFF
    shares = summed / totals[owner]
    # Largest share first inside each context, then the best few.
    order = np.lexsort((-shares, owner))
    owner, ids, shares = owner[order], ids[order], shares[order]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner, side="left")
    good = (rank < pruning.followers) & (shares >= pruning.least_share)
    owner, ids, shares = owner[good], ids[good], shares[good]
    return _Counted(keys, totals, np.searchsorted(owner, np.arange(len(keys) + 1)), ids, shares)


def _parents_of(
    states: _Words, known: NDArray[np.int8], counted: Sequence[_Counted]
) -> list[NDArray[np.int64]]:
    """For each order and context, the index of the same context without its oldest token."""
    parents: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    for order in range(1, len(counted)):
        rows_of_order = states[known >= order]
        keys = rows_of_order[:, order] >> np.uint64(32)
        shorter = np.searchsorted(counted[order - 1].keys, rows_of_order[:, order - 1] >> np.uint64(32))
        parent = np.zeros(len(counted[order].keys), dtype=np.int64)
        parent[np.searchsorted(counted[order].keys, keys)] = shorter
        parents.append(parent)
    return parents


def _pruned(
    counted: Sequence[_Counted], parents: Sequence[NDArray[np.int64]], pruning: Pruning
) -> Generator[None, None, GramTable]:
    """The contexts with the greatest worth per byte that fit; yields after each trial."""
    lookup = _Lookup(counted)
    chosen = _choose(counted, parents, lookup, pruning, 0.0)
    low, high = _LEAST_WORTH, _MOST_WORTH
    fits = _bytes(counted, chosen) <= pruning.most_bytes
    while not fits and high / low > 1.01:
        yield
        middle = (low * high) ** 0.5
        trial = _choose(counted, parents, lookup, pruning, middle)
        if _bytes(counted, trial) > pruning.most_bytes:
            low = middle
        else:
            high, chosen = middle, trial
    return GramTable([_level(order, keep) for order, keep in zip(counted, chosen)])


def _choose(
    counted: Sequence[_Counted],
    parents: Sequence[NDArray[np.int64]],
    lookup: _Lookup,
    pruning: Pruning,
    least_worth: float,
) -> list[NDArray[np.bool_]]:
    """Which contexts have a worth of at least `least_worth` nats per byte, in ascending order.

    `base[i]` is the kept context that replaces context i if that is dropped.
    """
    kept = [np.ones(len(counted[0].keys), dtype=np.bool_)]
    # The longest kept context that is context i or a suffix of it, as an index over all orders.
    stands_in = [np.zeros(len(counted[0].keys), dtype=np.int64)]
    for order in range(1, len(counted)):
        level = counted[order]
        base = stands_in[order - 1][parents[order]]
        sizes = np.diff(level.starts)
        owner = np.repeat(np.arange(len(level.keys)), sizes)
        base_shares = np.maximum(lookup.share(base[owner], level.ids), _FLOOR)
        information = np.bincount(
            owner, weights=level.shares * np.log(level.shares / base_shares), minlength=len(level.keys)
        )
        worth = np.maximum(level.totals - pruning.discount, 0.0) * information
        keep = (sizes > 0) & (worth > least_worth * (_CONTEXT_BYTES + _FOLLOWER_BYTES * sizes))
        kept.append(keep)
        stands_in.append(np.where(keep, np.arange(len(level.keys)) + lookup.first[order], base))
    return kept


class _Lookup:
    """Shares of followers by (context of any order, token)."""

    def __init__(self, counted: Sequence[_Counted]) -> None:
        sizes = [len(level.keys) for level in counted]
        self.first = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        owners = [
            np.repeat(np.arange(len(level.keys)) + first, np.diff(level.starts))
            for level, first in zip(counted, self.first)
        ]
        keys = np.concatenate(owners) << 32 | np.concatenate([level.ids for level in counted])
        order = np.argsort(keys)
        self._keys = keys[order]
        self._shares = np.concatenate([level.shares for level in counted])[order]

    def share(self, contexts: _Ids, tokens: _Ids) -> _Floats:
        """The shares; 0 if a token is not listed."""
        wanted = contexts << 32 | tokens
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, self._shares[at], 0.0)


def _bytes(counted: Sequence[_Counted], chosen: Sequence[NDArray[np.bool_]]) -> int:
    total = 0
    for level, keep in zip(counted, chosen):
        total += int(keep.sum()) * _CONTEXT_BYTES + int(np.diff(level.starts)[keep].sum()) * _FOLLOWER_BYTES
    return total


def _level(counted: _Counted, keep: NDArray[np.bool_]) -> Level:
    sizes = np.diff(counted.starts)
    rows = np.repeat(keep, sizes)
    shares = np.clip(np.rint(counted.shares[rows] * FULL_SHARE), 1, FULL_SHARE)
    return Level(
        array("I", counted.keys[keep].astype(np.uint32).tobytes()),
        bytes(total_code(float(total)) for total in counted.totals[keep]),
        array("I", np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.uint32).tobytes()),
        array("I", counted.ids[rows].astype(np.uint32).tobytes()),
        shares.astype(np.uint8).tobytes(),
    )
