"""Planner: how much of a draft to verify. Pure; no mlx, no clock.

A draft's confidences give each node the probability that it will be reached and accepted: the
product along its path. Verifying a set of nodes emits 1 + Σ probability tokens on average and
takes T(1 + nodes). Time has a price: what could be emitted in it otherwise, which is this
answer's own running rate λ of tokens per unit of time, the time of a plain step being one. The
planner takes the sub-tree that maximises

    1 + Σ probability − λ · T(width)

and nothing where that is no more than a plain step's 1 − λ · T(1). This is the rule that
maximises tokens per time over the whole answer if λ is the rate it leads to (Dinkelbach, "On
nonlinear fractional programming", 1967), so the running rate replaces solving for it.

A node is never likelier than its parent, so for each size the best sub-tree is that many of the
likeliest nodes, and one pass over them in that order is the whole search. T need not be convex:
Metal's and a CPU's are not, and every size is looked at.

Invariant: the result is a draft of the same tokens on the same paths, in draft order, within the
budget. A draft without confidences comes back whole. Knows neither drafters nor models.
"""

from __future__ import annotations

from collections.abc import Callable

from core.drafting.draft import EMPTY, Draft

# The rate is an average over about 1 / (1 − decay) ≈ 33 steps: one turn of phrase in an answer.
# 20 to 100 steps gave the same within 0.5%. It starts as if `_PRIOR_STEPS` had gone that well.
_DECAY = 0.97
_PRIOR_STEPS = 8.0
_PRIOR_RATE = 1.5


class Planner:
    """Shapes the drafts of one answer.

    `cost(width)` is T, in plain steps: `cost(1)` is about one. While `needs_plain()`, nothing is drafted.
    """

    def __init__(self, cost: Callable[[int], float], needs_plain: Callable[[], bool] = lambda: False) -> None:
        self._cost = cost
        self._needs_plain = needs_plain
        self._emitted: float = _PRIOR_RATE * _PRIOR_STEPS
        self._spent: float = _PRIOR_STEPS

    @property
    def rate(self) -> float:
        """λ: tokens per unit of time lately; never below one, which plain decoding gives."""
        return max(1.0, self._emitted / self._spent)

    def shape(self, draft: Draft, budget: int, pending: int = 1) -> Draft:
        """The part of `draft` that pays, at most `budget` nodes, in a block with `pending` known tokens."""
        if len(draft.confidence) != len(draft):
            return draft.prefix(max(0, budget))
        if budget < 1 or not len(draft) or (pending == 1 and self._needs_plain()):
            return EMPTY
        reached = _reached(draft)
        # Sorting is stable and a parent comes first, so equals never part a node from its parent.
        order = sorted(range(len(reached)), key=reached.__getitem__, reverse=True)
        price, cost = self.rate, self._cost
        total, size = 0.0, 0
        best = -price * cost(pending)
        for count, node in enumerate(order[:budget], 1):
            total += reached[node]
            worth = total - price * cost(pending + count)
            if worth > best:
                best, size = worth, count
        return _part(draft, order[:size])

    def record(self, width: int, emitted: int) -> None:
        """A step was done: a block of `width` tokens, pending ones included, that emitted so many."""
        self._emitted = self._emitted * _DECAY + emitted
        self._spent = self._spent * _DECAY + self._cost(width)


def _reached(draft: Draft) -> list[float]:
    """For each node the probability that its whole path is accepted."""
    reached: list[float] = []
    for parent, confidence in zip(draft.parents, draft.confidence):
        likely = min(1.0, max(0.0, confidence))
        reached.append(likely * reached[parent] if parent >= 0 else likely)
    return reached


def _part(draft: Draft, nodes: list[int]) -> Draft:
    """Only `nodes`, which hold the parent of each of them."""
    if len(nodes) == len(draft):
        return draft
    kept = sorted(nodes)
    place = {-1: -1} | {node: at for at, node in enumerate(kept)}
    return Draft(
        tuple(draft.tokens[node] for node in kept),
        tuple(place[draft.parents[node]] for node in kept),
        tuple(draft.confidence[node] for node in kept),
    )
