"""PredictedDrafter: any drafter, with a predicted answer in front of it.

While the answer goes like the prediction, that is copied: a chain with confidences, as long as it is likely
enough. Where little of it is, the drafter is asked, too, and the draft that promises more tokens is taken:
by its confidences, or where it has none by what came of such drafts lately. The drafter hears of every token
either way.

Where a planner shapes the drafts it takes as much of the copy as pays. Where none does, the copy ends where
it is no longer likelier than not.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.drafting.draft import EMPTY, Draft
from core.drafting.drafter import Drafter, RejectedRow
from core.drafting.prediction.cursor import PredictionCursor
from core.events import Occupancy, TableFigures

# As wide as any drafter's drafts may be set to.
MOST_TOKENS = 64
_SURE = 0.5
# A copy of which so many tokens are expected needs no second opinion.
_PLENTY_TOKENS = 4.0
# What came of a draft without confidences is an average over about ten; at first this is taken for it.
_YIELD_DECAY = 0.9
_YIELD_AT_FIRST = 1.0
# Of a copy that a planner shapes: what is hardly ever reached is not worth its look.
_LEAST_REACHED = 0.02


class PredictedDrafter(Drafter):
    """`begun` are the tokens at the prompt's end that the answer begins with; `planned`: a planner shapes."""

    def __init__(
        self, drafter: Drafter, prediction: Sequence[int], *, planned: bool, begun: Sequence[int] = ()
    ) -> None:
        self._drafter = drafter
        self._prediction = prediction
        self._begun = begun
        self._least = _LEAST_REACHED if planned else _SURE
        self._cursor = PredictionCursor(())
        self._copied = False
        self._yield = _YIELD_AT_FIRST

    def begin(self, prompt: Sequence[int]) -> None:
        self._drafter.begin(prompt)
        self._cursor = PredictionCursor(self._prediction)
        for token in self._begun:
            self._cursor.follow(token)
        self._cursor.start_again()
        self._copied = False
        self._yield = _YIELD_AT_FIRST

    def observe(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._cursor.follow(token)
        self._drafter.observe(tokens)

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        self._drafter.observe_top(ids, rejected)

    def draft(self, budget: int) -> Draft:
        copy = self._copy(min(budget, MOST_TOKENS))
        worth = _expected(copy)
        self._copied = worth >= _PLENTY_TOKENS
        if self._copied:
            return copy
        guessed = self._drafter.draft(budget)
        opinion = _expected(guessed) if guessed.confidence else self._yield * bool(len(guessed))
        self._copied = worth > opinion
        return copy if self._copied else guessed

    def feedback(self, draft: Draft, accepted: int) -> None:
        """The drafter hears of its own drafts only."""
        if not self._copied:
            self._yield += (accepted - self._yield) * (1.0 - _YIELD_DECAY)
            self._drafter.feedback(draft, accepted)

    def occupancy(self) -> Occupancy:
        return self._drafter.occupancy()

    def figures(self) -> TableFigures | None:
        return self._drafter.figures()

    def _copy(self, most: int) -> Draft:
        tokens, likely = self._cursor.ahead(most)
        reached, length = 1.0, 0
        while length < len(tokens) and reached * likely[length] >= self._least:
            reached *= likely[length]
            length += 1
        if not length:
            return EMPTY
        return Draft(tuple(tokens[:length]), tuple(range(-1, length - 1)), tuple(likely[:length]))


def _expected(draft: Draft) -> float:
    """How many tokens of `draft` are expected to be accepted."""
    reached: list[float] = []
    for parent, confidence in zip(draft.parents, draft.confidence):
        reached.append(confidence * (reached[parent] if parent >= 0 else 1.0))
    return sum(reached)
