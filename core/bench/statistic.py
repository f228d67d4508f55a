"""Paired comparisons: exact tests and medians, nothing that assumes a distribution."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from math import comb


def sign_test(wins: int, losses: int) -> float:
    """Two-sided exact p that a fair coin is at least this uneven; ties are left out beforehand.

    With wins and losses the discordant pairs of pass and fail, this is McNemar's exact test.
    """
    trials = wins + losses
    if not trials:
        return 1.0
    tail = sum(comb(trials, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2.0 * tail / 2.0**trials)


def compare(ours: Sequence[float], theirs: Sequence[float]) -> tuple[int, int]:
    """How many pairs are lower on our side, how many on theirs."""
    pairs = list(zip(ours, theirs, strict=True))
    return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)


def median(values: Iterable[float]) -> float:
    """The median; 0 of nothing."""
    held = list(values)
    return statistics.median(held) if held else 0.0


def speed_ratio(candidate_per_s: float, baseline_per_s: float) -> float:
    """How many times as fast the candidate was; 0 if there is nothing to compare.

    An answer that is all there after its first step, as one of one token is, has no decode time and
    the speed 0.
    """
    return candidate_per_s / baseline_per_s if candidate_per_s and baseline_per_s else 0.0


def known(values: Iterable[float]) -> list[float]:
    """Those that were measured: a speed or a ratio of speeds that nobody knows is 0."""
    return [value for value in values if value]


def quartiles(values: Iterable[float]) -> tuple[float, float]:
    """First and third quartile; the value itself where there is one, zeros of nothing."""
    held = sorted(values)
    if len(held) < 2:
        return (held[0], held[0]) if held else (0.0, 0.0)
    low, _, high = statistics.quantiles(held, n=4, method="inclusive")
    return low, high
