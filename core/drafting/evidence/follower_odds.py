"""FollowerOdds: how likely each token is to come next, from leader → followers tables. Cacheback's.

Tables hold no counts, but more than the followers of the last LL tokens: a guess is *supported* as
far back as followers of earlier leaders spell it. If "the fox ran fast" was seen, then after "the
fox" the guess "ran" is a follower of "fox" and also how the follower of "the" goes on: support 2,
which is a match of LL + 1 tokens. Support ends at FL.

A guess's log-odds are a sum: its support in the dynamic table, its place among the guesses with
that support (most recent first), how many of them there are, how much longer the longest support
of another guess is; and the same of the frozen table, most frequent first. A kind (support, and
whether it is the newest) is then corrected by what came of it in this answer (`calibration`).

The weights are logistic regressions, as in `core.bench.replay.fit`, on the even-numbered of 39 recorded
answers of a 135M model with LL 1 and FL 3, without a frozen table and with the shipped one. Fitted
on the odd-numbered ones the log loss of the others is the same within 2%.

Knows no tree, no budget and no cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

from msgspec import Struct

from core.drafting.evidence.calibration import LEARNED_KIND, Calibration, log2_1
from core.drafting.tables.lru_table import Gram


class Source(Protocol):
    """A table of either kind."""

    def followers(self, leader: Gram) -> Iterator[Gram]: ...


class FollowerWeights(Struct, frozen=True):
    """What each piece of evidence adds to the log-odds of a guess."""

    anything: float
    # Support of 1, 2, and 3 or more in the dynamic table.
    support: tuple[float, float, float]
    newest: float
    rank: float  # · log2(1 + guesses with that support that are more recent)
    fan: float  # · log2 of how many have that support
    outdone: float  # · how much longer the longest support is
    unseen: float = 0.0  # · log2(1 + the longest support), of what the dynamic table has not
    # ---- the frozen table
    frozen_support: tuple[float, float, float] = (0.0, 0.0, 0.0)
    frozen_rank: float = 0.0
    frozen_fan: float = 0.0
    both: float = 0.0


WEIGHTS = FollowerWeights(0.057, (-0.579, -0.184, 0.82), 0.582, -0.344, -0.8, -1.473)
WEIGHTS_FROZEN = FollowerWeights(
    anything=-1.133,
    support=(0.246, 0.516, 1.607),
    newest=0.854,
    rank=-0.117,
    fan=-0.842,
    outdone=-1.433,
    frozen_support=(-0.42, -0.024, -0.685),
    frozen_rank=-0.15,
    frozen_fan=-0.373,
    both=2.373,
)
_MOST_SUPPORT = (LEARNED_KIND - 1) // 2
# The likeliest ones at a place are learned from; the rest say nothing about what is drafted.
_LEARNED = 8


class OddsGuess(NamedTuple):
    """`token` comes with `probability`; `log_odds` are before the correction of its `kind`."""

    token: int
    probability: float
    log_odds: float
    kind: int


class _Place(NamedTuple):
    """Of one guess in one table: its support, and its place among the `fan` guesses with that support."""

    support: int
    rank: int
    fan: int


class FollowerOdds:
    """Of one request. `frozen` is None where there is no such table, `dynamic` where it is not asked."""

    def __init__(
        self, dynamic: Source | None, frozen: Source | None, leader_tokens: int, follower_tokens: int
    ) -> None:
        self._dynamic = dynamic
        self._frozen = frozen
        self._leader_tokens = leader_tokens
        self._follower_tokens = follower_tokens
        self._weights = WEIGHTS if frozen is None else WEIGHTS_FROZEN
        self._calibration = Calibration()

    @property
    def tail_tokens(self) -> int:
        """How many of the latest tokens tell everything: LL + FL − 1."""
        return self._leader_tokens + self._follower_tokens - 1

    def after(self, tail: Gram, token: int) -> Gram:
        """The latest tokens behind `token`."""
        return (*tail, token)[-self.tail_tokens :]

    def guesses(self, tail: Gram) -> list[OddsGuess]:
        """What may follow `tail`, likeliest first."""
        dynamic, frozen = self._places(self._dynamic, tail), self._places(self._frozen, tail)
        longest = max((place.support for place in dynamic.values()), default=0)
        found = []
        # Tokens of the dynamic table first, most recent first: equals keep this order.
        for token in dict.fromkeys((*dynamic, *frozen)):
            here = dynamic.get(token)
            log_odds = self._log_odds(here, frozen.get(token), longest)
            kind = LEARNED_KIND
            if here is not None:
                kind = 2 * min(here.support, _MOST_SUPPORT) + (here.rank == 0)
            found.append(OddsGuess(token, self._calibration.probability(log_odds, kind), log_odds, kind))
        found.sort(key=attrgetter("probability"), reverse=True)
        return found

    def learn(self, guesses: Sequence[OddsGuess], token: int) -> None:
        """Where these were the guesses, `token` came."""
        for guess in guesses[:_LEARNED]:
            self._calibration.learn(guess.log_odds, guess.kind, guess.token == token)

    def _log_odds(self, here: _Place | None, frozen: _Place | None, longest: int) -> float:
        weights = self._weights
        total = weights.anything
        if here is None:
            total += weights.unseen * log2_1(longest)
        else:
            total += weights.support[min(here.support, 3) - 1] + weights.newest * (here.rank == 0)
            total += weights.rank * log2_1(here.rank) + weights.fan * log2_1(here.fan - 1)
            total += weights.outdone * (longest - here.support)
        if frozen is not None:
            total += weights.frozen_support[min(frozen.support, 3) - 1]
            total += weights.frozen_rank * log2_1(frozen.rank) + weights.frozen_fan * log2_1(frozen.fan - 1)
            total += weights.both * (here is not None)
        return total

    def _places(self, source: Source | None, tail: Gram) -> dict[int, _Place]:
        """Each guess of one table, the longest support first."""
        found: dict[int, _Place] = {}
        if source is None:
            return found
        most = min(self._follower_tokens, len(tail) - self._leader_tokens + 1)
        for support in range(most, 0, -1):
            end = len(tail) - support + 1
            said = tail[end:]
            grams = source.followers(tail[end - self._leader_tokens : end])
            tokens = dict.fromkeys(gram[support - 1] for gram in grams if gram[: support - 1] == said)
            for rank, token in enumerate(tokens):
                if token not in found:
                    found[token] = _Place(support, rank, len(tokens))
        return found
