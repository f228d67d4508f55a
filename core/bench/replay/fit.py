"""`draftlight bench fit`: the weights of `auto`'s evidence, from recorded answers.

Question: what is each piece of evidence worth? A guess's log-odds are linear in the weights
(`core.drafting.evidence`), so if each weight stands for a unit vector, the very code that weighs a
guess returns its features. They go, with whether the guess came, into one logistic regression
with a ridge penalty, solved by Newton's method. Most guesses are hopeless and never drafted, and
what tells them apart from each other is not what tells good ones apart: so it is done twice, the
second time with the plausible ones alone.

Those are guesses at the end of the text. Behind guesses that are assumed to have come there is no
ranking of the verifier's, and a walk gets there only where the text is easy. What that is worth
(`Weights.reached`) is fitted last and by itself, on the places behind what would have been drafted.

What the n-gram table remembers is fitted by itself too: one answer in four was said in an earlier
chat, and a tenth of the table is somebody else's. How often people ask again is a guess; a higher
share only makes the first guesses bolder, which are corrected as they fail.

Answers are split by their number: fitted on all but every `--held-out`th, and the log loss of both
parts is reported. Prints the weights as they are written in `core.drafting.calibration`.
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
from core.drafting.ngram_table import NgramTable, TableWriter
from core.drafting.table_evidence import Learned, Remembered
from core.rehearsal.streams import Stream, read_streams
from core.settings.drafting import NgramMod
from core.system.progress_line import ProgressLine

# In recorded answers 0.02, 0.05 and 0.1 gave the same speed; the higher, the better the confidences.
PLAUSIBLE = 0.1
# A place lies behind a draft if each guess before it was so likely, and came. 0.1 … 0.5 gave errors
# of the confidences within 0.01 of each other.
DRAFTED = 0.2
_AHEAD_TOKENS = 4
_SAID_BEFORE = 0.25
_FULL = 0.1
_REPEATS = 4
_SLOTS = 1 << 18
# Ids below this stand for other people's words.
_OTHERS = 1 << 15
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
    from core.bench.replay.replay import learned_table

    streams = read_streams(options.streams)
    with ProgressLine(options.quiet) as line:
        fitted = fit(
            streams,
            learned_table(options.learned),
            options.held_out,
            lambda words: line.say(f"{len(streams):,} answers: {words}", now=True),
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
    """Every guess at every place of every answer.

    With weights `behind`, the guesses behind what a drafter with those weights would have drafted
    and seen accepted, instead of those at the end of the text. With a `memory`, which stays as it
    is, only the guesses that it has.
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
            # No guesses: what is learned on the way is a correction of the weights, not a feature.
            evidence.observe(token, ())
            if stream.tops:
                evidence.observe_ranking([stream.tops[place]])
    features = np.array(rows).reshape(-1, len(_LEAVES))
    return Guesses(features, np.array(came, dtype=np.float64), np.array(answers, dtype=np.int64))


def _along(
    evidence: Evidence, coming: Sequence[int], weights: Vector | None
) -> Iterator[tuple[dict[int, Any], dict[int, int]]]:
    """What is guessed at the end of the text, then behind each token of `coming` that `weights` draft."""
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
    doing: Callable[[str], object] = lambda words: None,
) -> Fitted:
    """The weights that make what came likeliest. `doing` is told of each step: they take minutes."""
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
    """What makes plausible guesses behind a draft as likely as they are."""
    log_odds = guesses.features @ solved
    used = (guesses.answer % held_out != held_out - 1) & (_sigmoid(log_odds) > PLAUSIBLE)
    return float(newton(guesses.features[used][:, [_REACHED]], guesses.came[used], log_odds[used])[0])


def _remembered(streams: Sequence[Stream], table: GramTable | None, solved: Vector) -> Vector:
    """What makes the n-gram table's guesses as likely as they are."""
    found = [collect(streams, table, memory=_memory(streams, seed)) for seed in range(_REPEATS)]
    features = np.concatenate([each.features for each in found])
    came = np.concatenate([each.came for each in found])
    return newton(features[:, _REMEMBERED], came, features @ solved)


def _memory(streams: Sequence[Stream], seed: int) -> NgramTable:
    """A table that knows some of the answers and holds as much else as a table in use."""
    rng, table = Random(seed), NgramTable(NgramMod().n, _SLOTS)
    for stream in streams:
        if rng.random() < _SAID_BEFORE:
            TableWriter(table).read([*stream.prompt[-2 * table.n :], *stream.out])
    while table.used < _FULL * table.slots:
        table.insert_all((rng.getrandbits(64), rng.randrange(_OTHERS)) for _ in range(1000))
    return table


def newton(features: Vector, came: Vector, known: Vector | float = 0.0) -> Vector:
    """Logistic regression, ridge 1: [weights]. A feature that is always 0 gets 0.

    `known` log-odds are added to what the weights make.
    """
    solved = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(len(solved))
    for _ in range(_STEPS):
        likely = _sigmoid(known + features @ solved)
        curve = likely * (1 - likely) + 1e-6
        hessian = (features * curve[:, None]).T @ features + ridge
        change = np.linalg.solve(hessian, features.T @ (came - likely) - _RIDGE * solved)
        # A whole step may be too long where `known` is far off.
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


_LEAVES = list(_leaves(Weights()))
# Each weight as a unit vector, so that log-odds become features.
_UNITS = cast(Weights, _from_leaves(Weights(), iter(np.eye(len(_LEAVES)))))
_REACHED = Weights.__struct_fields__.index("reached")
# The last two pairs of leaves.
_REMEMBERED = slice(len(_LEAVES) - 4, len(_LEAVES))
