"""Fits the weights of the `auto` drafter's evidence to recorded answers.

    python -m tests.tuning fit --streams F.jsonl.gz --out DIR

The log-odds of a guess are linear in the weights (`core.drafting.evidence`). With a unit vector in
place of each weight, the same code returns the features of a guess. Features and outcomes go into a logistic
regression with a ridge penalty, solved by Newton's method: once with all guesses, then with the plausible
ones only, because most guesses are hopeless and are never drafted.

Two parts are fitted separately. `Weights.reached` is fitted to guesses behind a draft: there is no ranking of
the verifier at those positions, and a walk reaches them only where the text is easy. The weights of the
n-gram table are fitted with one answer in four already in the table and a tenth of its slots filled with
unrelated tokens; that share is an assumption, and a higher one only makes the first guesses bolder.

Every `--held-out`th answer is not fitted; the log loss of both parts is reported. The output has the format
of `core.drafting.calibration`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.calibration import REMEMBERED_KIND, Calibration, Weights
from core.drafting.evidence import Evidence
from core.drafting.gram_table import GramTable
from core.drafting.ngram_mod import NgramTable, TableWriter
from core.drafting.table_evidence import Learned, Remembered
from core.settings.drafting import NgramMod
from core.system.terminal import ProgressLine
from tests.tuning.replay import learned_table
from tests.tuning.streams import Stream, read_streams

# 0.02, 0.05 and 0.1 gave the same speed; a higher value gives better confidences.
PLAUSIBLE = 0.1
# Minimum probability of every guess before a position behind a draft. With 0.1 to 0.5 the errors of the
# confidences differed by less than 0.01.
DRAFTED = 0.2
_AHEAD_TOKENS = 4
_SAID_BEFORE = 0.25
_FULL = 0.1
_REPEATS = 4
_SLOTS = 1 << 18
# Ids below this are unrelated tokens.
_OTHERS = 1 << 15
_CAPACITY_TOKENS = 1 << 15
_RIDGE = 1.0
_STEPS = 25

Vector = NDArray[np.float64]


class Guesses(NamedTuple):
    """`features` float64 [n, weights]; `came` [n], 1 for correct guesses; `answer` [n], the stream index."""

    features: Vector
    came: Vector
    answer: NDArray[np.int64]


class Fitted(Struct, frozen=True):
    """Weights, and the mean log loss per guess of fitted and of held-out answers."""

    weights: Weights
    guesses: int
    loss: float
    held_out_loss: float


def run(options: argparse.Namespace) -> int:
    """Fit, print and write `weights.json`."""
    streams = read_streams(options.streams)
    with ProgressLine(options.quiet) as line:
        fitted = fit(
            streams,
            learned_table(options.learned),
            options.held_out,
            lambda stage: line.say(f"{len(streams):,} answers: {stage}", now=True),
        )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "weights.json").write_bytes(msgspec.json.format(msgspec.json.encode(fitted)))
    print(msgspec.json.format(msgspec.json.encode(fitted)).decode())
    return 0


def collect(
    streams: Sequence[Stream],
    table: GramTable | None = None,
    behind: Vector | None = None,
    memory: NgramTable | None = None,
) -> Guesses:
    """All guesses at all positions of all answers.

    With weights `behind`: instead, the guesses behind a draft that a drafter with these weights would have
    made and that was accepted. With a `memory` (not changed): only the guesses in it.
    """
    rows: list[Vector] = []
    came: list[bool] = []
    answers: list[int] = []
    for number, stream in enumerate(streams):
        evidence = Evidence(
            _CAPACITY_TOKENS,
            Calibration(_UNITS),
            Learned(table) if table is not None else None,
            Remembered(memory.copy()) if memory is not None else None,
        )
        evidence.read(stream.prompt)
        for place, token in enumerate(stream.out):
            coming = stream.out[place : place + 1 + _AHEAD_TOKENS]
            for ahead, (odds, kinds) in enumerate(_along(evidence, coming, behind)):
                if memory is not None:
                    odds = {guess: odds[guess] for guess in odds if kinds[guess] >= REMEMBERED_KIND}
                if (behind is not None) == (ahead > 0):
                    rows += (np.asarray(features) for features in odds.values())
                    came += (guess == coming[ahead] for guess in odds)
                    answers += [number] * len(odds)
            # No guesses are passed, because online corrections of the weights are not features.
            evidence.observe(token, ())
            if stream.tops:
                evidence.observe_ranking([stream.tops[place]])
    features = np.array(rows).reshape(-1, len(_LEAVES))
    return Guesses(features, np.array(came, dtype=np.float64), np.array(answers, dtype=np.int64))


def _along(
    evidence: Evidence, coming: Sequence[int], weights: Vector | None
) -> Iterator[tuple[dict[int, Any], dict[int, int]]]:
    """Guesses at the end of the text, then behind each token of `coming` that `weights` would draft."""
    position = evidence.position()
    for token in coming:
        odds, kinds = evidence.log_odds_of_guesses(position)
        yield odds, kinds
        if weights is None or token not in odds or _sigmoid(np.asarray(odds[token]) @ weights) < DRAFTED:
            return
        position = evidence.after(position, token)


def fit(
    streams: Sequence[Stream],
    table: GramTable | None,
    held_out: int,
    doing: Callable[[str], object] = lambda stage: None,
) -> Fitted:
    """Maximum-likelihood weights. `doing` is called with the name of each stage; they take minutes."""
    doing("collecting guesses")
    guesses = collect(streams, table)
    kept = guesses.answer % held_out != held_out - 1
    doing("fitting all guesses, then the plausible ones")
    everything = newton(guesses.features[kept], guesses.came[kept])
    plausible = kept & (_sigmoid(guesses.features @ everything) > PLAUSIBLE)
    solved = newton(guesses.features[plausible], guesses.came[plausible])
    loss, held_out_loss = (
        log_loss(guesses.features[part] @ solved, guesses.came[part]) for part in (kept, ~kept)
    )
    doing("fitting guesses behind a draft")
    solved[_REACHED] += _reached(collect(streams, table, solved), solved, held_out)
    kept_streams = [each for number, each in enumerate(streams) if number % held_out != held_out - 1]
    doing("fitting what the n-gram table remembers")
    solved[_REMEMBERED] = _remembered(kept_streams, table, solved)
    weights = _from_leaves(Weights(), iter(round(float(value), 3) for value in solved))
    return Fitted(cast(Weights, weights), len(guesses.came), loss, held_out_loss)


def _reached(guesses: Guesses, solved: Vector, held_out: int) -> float:
    """The offset of the log-odds of plausible guesses behind a draft."""
    log_odds = guesses.features @ solved
    used = (guesses.answer % held_out != held_out - 1) & (_sigmoid(log_odds) > PLAUSIBLE)
    return float(newton(guesses.features[used][:, [_REACHED]], guesses.came[used], log_odds[used])[0])


def _remembered(streams: Sequence[Stream], table: GramTable | None, solved: Vector) -> Vector:
    """The weights of the n-gram table's guesses."""
    found = [collect(streams, table, memory=_memory(streams, seed)) for seed in range(_REPEATS)]
    features = np.concatenate([each.features for each in found])
    came = np.concatenate([each.came for each in found])
    return newton(features[:, _REMEMBERED], came, features @ solved)


def _memory(streams: Sequence[Stream], seed: int) -> NgramTable:
    """An n-gram table with some of the answers, and filled like a table in use."""
    rng, table = Random(seed), NgramTable(NgramMod().n, _SLOTS)
    for stream in streams:
        if rng.random() < _SAID_BEFORE:
            TableWriter(table).read([*stream.prompt[-2 * table.n :], *stream.out])
    while table.used < _FULL * table.slots:
        table.insert_all((rng.getrandbits(64), rng.randrange(_OTHERS)) for _ in range(1000))
    return table


def newton(features: Vector, came: Vector, known: Vector | float = 0.0) -> Vector:
    """Weights [n] of a logistic regression with ridge 1. A feature that is always 0 gets the weight 0.

    `known` log-odds are added to those of the weights.
    """
    solved = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(len(solved))
    for _ in range(_STEPS):
        likely = _sigmoid(known + features @ solved)
        curve = likely * (1 - likely) + 1e-6
        hessian = (features * curve[:, None]).T @ features + ridge
        change = np.linalg.solve(hessian, features.T @ (came - likely) - _RIDGE * solved)
        # A full step may overshoot if `known` is far off.
        while (
            _penalised(known + features @ (solved + change), came, solved + change)
            > _penalised(known + features @ solved, came, solved)
            and np.abs(change).max() > 1e-9
        ):
            change /= 2
        solved += change
        if np.abs(change).max() < 1e-6:
            break
    return solved


def _penalised(log_odds: Vector, came: Vector, weights: Vector) -> float:
    wrong = np.logaddexp(0, np.where(came > 0, -log_odds, log_odds))
    return float(wrong.sum() + _RIDGE / 2 * weights @ weights)


def log_loss(log_odds: Vector, came: Vector) -> float:
    """Mean negative log-likelihood of the outcomes."""
    likely = np.clip(_sigmoid(log_odds), 1e-6, 1 - 1e-6)
    return float(-(came * np.log(likely) + (1 - came) * np.log(1 - likely)).mean()) if len(came) else 0.0


def _sigmoid(log_odds: Vector) -> Vector:
    return 1 / (1 + np.exp(-np.clip(log_odds, -50, 50)))


def _leaves(value: object) -> Iterator[object]:
    """All numbers in nested structs and tuples, in order."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _leaves(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _from_leaves(shape: object, leaves: Iterable[object]) -> Any:
    """The same nested structs with other numbers."""
    source = iter(leaves)

    def build(value: object) -> Any:
        if isinstance(value, Struct):
            return type(value)(*(build(getattr(value, name)) for name in value.__struct_fields__))
        if isinstance(value, tuple):
            return tuple(build(item) for item in value)
        return next(source)

    return build(shape)


_LEAVES = list(_leaves(Weights()))
# Unit vectors in place of weights turn log-odds into features.
_UNITS = cast(Weights, _from_leaves(Weights(), iter(np.eye(len(_LEAVES)))))
_REACHED = Weights.__struct_fields__.index("reached")
# The last two pairs of leaves.
_REMEMBERED = slice(len(_LEAVES) - 4, len(_LEAVES))
