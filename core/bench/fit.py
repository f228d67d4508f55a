"""`draftlight bench fit`: the weights of `auto`'s evidence, from recorded answers.

Question: what is each piece of evidence worth? A guess's log-odds are linear in the weights
(`core.drafting.evidence`), so if each weight stands for a unit vector, the very code that weighs a
guess returns its features. They go, with whether the guess came, into one logistic regression
with a ridge penalty, solved by Newton's method. Most guesses are hopeless and never drafted, and
what tells them apart from each other is not what tells good ones apart: so it is done twice, the
second time with the plausible ones alone.

Answers are split by their number: fitted on all but every `HELD_OUT`th, and the log loss of both
parts is reported. Prints the weights as they are written in `core.drafting.calibration`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.calibration import Calibration, Weights
from core.drafting.evidence import Evidence
from core.drafting.gram_table import GramTable
from core.drafting.learned import Learned
from core.rehearsal.streams import Stream, read_streams

HELD_OUT = 5
# In recorded answers 0.02, 0.05 and 0.1 gave the same speed; the higher, the better the confidences.
PLAUSIBLE = 0.1
_CAPACITY_TOKENS = 1 << 15
_RIDGE = 1.0
_STEPS = 25

Vector = NDArray[np.float64]


class Guesses(NamedTuple):
    """`features` float64 [n, weights], `came` and `answer` [n]: what was guessed, and in which answer."""

    features: Vector
    came: Vector
    answer: NDArray[np.int64]


class Fitted(Struct, frozen=True):
    """Log losses are a guess, of the answers that were fitted and of those that were not."""

    weights: Weights
    guesses: int
    loss: float
    held_out_loss: float


def run(options: argparse.Namespace) -> int:
    """Fit and print; writes `weights.json`."""
    from core.bench.replay import learned_table

    streams = read_streams(options.streams)
    fitted = fit(collect(streams, learned_table(options.learned)))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "weights.json").write_bytes(msgspec.json.format(msgspec.json.encode(fitted)))
    print(msgspec.json.format(msgspec.json.encode(fitted)).decode())
    return 0


def collect(streams: Sequence[Stream], table: GramTable | None = None) -> Guesses:
    """Every guess at every place of every answer."""
    names = list(_leaves(Weights()))
    units = _from_leaves(Weights(), iter(np.eye(len(names))))
    rows: list[Vector] = []
    came: list[bool] = []
    answers: list[int] = []
    for number, stream in enumerate(streams):
        learned = Learned(table) if table is not None else None
        evidence = Evidence(_CAPACITY_TOKENS, Calibration(cast(Weights, units)), learned)
        evidence.read(stream.prompt)
        for place, token in enumerate(stream.out):
            odds, _ = evidence.weighed(evidence.spot())
            for guess, features in odds.items():
                rows.append(np.asarray(features))
                came.append(guess == token)
                answers.append(number)
            # No guesses: what is learned on the way is a correction of the weights, not a feature.
            evidence.hear(token, ())
            if stream.tops:
                evidence.hear_top([stream.tops[place]])
    return Guesses(np.array(rows), np.array(came, dtype=np.float64), np.array(answers))


def fit(guesses: Guesses) -> Fitted:
    """The weights that make what came likeliest."""
    kept = guesses.answer % HELD_OUT != HELD_OUT - 1
    everything = newton(guesses.features[kept], guesses.came[kept])
    plausible = kept & (_sigmoid(guesses.features @ everything) > PLAUSIBLE)
    solved = newton(guesses.features[plausible], guesses.came[plausible])
    loss, held_out_loss = (
        log_loss(guesses.features[part] @ solved, guesses.came[part]) for part in (kept, ~kept)
    )
    weights = _from_leaves(Weights(), iter(round(float(value), 3) for value in solved))
    return Fitted(cast(Weights, weights), len(guesses.came), loss, held_out_loss)


def newton(features: Vector, came: Vector) -> Vector:
    """Logistic regression, ridge 1: [weights]. A feature that is always 0 gets 0."""
    solved = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(len(solved))
    for _ in range(_STEPS):
        likely = _sigmoid(features @ solved)
        curve = likely * (1 - likely) + 1e-6
        hessian = (features * curve[:, None]).T @ features + ridge
        change = np.linalg.solve(hessian, features.T @ (came - likely) - _RIDGE * solved)
        solved += change
        if np.abs(change).max() < 1e-6:
            break
    return solved


def log_loss(log_odds: Vector, came: Vector) -> float:
    """Mean −log of the probability of what happened."""
    likely = np.clip(_sigmoid(log_odds), 1e-6, 1 - 1e-6)
    return float(-(came * np.log(likely) + (1 - came) * np.log(1 - likely)).mean()) if len(came) else 0.0


def _sigmoid(log_odds: Vector) -> Vector:
    return 1 / (1 + np.exp(-np.clip(log_odds, -50, 50)))


def _leaves(value: object) -> Iterator[object]:
    """All numbers in a struct of numbers and tuples of numbers, in order."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _leaves(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _from_leaves(shape: object, leaves: Iterable[object]) -> Any:
    """The same struct with other leaves."""
    source = iter(leaves)

    def build(value: object) -> Any:
        if isinstance(value, Struct):
            return type(value)(*(build(getattr(value, name)) for name in value.__struct_fields__))
        if isinstance(value, tuple):
            return tuple(build(item) for item in value)
        return next(source)

    return build(shape)
