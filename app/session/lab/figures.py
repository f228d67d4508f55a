"""What the Lab's charts show, computed from the results of a sweep. Pure.

Medians are of all measured pairs of a drafter on a class. Nothing is made up for what was not
measured: it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from statistics import median

from msgspec import Struct

from core.events.sweep import SweepPair, SweepResults

_LEAST_TESTED = 3


class Speed(Struct, frozen=True):
    """A drafter on a class against plain decoding: the median ratio, and the least and the most."""

    drafter: str
    kind: str
    ratio: float
    least: float
    most: float
    pairs: int


class ChartMark(Struct, frozen=True):
    """One drafted answer: whether it is the plain one."""

    prompt: int
    number: int
    pair: SweepPair


class Parity(Struct, frozen=True):
    """All answers of a drafter on a class, by prompt and pair."""

    drafter: str
    kind: str
    marks: tuple[ChartMark, ...]


class Curve(Struct, frozen=True):
    """Values by number (a place in the draft, a turn), from 1 on. `plain`: no drafter's."""

    name: str
    points: tuple[tuple[int, float], ...]
    plain: bool = False


class Keep(Struct, frozen=True):
    """A share of the prompt: seconds to the first token, and agreement with reading everything (None:
    not measured). `as_asked` is False where another reading ran than was asked for."""

    keep_pct: float
    ttft_s: float
    agreement: float | None
    as_asked: bool = True


def drafters(results: SweepResults) -> list[str]:
    """In the order of the results."""
    return _unique([*(cell.drafter for cell in results.cells), *(turn.drafter for turn in results.turns)])


def kinds(results: SweepResults) -> list[str]:
    """The classes of single prompts, in the order of the results."""
    return _unique(cell.kind for cell in results.cells)


def speeds(results: SweepResults) -> list[Speed]:
    """Every drafter on every class of which there are speeds."""
    found = []
    for drafter in drafters(results):
        for kind in kinds(results):
            ratios = [pair.ratio for pair in _pairs(results, drafter, kind) if pair.ratio]
            if ratios:
                found.append(Speed(drafter, kind, median(ratios), min(ratios), max(ratios), len(ratios)))
    return found


def plain_speed(results: SweepResults) -> float:
    """The median of plain decoding, tokens a second; 0 if nobody measured it."""
    held = [
        pair.plain_tokens_per_s for cell in results.cells for pair in cell.pairs if pair.plain_tokens_per_s
    ]
    return median(held) if held else 0.0


def parity(results: SweepResults) -> list[Parity]:
    """Every drafter on every class."""
    found = []
    for kind in kinds(results):
        for drafter in drafters(results):
            marks = tuple(
                ChartMark(cell.prompt, number, pair)
                for cell in results.cells
                if (cell.drafter, cell.kind) == (drafter, kind)
                for number, pair in enumerate(cell.pairs, 1)
            )
            if marks:
                found.append(Parity(drafter, kind, marks))
    return found


def places(results: SweepResults) -> list[Curve]:
    """For each drafter the share accepted at each place of the draft, over all classes.

    A place that was hardly ever tested says nothing: the curve ends before it.
    """
    found = []
    for drafter in drafters(results):
        tested: dict[int, int] = {}
        accepted: dict[int, int] = {}
        for cell in results.cells:
            if cell.drafter == drafter:
                for place, stat in enumerate(cell.positions, 1):
                    tested[place] = tested.get(place, 0) + stat.tested
                    accepted[place] = accepted.get(place, 0) + stat.accepted
        told = takewhile(lambda item: item[1] >= _LEAST_TESTED, sorted(tested.items()))
        points = tuple((place, accepted[place] / count) for place, count in told)
        if points:
            found.append(Curve(drafter, points))
    return found


def turns(results: SweepResults) -> list[Curve]:
    """For each drafter its speed over the turns of the conversations, and plain decoding's."""
    found = [
        Curve(
            drafter,
            _by_turn((turn.turn, turn.tokens_per_s) for turn in results.turns if turn.drafter == drafter),
        )
        for drafter in _unique(turn.drafter for turn in results.turns)
    ]
    if found:
        plain = _by_turn((turn.turn, turn.plain_tokens_per_s) for turn in results.turns)
        found.append(Curve("", plain, plain=True))
    return found


def keeps(results: SweepResults) -> list[Keep]:
    """From the smallest share on; reading everything agrees with itself."""
    agreements = {likeness.keep_pct: likeness.agreement for likeness in results.likenesses}
    times: dict[float, list[float]] = {}
    as_asked: dict[float, bool] = {}
    for reading in results.readings:
        times.setdefault(reading.keep_pct, []).append(reading.ttft_s)
        asked = reading.keep_pct >= 100.0 or reading.ran == "sparse"
        as_asked[reading.keep_pct] = as_asked.get(reading.keep_pct, True) and asked
    for keep_pct in agreements:
        times.setdefault(keep_pct, [])
    return [
        Keep(
            keep_pct,
            median(held) if held else 0.0,
            1.0 if keep_pct >= 100.0 else agreements.get(keep_pct),
            as_asked.get(keep_pct, True),
        )
        for keep_pct, held in sorted(times.items())
    ]


def equal_of(results: SweepResults) -> tuple[int, int]:
    """How many drafted answers are the plain ones, and of how many."""
    pairs = [pair for cell in results.cells for pair in cell.pairs]
    return sum(pair.equal for pair in pairs), len(pairs)


def common_start(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    ends = (at for at, (a, b) in enumerate(zip(one, other)) if a != b)
    return next(ends, min(len(one), len(other)))


def _pairs(results: SweepResults, drafter: str, kind: str) -> list[SweepPair]:
    return [
        pair for cell in results.cells if (cell.drafter, cell.kind) == (drafter, kind) for pair in cell.pairs
    ]


def _by_turn(values: Iterable[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    held: dict[int, list[float]] = {}
    for turn, value in values:
        held.setdefault(turn, []).append(value)
    return tuple((turn, median(each)) for turn, each in sorted(held.items()))


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
