"""A model's guesses: `draft-model` and `mtp`, which draft them, and `Proposals`, for which they are evidence.

The model is a smaller one of the family (the comparison in the ngram-mod article), or a head trained for the
model. The `Proposer` owns it. The drafter keeps the context, requests a chain and ends it at the first token
with a low probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from core.drafting.draft import EMPTY, NO_FACTS, PROPOSED_KIND, Draft, Drafter, Facts, Guess
from core.drafting.gate import Backoff, default_cost
from core.drafting.odds import STRENGTH, Odds, logit
from core.events import DraftSource
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


# A guess with a lower probability ends a draft of `draft-model` or `mtp`.
_STOP_BELOW = 0.4


class DraftModelDrafter(Drafter):
    """Serves one request after the other; the proposer's cache follows the context."""

    def __init__(self, settings: DraftModel | Mtp, proposer: Proposer) -> None:
        self._settings = settings
        self._proposer = proposer
        self._context: list[int] = []

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self._context = list(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        self._context.extend(tokens)

    def draft(self, budget: int) -> Draft:
        count = min(self._settings.k, budget)
        if count < 1 or not self._context:
            return EMPTY
        proposal = self._proposer.propose(self._context, count)
        tokens, probabilities = proposal.tokens, proposal.probabilities
        length = 0
        while length < len(tokens) and probabilities[length] >= _STOP_BELOW:
            length += 1
        return Draft.chain(tokens[:length], probabilities[:length])


# ---- proposals
#
# Proposals: a model's guesses (a head's, a draft model's) as one more kind of evidence of `auto`.
#
# A proposal is a chain. Along it, its guesses join those of the other evidence: a guess keeps the higher of
# the two probabilities, and the others share the remainder to 1. Elsewhere in a draft it changes nothing.
#
# - *Calibration*: a model's own probability is corrected by outcomes, for each depth of the chain and for
#   whether the other evidence agrees, has another likely guess, or none (`Odds`).
# - *Asking*: costs time whether a guess is accepted or not. The model is not run if other evidence is
#   confident. The chain is as long as its past acceptance pays. A proposal's gain are the accepted tokens
#   that the other evidence would not have reached; its loss is the time of asking and of the rows that were
#   verified for it. While the gain of recent proposals is below their loss, asking rests, longer after each
#   unsuccessful trial.
#
# All of it belongs to one model and outlives an answer. Pure; times are in plain steps.


MOST_TOKENS = 4
# Other evidence is likely, or so confident that the model is not used.
_LIKELY = 0.5
_CONFIDENT = 0.9
_CLASSES = 3
_PRIOR_EACH = 1.0
_LEAST, _MOST = 1e-4, 1.0 - 1e-4
# Acceptance before any outcome, and its weight in outcomes.
_ACCEPTED_AT_FIRST = logit(0.6)
_ACCEPTED_STRENGTH = 2.0
# A row's cost, to decide on the length of a chain.
_ROW_COST = 0.1
# Proposals before gain and loss are compared: at once if nothing was gained, and in later trials.
_FIRST_TRIAL = 8
_HOPELESS_TRIAL = 3
_GAIN_DECAY = 0.9
_REST_TOKENS = 32
_MOST_DOUBLINGS = 4
_RATE_DECAY = 0.97


class Proposals:
    """Asks `proposer`, in one answer after the other; `begin` starts one.

    `cost(count)`: the time of asking for `count` tokens, of which there are at most `most`;
    `block_cost(width)`: T of the planner. `source`: what the tokens come from.
    """

    def __init__(
        self,
        proposer: Proposer,
        cost: Callable[[int], float],
        block_cost: Callable[[int], float] = default_cost,
        source: DraftSource = "draft model",
        most: int = MOST_TOKENS,
    ) -> None:
        self.proposer = proposer
        self.source = source
        self.cost = cost
        self.block_cost = block_cost
        self._most = most
        # Odds of stated probabilities by class and depth, and of any proposal by depth.
        self._odds = Odds((STRENGTH,) * _CLASSES * most, each=_PRIOR_EACH)
        self._accepted = Odds((_ACCEPTED_STRENGTH,) * most, decay=_GAIN_DECAY)
        self._backoff = Backoff(_REST_TOKENS, _MOST_DOUBLINGS)
        self._trials = 0
        self._gained = self._lost = 0.0
        self._emitted = self._spent = 0.0
        self._context: list[int] = []
        self._forget()

    def begin(self, prompt: Sequence[int]) -> None:
        """Starts an answer."""
        self._context = list(prompt)
        self._forget()

    @property
    def is_resting(self) -> bool:
        """Whether asking does not pay at the moment."""
        return self._backoff.left_tokens > 0

    @property
    def asked_cost(self) -> float:
        """The time that the last draft's proposal took; 0 without one."""
        return self._asked_cost

    def ask(self, guesses: Sequence[Guess], budget: int) -> None:
        """Asks for a chain, unless other evidence, `guesses`, is confident, or asking does not pay."""
        self._forget()
        confident = bool(guesses) and guesses[0].probability >= _CONFIDENT
        count = min(budget, self._length())
        if self.is_resting or confident or count < 1 or not self._context:
            return
        self._proposal = self.proposer.propose(self._context, count)
        if self._proposal.tokens:
            self._asked_cost = self.cost(count)

    def join(self, guesses: list[Guess], path: Sequence[int]) -> list[Guess]:
        """`guesses` after `path`, with the chain's next token if the path is the chain's beginning."""
        proposal, depth = self._proposal, len(path)
        if depth >= min(len(proposal.tokens), self._most) or list(path) != proposal.tokens[:depth]:
            return guesses
        token, stated = proposal.tokens[depth], proposal.probabilities[depth]
        other = {guess.token: guess.probability for guess in guesses}
        kind = _class_of(guesses, token) * self._most + depth
        likely = self._odds.probability(logit(_bounded(stated)), kind)
        best = max(likely, other.get(token, 0.0))
        if depth == len(self._joined):
            self._joined.append((stated, kind, other.get(token, 0.0) / best))
        joined = [
            guess._replace(probability=best, proposed=likely > guess.probability)
            if guess.token == token
            else guess
            for guess in guesses
        ]
        if token not in other:
            joined.append(Guess(token, best, 0.0, PROPOSED_KIND, True))
        if depth == 0 and proposal.second >= 0 and proposal.second not in (*other, token):
            share = min(1.0, proposal.second_probability / max(1e-9, 1.0 - stated))
            joined.append(Guess(proposal.second, (1.0 - likely) * share, 0.0, PROPOSED_KIND, True))
        joined.sort(key=lambda guess: guess.probability, reverse=True)
        room = 1.0 - joined[0].probability
        total = sum(guess.probability for guess in joined[1:])
        if total <= room:
            return joined
        scale = room / total
        return [joined[0], *(each._replace(probability=each.probability * scale) for each in joined[1:])]

    def verified(self, draft: Draft, accepted: int) -> None:
        """Records the verified part of the draft, and the number of its tokens that were accepted."""
        self._verified, self._accepted_tokens = draft, accepted

    def observe(self, tokens: Sequence[int]) -> None:
        """Learns from the step that emitted `tokens`."""
        self._context.extend(tokens)
        width = 1 + len(self._verified)
        self._emitted = self._emitted * _RATE_DECAY + len(tokens)
        self._spent = self._spent * _RATE_DECAY + self.block_cost(width) + self._asked_cost
        if self.is_resting:
            self._backoff.passed(len(tokens))
        elif self._proposal.tokens:
            self._learn(tokens)
            self._weigh(tokens, width)
        self._forget()

    # ---- outcomes

    def _learn(self, tokens: Sequence[int]) -> None:
        for depth, (guess, token) in enumerate(zip(self._proposal.tokens, tokens)):
            if depth >= len(self._joined):
                break
            right = guess == token
            stated, kind, _ = self._joined[depth]
            self._odds.learn(logit(_bounded(stated)), kind, right)
            self._accepted.learn(_ACCEPTED_AT_FIRST, depth, right)
            if not right:
                break

    def _weigh(self, tokens: Sequence[int], width: int) -> None:
        """Compares the gain of recent proposals with their loss, and rests if it is lower."""
        chain, draft = self._proposal.tokens, self._verified
        # The share of the other evidence in reaching each node of the chain.
        without, rows, node = 1.0, 0.0, -1
        gained = 0.0
        for depth, (_, _, share) in enumerate(self._joined):
            children = [each for each in draft.children(node) if draft.tokens[each] == chain[depth]]
            if not children:
                break
            node = children[0]
            without *= share
            rows += 1.0 - without
            if depth < self._accepted_tokens and list(tokens[: depth + 1]) == list(chain[: depth + 1]):
                gained += 1.0 - without
        narrower = max(1, width - round(rows))
        lost = self._asked_cost + self.block_cost(width) - self.block_cost(narrower)
        self._gained = self._gained * _GAIN_DECAY + gained
        self._lost = self._lost * _GAIN_DECAY + lost * self._rate
        self._trials += 1
        hopeless = self._trials >= _HOPELESS_TRIAL and self._gained <= 0.0
        if not hopeless and self._trials < _FIRST_TRIAL:
            return
        if self._gained >= self._lost:
            self._backoff.worked()
            return
        self._backoff.failed()
        self._trials = 0
        self._gained = self._lost = 0.0

    @property
    def _rate(self) -> float:
        """Recent tokens per plain step; at least 1."""
        return max(1.0, self._emitted / self._spent) if self._spent else 1.0

    def _length(self) -> int:
        """Tokens to ask for: as many as are expected to pay."""
        reached, length = 1.0, 0
        for depth in range(self._most):
            reached *= self._accepted.probability(_ACCEPTED_AT_FIRST, depth)
            marginal = self.cost(length + 1) - self.cost(length) if length else 0.0
            if length and reached <= self._rate * (marginal + _ROW_COST):
                break
            length += 1
        return length

    def _forget(self) -> None:
        self._proposal = NO_PROPOSAL
        # For each joined depth: the stated probability, the class, and the share of the other evidence.
        self._joined: list[tuple[float, int, float]] = []
        self._asked_cost = 0.0
        self._verified = Draft()
        self._accepted_tokens = 0


def _bounded(probability: float) -> float:
    return min(_MOST, max(_LEAST, probability))


def _class_of(guesses: Sequence[Guess], token: int) -> int:
    """0: other evidence has no likely guess; 1: it has another one; 2: the most likely one is `token`."""
    if guesses and guesses[0].token == token:
        return 2
    return int(bool(guesses) and guesses[0].probability >= _LIKELY)
