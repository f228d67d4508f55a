"""Calibration: the probability of a guess from its kind of evidence, corrected by outcomes.

A guess's log-odds sum the weights of its evidence and two quantities that are learned during the answer:

    familiarity   how often the newest continuation of the longest match was right (share h): long matches
                  count more in an answer that copies. Enters as logit(h) · log2(1 + ℓ).
    correction    per kind of evidence (`Odds`).

ℓ is the length of the longest context in which the guess was seen, n of the N times that context occurred.
The log-odds of a count share are ln((n + 0.3) / (N − n + 0.3)).

The weights are a logistic regression on the even-numbered half of 39 recorded answers of a 135M model (11
kinds of prompts). Fitted on the odd half they are the same within the noise; the notes give both. They are
priors: `STRENGTH` guesses of a kind have the same weight.

A *kind* is an int below `KINDS`: source or length class of the match, and whether the copy cursor agrees."""

from __future__ import annotations

from functools import cache
from math import log, log2
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from core.drafting.odds import STRENGTH, Odds


class Weights(Struct, frozen=True):
    """Contributions of each kind of evidence to the log-odds of a guess."""

    anything: float = -2.59
    # After guesses that are assumed to be right: text that deep in a draft is easier to guess.
    reached: float = 0.0
    # ---- seen after a suffix of the text
    length: float = 0.35  # · log2(1 + ℓ)
    familiar: float = 0.10  # · logit(h) · log2(1 + ℓ)
    share: float = 0.74  # · log-odds of the count share
    seen: float = 0.24  # · log2(1 + N)
    # A longer suffix occurred and was followed by another token: · log2(1 + its length − ℓ).
    outdone: float = -0.65
    # ---- never seen after any suffix
    unseen: float = -1.11
    unseen_outdone: float = -0.52  # · log2(1 + length of the longest suffix)
    # ---- the token at the copy cursor
    thread: float = 0.76
    thread_trust: float = 0.19  # · log2(1 + trust)
    # ---- rank in the target's ranking after the same token: first, second, later, missing. Only for guesses
    # seen after at most two tokens; longer contexts are better evidence.
    after: tuple[float, float, float] = (0.43, 1.49, 0.45)
    not_after: float = -0.47
    # ---- ranked high and not emitted: one position ago as runner-up or lower, or two positions ago
    runner_up: float = 0.89
    passed_over: float = 0.42
    passed_over_before: float = 0.44
    # ---- the prebuilt table: constant and · logit of its probability, for guesses not seen in the session,
    # and for those seen after at most two tokens or after more
    learned_new: tuple[float, float] = (0.0, 0.0)
    learned: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))
    # ---- the family's n-gram table holds it from an earlier chat: constant and · log2(1 + run), for guesses
    # without other evidence, and in addition to other evidence
    remembered_new: tuple[float, float] = (2.41, 1.02)
    remembered: tuple[float, float] = (5.34, 0.98)


WEIGHTS = Weights()
# With a prebuilt table: fitted with the shipped one on the even-numbered half of 131 answers that are not
# part of the table (`python -m tests.tuning fit --held-out 2`).
WEIGHTS_LEARNED = Weights(
    anything=-0.852,
    reached=0.276,
    length=-0.062,
    familiar=0.098,
    share=0.691,
    seen=0.286,
    outdone=-0.662,
    unseen=0.082,
    unseen_outdone=-0.642,
    thread=-0.036,
    thread_trust=0.607,
    after=(0.082, 0.607, -0.143),
    not_after=-0.24,
    runner_up=1.519,
    passed_over=0.74,
    passed_over_before=0.324,
    learned_new=(0.082, 0.693),
    learned=((-0.347, 0.106), (-0.587, 0.039)),
    remembered_new=(-0.694, 0.884),
    remembered=(8.982, 0.945),
)

# Greater lengths and counts are treated as these.
_MAX_LENGTH = 32
_MAX_SEEN = 16
_CLASSES = 6
# Two per class, then guesses of the prebuilt table alone, and guesses of the n-gram table: without a run, and
# with one.
KINDS = 2 * _CLASSES + 3
LEARNED_KIND = KINDS - 3
REMEMBERED_KIND = KINDS - 2
# Prior hits and prior misses, so that one miss of a nearly certain guess changes little.
_PRIOR_EACH = 2.0
_FAMILIAR_DECAY = 0.95
_FAMILIAR_AT_FIRST = 0.35
_FAMILIAR_LEAST = 0.03

_LOG2 = tuple(log2(1 + i) for i in range(4097))
_LENGTH = tuple(_LOG2[min(i, _MAX_LENGTH)] for i in range(4097))


def log2_1(count: int) -> float:
    """log2(1 + count), constant from 4,096 on."""
    return _LOG2[count if count < 4096 else 4096]


# Steps between the weights without tables and those with one.
_TRUST_STEPS = 16


@cache
def _between(without: Weights, learned: Weights) -> tuple[Weights, ...]:
    """Weights for each step of trust in tables, from none on."""
    ends = astuple(without), astuple(learned)
    return tuple(Weights(*_mean(*ends, step / _TRUST_STEPS)) for step in range(_TRUST_STEPS + 1))


def _mean(first: Any, second: Any, share: float) -> Any:
    """Weighted mean of two numbers, or of two equally nested tuples; `share` is the weight of `second`."""
    if isinstance(first, tuple):
        return tuple(_mean(*pair, share) for pair in zip(first, second))
    return first + (second - first) * share


class Calibration(Odds):
    """Estimates of one answer. `weights` are the priors; `learned`: those with short n-grams, if there are
    any.
    """

    def __init__(self, weights: Weights = WEIGHTS, learned: Weights | None = None) -> None:
        super().__init__((STRENGTH,) * KINDS, each=_PRIOR_EACH)
        self.weights = weights
        self._by_trust = _between(weights, learned) if learned is not None else ()
        self._familiar: float = _FAMILIAR_AT_FIRST
        self._length_weights: list[float] = []

    def trust(self, share: float) -> None:
        """Sets the weights for a position at which tables are trusted to this share, 0 to 1."""
        if self._by_trust:
            weights = self._by_trust[round(_TRUST_STEPS * share)]
            if weights is not self.weights:
                self.use_weights(weights)

    def use_weights(self, weights: Weights) -> None:
        """Replaces the weights and keeps the learned corrections."""
        self.weights = weights
        self._length_weights.clear()

    # ---- evidence

    def context(self, length: int, seen: int, outdone_by: int, assumed: int = 0) -> float:
        """Log-odds of a follower of a context of `length` tokens, before its count share.

        The last `assumed` tokens of the context are guesses.
        """
        weights = self.weights
        return (
            weights.anything
            + weights.reached * (assumed > 0)
            + self._length_weight(assumed) * _LENGTH[length if length < 4096 else 4096]
            + weights.seen * _LOG2[seen if seen < _MAX_SEEN else _MAX_SEEN]
            + weights.outdone * log2_1(outdone_by)
        )

    def share(self, count: int, seen: int) -> float:
        """Log-odds added because the guess was `count` of the `seen` followers."""
        return self.weights.share * log((count + 0.3) / (max(0, seen - count) + 0.3))

    def unseen(self, longest: int, assumed: int = 0) -> float:
        """Log-odds of a token that never followed any suffix; the longest suffix has `longest` tokens."""
        weights = self.weights
        return (
            weights.anything
            + weights.reached * (assumed > 0)
            + weights.unseen
            + weights.unseen_outdone * log2_1(longest)
        )

    # ---- learning

    def learn_familiarity(self, right: bool) -> None:
        """Records whether the newest continuation of the longest match was the next token."""
        self._familiar += (right - self._familiar) * (1.0 - _FAMILIAR_DECAY)
        self._length_weights.clear()

    def _length_weight(self, assumed: int) -> float:
        """The weight of a match's length after `assumed` consecutive correct guesses."""
        known = self._length_weights
        while len(known) <= assumed:
            familiar = 1.0 - (1.0 - self._familiar) * _FAMILIAR_DECAY ** len(known)
            share = min(1.0 - _FAMILIAR_LEAST, max(_FAMILIAR_LEAST, familiar))
            known.append(self.weights.length + self.weights.familiar * log(share / (1.0 - share)))
        return known[assumed]


def kind_of(length: int, threaded: bool) -> int:
    """The kind of a guess seen after a context of `length` tokens; `length` 0: never seen."""
    # Classes: unseen; 1 and 2; 3 … 6; 7 … 14; 15 … 30; longer.
    match_class = 0 if length <= 0 else min(_CLASSES - 1, max(1, (length + 1).bit_length() - 1))
    return 2 * match_class + threaded
