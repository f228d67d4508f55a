"""Odds: probabilities of guesses, corrected by the outcomes of earlier guesses of the same class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

# A class's counts average about 1 / (1 − decay) guesses.
DECAY = 0.985
# A prior of 30 or 60 guesses gave the same in recorded answers and 1 to 2% less in edited copies.
STRENGTH = 12.0


class Odds:
    """Outcomes by class in decayed counts, which correct the log-odds that a guess states.

    The correction of a class is log((hits + a) / (expected + a)) minus the same of misses. The prior a are
    `strengths[class]` guesses that turned out as stated, and `each` hits and misses. For a class whose
    guesses all state p, and without `each`, the corrected probability is (hits + strength · p) / (guesses +
    strength).
    """

    def __init__(self, strengths: Sequence[float], *, decay: float = DECAY, each: float = 0.0) -> None:
        self._strengths = strengths
        self._decay = decay
        self._each = each
        # Per class, decayed: hits, expected hits, guesses.
        self._counts = [[0.0, 0.0, 0.0] for _ in strengths]
        self._corrections = [0.0 for _ in strengths]

    def probability(self, log_odds: float, kind: int) -> float:
        """The corrected probability of a guess of class `kind` that states `log_odds`."""
        return sigmoid(log_odds + self._corrections[kind])

    def best(
        self, log_odds: Mapping[int, float], kinds: Mapping[int, int], count: int
    ) -> list[tuple[float, int]]:
        """The `count` most probable of the guesses of tokens, with their corrected probabilities."""
        corrections = self._corrections
        found = [(sigmoid(odds + corrections[kinds[token]]), token) for token, odds in log_odds.items()]
        found.sort(reverse=True)
        return found[:count]

    def learn(self, log_odds: float, kind: int, correct: bool) -> None:
        """Records whether such a guess was correct."""
        counts, decay = self._counts[kind], self._decay
        counts[0] = counts[0] * decay + correct
        counts[1] = counts[1] * decay + sigmoid(log_odds)
        counts[2] = counts[2] * decay + 1.0
        self._correct(kind)

    def _correct(self, kind: int) -> None:
        hits, expected, guesses = self._counts[kind]
        strength = self._strengths[kind]
        prior_hits = strength * expected / guesses + self._each
        prior_misses = strength * (1.0 - expected / guesses) + self._each
        misses, expected_misses = guesses - hits, max(0.0, guesses - expected)
        self._corrections[kind] = log((hits + prior_hits) / (expected + prior_hits)) - log(
            (misses + prior_misses) / (expected_misses + prior_misses)
        )


def logit(probability: float) -> float:
    """The log-odds of a probability strictly between 0 and 1."""
    return log(probability / (1.0 - probability))


def sigmoid(log_odds: float) -> float:
    """The probability with these log-odds."""
    return 1.0 / (1.0 + exp(-log_odds)) if log_odds > -700.0 else 0.0
