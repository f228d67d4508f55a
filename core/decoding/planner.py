"""Planner: how much of a draft to verify. Pure; does not import MLX.

A draft's confidences give each node the probability of being accepted: the product along its path. Verifying
a set of nodes emits 1 + Σ probability tokens on average and takes T(1 + nodes). The price of time is the
answer's own running rate λ of tokens per unit of time, where a plain step takes one unit. The planner takes
the subtree that maximises

    1 + Σ probability − λ · T(width)

and nothing if that is not more than a plain step's 1 − λ · T(1). This rule maximises tokens per time over the
whole answer if λ is the resulting rate (Dinkelbach, “On nonlinear fractional programming”, 1967), so the
running rate replaces solving for it.

A node is never more probable than its parent, so for each size the best subtree consists of the most probable
nodes, and one pass over them in that order is the whole search. T need not be convex (that of Metal and of
CPUs is not), so every size is considered.

Invariant: the result has the same tokens on the same paths, in draft order, within the budget. A draft
without confidences is returned whole.
"""

from __future__ import annotations

from collections.abc import Callable

from core.drafting.draft import EMPTY, Draft

# The rate averages about 1 / (1 − decay) ≈ 33 steps. 20 to 100 steps gave the same within 0.5%. It starts as
# if `_PRIOR_STEPS` steps had had the prior rate.
_DECAY = 0.97
_PRIOR_STEPS = 8.0
_PRIOR_RATE = 1.5


class Planner:
    """Selects from the drafts of one answer.

    `cost(width)` is T, in plain steps; `cost(1)` is about 1. While `needs_plain()`, nothing is drafted.
    """

    def __init__(self, cost: Callable[[int], float], needs_plain: Callable[[], bool] = lambda: False) -> None:
        self._cost = cost
        self._needs_plain = needs_plain
        self._emitted: float = _PRIOR_RATE * _PRIOR_STEPS
        self._spent: float = _PRIOR_STEPS

    @property
    def rate(self) -> float:
        """λ: recent tokens per unit of time; at least 1, the rate of plain decoding."""
        return max(1.0, self._emitted / self._spent)

    def shape(self, draft: Draft, budget: int, pending: int = 1) -> Draft:
        """The part of `draft` that pays, at most `budget` nodes, in a block with `pending` known tokens."""
        if len(draft.confidence) != len(draft):
            return draft.prefix(max(0, budget))
        if budget < 1 or not len(draft) or (pending == 1 and self._needs_plain()):
            return EMPTY
        reached = _reached(draft)
        # Sorting is stable and parents come first, so equal probabilities never separate a node from its
        # parent.
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
        """Records a step over a block of `width` tokens, including pending ones, that emitted `emitted`
        tokens.
        """
        self._emitted = self._emitted * _DECAY + emitted
        self._spent = self._spent * _DECAY + self._cost(width)


def _reached(draft: Draft) -> list[float]:
    """For each node, the probability that its whole path is accepted."""
    reached: list[float] = []
    for parent, confidence in zip(draft.parents, draft.confidence):
        likely = min(1.0, max(0.0, confidence))
        reached.append(likely * reached[parent] if parent >= 0 else likely)
    return reached


def _part(draft: Draft, nodes: list[int]) -> Draft:
    """The subtree of `nodes`, which include the parent of each."""
    if len(nodes) == len(draft):
        return draft
    kept = sorted(nodes)
    place = {-1: -1} | {node: at for at, node in enumerate(kept)}
    return Draft(
        tuple(draft.tokens[node] for node in kept),
        tuple(place[draft.parents[node]] for node in kept),
        tuple(draft.confidence[node] for node in kept),
    )
