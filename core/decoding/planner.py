"""Planner: how much of a draft to verify; and `walk`: how much of a verified draft is accepted. Pure, no MLX.

A draft's confidences give each node the probability of being accepted: the product along its path. Verifying
a set of nodes emits 1 + Σ probability tokens on average and takes T(1 + nodes). The price of time is the
answer's own running rate λ of tokens per unit of time, where a plain step takes one unit. The planner takes
the subtree that maximises

    1 + Σ probability − λ · T(width)

and nothing if that is not more than a plain step's 1 − λ · T(1). T is the time of a whole step: T(1) is more
than 1 if asking the drafter takes time or the plain step, which is the unit, runs ahead. This rule maximises
tokens per time over the whole answer if λ is the resulting rate (Dinkelbach, “On nonlinear fractional
programming”, 1967), so the running rate replaces solving for it.

A node is never more probable than its parent, so for each size the best subtree consists of the most probable
nodes, and one pass over them in that order is the whole search. T need not be convex (that of Metal and of
CPUs is not), so every size is considered.

Invariant: the result has the same tokens on the same paths, in draft order, within the budget. A draft
without confidences is returned whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from core.drafting.draft import EMPTY, Draft

# The rate averages about 1 / (1 − decay) ≈ 33 steps. 20 to 100 steps gave the same within 0.5%. It starts as
# if `_PRIOR_STEPS` steps had had the prior rate.
_DECAY = 0.97
_PRIOR_STEPS = 8.0
_PRIOR_RATE = 1.5
# Nodes of the largest draft that grows by `least_probabilities`; larger ones grow on.
_MOST_NODES = 16
BlockCost = Callable[[int, bool], float]


class Planner:
    """Selects from the drafts of one answer.

    `cost(width, tree)` is T of a chain or a tree, in plain steps. While `needs_plain()`, nothing is drafted.
    """

    def __init__(self, cost: BlockCost, needs_plain: Callable[[], bool] = lambda: False) -> None:
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
        reached = draft.reach_probabilities()
        # Sorting is stable and parents come first, so equal probabilities never separate a node from its
        # parent.
        order = sorted(range(len(reached)), key=reached.__getitem__, reverse=True)
        price, cost = self.rate, self._cost
        total, size, last, tree = 0.0, 0, -1, False
        best = -price * cost(pending, tree)
        for count, node in enumerate(order[:budget], 1):
            total += reached[node]
            tree, last = tree or draft.parents[node] != last, node
            worth = total - price * cost(pending + count, tree)
            if worth > best:
                best, size = worth, count
        return draft.part(sorted(order[:size]))

    def least_probabilities(self, pending: int = 1) -> Callable[[int, bool], float]:
        """For one draft in a block with `pending` known tokens: a function of (number of nodes before, is
        tree), the path probability that a node must exceed to be in the part that pays, alone or with further
        nodes after it.

        No further node is more probable than this one, so n further nodes emit at most n times as much.
        """
        rate, cost = self.rate, self._cost
        by_kind: dict[bool, list[float]] = {}

        def least_probability(count: int, tree: bool) -> float:
            if tree not in by_kind:
                by_kind[tree] = [cost(pending + nodes, tree) for nodes in range(_MOST_NODES + 1)]
            costs = by_kind[tree]
            slopes = [
                (costs[nodes] - costs[count]) / (nodes - count) for nodes in range(count + 1, len(costs))
            ]
            return rate * min(slopes, default=0.0)

        return least_probability

    @property
    def asking(self) -> float:
        """Plain steps that asking the drafter adds to a step, mostly because the loop cannot run ahead."""
        return self._cost(1, False) - 1.0

    def worth(self, draft: Draft, pending: int = 1) -> float:
        """Tokens that a step with `draft`, as shaped, is expected to emit more than plain steps in the same
        time; less than 0 for an empty draft if asking takes time.
        """
        guessed = sum(draft.reach_probabilities()) if len(draft.confidence) == len(draft) else 0.0
        tree = not draft.is_chain
        longer = self._cost(pending + len(draft), tree) - self._cost(pending, False)
        return guessed - longer - self.asking

    def rested(self, emitted: int) -> None:
        """Records a plain step that emitted `emitted` tokens and did not ask the drafter."""
        self._emitted = self._emitted * _DECAY + emitted
        self._spent = self._spent * _DECAY + emitted

    def record(self, width: int, tree: bool, emitted: int, proposal_cost: float = 0.0) -> None:
        """Records a step over a block of `width` tokens, including pending ones, that emitted `emitted`
        tokens. `proposal_cost`: the time of a model's guesses.
        """
        self._emitted = self._emitted * _DECAY + emitted
        self._spent = self._spent * _DECAY + self._cost(width, tree) + proposal_cost


# ---- acceptance


class Walk(Struct, frozen=True):
    """`path`: accepted node indices, in order. `last`: the target's own token after them.

    `tested`: nodes whose acceptance was decided: the accepted ones, and one rejected node if the walk ended
    at a row with another guess.
    """

    path: tuple[int, ...]
    last: int
    tested: int


def walk(draft: Draft, choices: Sequence[int], stops: frozenset[int] = frozenset()) -> Walk:
    """Accepts the part of `draft` that equals the target's `choices`.

    `choices[0]` is the target's token after the context, `choices[i + 1]` its token after node i. From the
    root, the walk descends to the child that equals the choice, as long as there is one; the choice where it
    ends is the step's last token. Every emitted token is thus the target's own choice given the accepted
    path, so the output is that of plain decoding, whatever was drafted.

    A choice in `stops` ends the walk even if it was drafted, because nothing follows it; the step's last
    token is then the target's own.
    """
    path: list[int] = []
    node = -1
    tested = 0
    # Parents come before children, so one pass over the nodes is the whole walk.
    for index, (token, parent) in enumerate(zip(draft.tokens, draft.parents)):
        if parent != node:
            continue
        if choices[node + 1] in stops:
            break
        if token == choices[node + 1]:
            path.append(index)
            node = index
            tested = len(path)
        else:
            tested = len(path) + 1
    return Walk(tuple(path), choices[node + 1], tested)
