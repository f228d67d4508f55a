"""`draft-model` and `mtp`: a smaller model of the family, or the model's own MTP head, drafts a chain.

The former is the comparison in the ngram-mod article. The `Proposer` owns the model; this module keeps the
context, requests a chain and ends it at the first token with a probability below `stop_below`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from core.drafting.draft import EMPTY, Draft, Drafter, RejectedRow
from core.events import Occupancy
from core.settings.drafting import DraftModel, Mtp


class Proposal(Struct, frozen=True):
    """A chain of ids and their probabilities under the draft model; and its second choice for the first one,
    −1 if unknown.
    """

    tokens: list[int]
    probabilities: list[float]
    second: int = -1
    second_probability: float = 0.0


NO_PROPOSAL = Proposal([], [])


class Proposer(Protocol):
    """A model that continues a context greedily."""

    def propose(self, context: Sequence[int], count: int) -> Proposal:
        """Up to `count` ids that follow `context`."""


class DraftModelDrafter(Drafter):
    """Serves one request after the other; the proposer's cache follows the context."""

    def __init__(self, settings: DraftModel | Mtp, proposer: Proposer) -> None:
        self._settings = settings
        self._proposer = proposer
        self._context: list[int] = []

    def begin(self, prompt: Sequence[int]) -> None:
        self._context = list(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        self._context.extend(tokens)

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Does nothing."""

    def draft(self, budget: int) -> Draft:
        count = min(self._settings.k, budget)
        if count < 1 or not self._context:
            return EMPTY
        proposal = self._proposer.propose(self._context, count)
        tokens, probabilities = proposal.tokens, proposal.probabilities
        length = 0
        while length < len(tokens) and probabilities[length] >= self._settings.stop_below:
            length += 1
        return Draft(tuple(tokens[:length]), tuple(range(-1, length - 1)), tuple(probabilities[:length]))

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Does nothing: the proposer drops rejected tokens at its next call."""

    def occupancy(self) -> Occupancy:
        return Occupancy()
