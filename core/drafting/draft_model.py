"""draft-model: a smaller model of the same tokenizer family guesses a chain (the ngram-mod article's
comparison).

The guessing itself is a `Proposer`'s, which owns the model; here is only the drafter's side: it
keeps the context, asks for a chain, and ends it at the first guess below `stop_below`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.drafting.draft import EMPTY, Draft, Drafter, RejectedRow
from core.events import Occupancy
from core.settings.drafting import DraftModel


class Proposer(Protocol):
    """A model that continues a context greedily."""

    def propose(self, context: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        """`count` ids that follow `context`, each with its probability under the draft model."""


class DraftModelDrafter(Drafter):
    """One request after the other on a proposer, whose cache follows the context by itself."""

    def __init__(self, settings: DraftModel, proposer: Proposer) -> None:
        self._settings = settings
        self._proposer = proposer
        self._context: list[int] = []

    def begin(self, prompt: Sequence[int]) -> None:
        self._context = list(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        self._context.extend(tokens)

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Unused: the draft model has opinions of its own."""

    def draft(self, budget: int) -> Draft:
        count = min(self._settings.k, budget)
        if count < 1 or not self._context:
            return EMPTY
        tokens, probabilities = self._proposer.propose(self._context, count)
        length = 0
        while length < len(tokens) and probabilities[length] >= self._settings.stop_below:
            length += 1
        return Draft(tuple(tokens[:length]), tuple(range(-1, length - 1)), tuple(probabilities[:length]))

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Unused: the proposer drops rejected tokens when it is next asked."""

    def occupancy(self) -> Occupancy:
        return Occupancy()
