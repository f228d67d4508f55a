"""Calibration: how likely a guess is, from the kind of evidence there is for it; learned as it goes.

A guess's log-odds are a sum of what each piece of evidence is worth, plus two things that are
learned while the answer is written:

    familiarity   how often the longest match's newest continuation was right lately (share h): a
                  long match is worth more in an answer that copies. Enters as logit(h) · log2(1 + ℓ).
    correction    per kind of evidence, log((hits + a) / (expected + a)) less the same of the
                  misses: what came of what the sum promised, in decayed counts, as if before them
                  some guesses had come exactly as promised (a of them).

ℓ is the length of the longest context in which the guess was seen, n of the N times that context
occurred; the log-odds of a count share are ln((n + 0.3) / (N − n + 0.3)).

The weights are a logistic regression on the even-numbered half of 39 recorded answers of a
135M model (11 kinds of prompts); fitted on the odd half they are the same within the noise, and
the notes give both. They are priors: `_STRENGTH` guesses of a kind weigh as much as they do.

A *kind* is an int below `KINDS`: source or length class of the match, times whether the copy
thread agrees. State is plain arrays (`state`, `restore`), so it can outlive a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, log2

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Weights(Struct, frozen=True):
    """What each piece of evidence adds to the log-odds of a guess."""

    anything: float = -2.59
    # Behind guesses that are assumed to have come: where a walk gets to, the text is easy.
    reached: float = 0.0
    # ---- seen after a suffix of the text
    length: float = 0.35  # · log2(1 + ℓ)
    familiar: float = 0.10  # · logit(h) · log2(1 + ℓ)
    share: float = 0.74  # · log-odds of the count share
    seen: float = 0.24  # · log2(1 + N)
    # A longer suffix has occurred, and something else followed it: · log2(1 + its length − ℓ).
    outdone: float = -0.65
    # ---- never seen after any suffix
    unseen: float = -1.11
    unseen_outdone: float = -0.52  # · log2(1 + length of the longest suffix)
    # ---- the copy thread points at it
    thread: float = 0.76
    thread_trust: float = 0.19  # · log2(1 + trust)
    # ---- rank among what the verifier ranked high after the same token: first, second, later, not;
    # only for guesses that were seen after at most two tokens, for longer contexts know better
    after: tuple[float, float, float] = (0.43, 1.49, 0.45)
    not_after: float = -0.47
    # ---- passed over one place ago as runner-up, as another, or two places ago
    runner_up: float = 0.89
    passed_over: float = 0.42
    passed_over_before: float = 0.44
    # ---- the learned table: constant and · logit of its probability, for guesses not seen in the
    # session, and for those seen after at most two tokens or after more
    learned_new: tuple[float, float] = (0.0, 0.0)
    learned: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))
    # ---- the family's n-gram table remembers it from an earlier chat: constant and · log2(1 + run),
    # for guesses that nothing else brought in, and on top of what others say
    remembered_new: tuple[float, float] = (2.41, 1.02)
    remembered: tuple[float, float] = (5.34, 0.98)


WEIGHTS = Weights()
# With a learned table: fitted with the shipped one on the even-numbered half of 131 answers, none of
# which the table was counted from (`draftlight bench fit --held-out 2`).
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

# Lengths and counts beyond these say no more than these.
_MOST_LENGTH = 32
_MOST_SEEN = 16
_CLASSES = 6
# Two a class, then what only the learned table knows, and what the n-gram table remembers: at first,
# and after it was right.
KINDS = 2 * _CLASSES + 3
LEARNED_KIND = KINDS - 3
REMEMBERED_KIND = KINDS - 2
# A kind's counts are an average over about 1 / (1 − decay) guesses of that kind. 30 or 60 guesses
# as promised instead of 12 gave the same in recorded answers and 1 to 2% less in edited copies.
_DECAY = 0.985
_STRENGTH = 12.0
# And so many hits and misses each, so that one miss of what was almost certain is no upheaval.
_LEAST = 2.0
# What an answer leaves to the next one. All of it cost 1% in unrelated recorded answers, half or a
# quarter changed nothing there; with a quarter, one that learned to trust everything heals sooner.
_KEPT = 0.25
_FAMILIAR_DECAY = 0.95
_FAMILIAR_AT_FIRST = 0.35
_FAMILIAR_LEAST = 0.03

LOG2 = tuple(log2(1 + i) for i in range(4097))
_LENGTH = tuple(LOG2[min(i, _MOST_LENGTH)] for i in range(4097))


def log2_1(count: int) -> float:
    """log2(1 + count), level from 4,096 on."""
    return LOG2[count if count < 4096 else 4096]


class Calibration:
    """`weights` are its priors. Of one request, or of all requests of a family one after the other."""

    def __init__(self, weights: Weights = WEIGHTS) -> None:
        self.weights = weights
        # Per kind: hits, expected hits, guesses; all decayed.
        self._counts: list[list[float]] = [[0.0, 0.0, 0.0] for _ in range(KINDS)]
        self._corrections = [0.0] * KINDS
        self._familiar: float = _FAMILIAR_AT_FIRST
        self._length_weights: list[float] = []

    def begin_answer(self) -> None:
        """A new answer begins: earlier ones count for part of what they did."""
        for kind, counts in enumerate(self._counts):
            counts[:] = [count * _KEPT for count in counts]
            self._correct(kind)
        self._familiar = _FAMILIAR_AT_FIRST  # of one answer's copying, nothing follows for the next
        self._length_weights.clear()

    def go_by(self, weights: Weights) -> None:
        """`weights` hold from here on; what was learned stays."""
        self.weights = weights
        self._length_weights.clear()

    # ---- evidence

    def context(self, length: int, seen: int, outdone_by: int, assumed: int = 0) -> float:
        """Log-odds of what followed a context of `length` tokens, before its count share.

        The last `assumed` of them are guesses that came, if the walk gets this far at all.
        """
        weights = self.weights
        return (
            weights.anything
            + weights.reached * (assumed > 0)
            + self._length_weight(assumed) * _LENGTH[length if length < 4096 else 4096]
            + weights.seen * LOG2[seen if seen < _MOST_SEEN else _MOST_SEEN]
            + weights.outdone * log2_1(outdone_by)
        )

    def share(self, count: int, seen: int) -> float:
        """What it adds that this guess was `count` of the `seen` followers."""
        return self.weights.share * log((count + 0.3) / (max(0, seen - count) + 0.3))

    def unseen(self, longest: int, assumed: int = 0) -> float:
        """Log-odds of what never followed any suffix, the longest of which has `longest` tokens."""
        weights = self.weights
        return (
            weights.anything
            + weights.reached * (assumed > 0)
            + weights.unseen
            + weights.unseen_outdone * log2_1(longest)
        )

    def probability(self, log_odds: float, kind: int) -> float:
        """The estimate, with this kind's correction."""
        return sigmoid(log_odds + self._corrections[kind])

    # ---- learning

    def learn(self, log_odds: float, kind: int, came: bool) -> None:
        """A guess of `kind` with these (uncorrected) log-odds came or did not."""
        counts = self._counts[kind]
        counts[0] = counts[0] * _DECAY + came
        counts[1] = counts[1] * _DECAY + sigmoid(log_odds)
        counts[2] = counts[2] * _DECAY + 1.0
        self._correct(kind)

    def learn_familiarity(self, right: bool) -> None:
        """Whether the newest continuation of the longest match was what came."""
        self._familiar += (right - self._familiar) * (1.0 - _FAMILIAR_DECAY)
        self._length_weights.clear()

    @property
    def familiarity(self) -> float:
        return self._familiar

    # ---- state

    def state(self) -> NDArray[np.float64]:
        """A copy of all that was learned, [KINDS · 3 + 1]."""
        return np.array([*(value for counts in self._counts for value in counts), self._familiar])

    def restore(self, state: Sequence[float] | NDArray[np.float64]) -> None:
        """Go on from a `state`. Raises ValueError, and changes nothing, if it is not one."""
        values = np.asarray(state, dtype=np.float64)
        if values.shape != (KINDS * 3 + 1,) or not np.isfinite(values).all():
            raise ValueError(f"{values.shape} is not a calibration's state")
        counts = values[:-1].reshape(KINDS, 3)
        possible = (counts >= 0).all() and (counts[:, :2] <= counts[:, 2:] + 1e-9).all()
        if not possible or not 0 <= values[-1] <= 1:
            raise ValueError("a calibration's counts cannot be these")
        self._counts = counts.tolist()
        self._familiar = float(values[-1])
        self._length_weights.clear()
        for kind in range(KINDS):
            self._correct(kind)

    def _correct(self, kind: int) -> None:
        hits, expected, guesses = self._counts[kind]
        if guesses <= 0:
            self._corrections[kind] = 0.0
            return
        prior_hits = _STRENGTH * expected / guesses + _LEAST
        prior_misses = _STRENGTH * (1.0 - expected / guesses) + _LEAST
        misses, expected_misses = guesses - hits, max(0.0, guesses - expected)
        self._corrections[kind] = log((hits + prior_hits) / (expected + prior_hits)) - log(
            (misses + prior_misses) / (expected_misses + prior_misses)
        )

    def _length_weight(self, assumed: int) -> float:
        """The weight of a match's length where so many guesses have come right in a row."""
        known = self._length_weights
        while len(known) <= assumed:
            familiar = 1.0 - (1.0 - self._familiar) * _FAMILIAR_DECAY ** len(known)
            share = min(1.0 - _FAMILIAR_LEAST, max(_FAMILIAR_LEAST, familiar))
            known.append(self.weights.length + self.weights.familiar * log(share / (1.0 - share)))
        return known[assumed]


def kind_of(length: int, threaded: bool) -> int:
    """The kind of a guess seen after a context of `length` tokens; 0 if it was never seen."""
    # Classes: unseen; 1 and 2; 3 … 6; 7 … 14; 15 … 30; longer.
    match_class = 0 if length <= 0 else min(_CLASSES - 1, max(1, (length + 1).bit_length() - 1))
    return 2 * match_class + threaded


def logit(probability: float) -> float:
    """The log-odds of a probability strictly between 0 and 1."""
    return log(probability / (1.0 - probability))


def sigmoid(log_odds: float) -> float:
    """The probability that these log-odds stand for."""
    return 1.0 / (1.0 + exp(-log_odds)) if log_odds > -700.0 else 0.0
