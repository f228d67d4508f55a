"""Paired comparisons by exact tests and medians, without assumptions about distributions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from math import comb


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p-value of the exact sign test; ties are excluded by the caller.

    For the discordant pairs of two pass/fail series this is McNemar's exact test.
    """
    trials = wins + losses
    if not trials:
        return 1.0
    tail = sum(comb(trials, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2.0 * tail / 2.0**trials)


def compare(ours: Sequence[float], theirs: Sequence[float]) -> tuple[int, int]:
    """The number of pairs where `ours` is lower, and where `theirs` is lower."""
    pairs = list(zip(ours, theirs, strict=True))
    return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)


def median(values: Iterable[float]) -> float:
    """The median; 0 for no values."""
    held = list(values)
    return statistics.median(held) if held else 0.0


def speed_ratio(candidate_per_s: float, baseline_per_s: float) -> float:
    """Candidate speed / baseline speed; 0 if either is 0, as for an answer that took a single step."""
    return candidate_per_s / baseline_per_s if candidate_per_s and baseline_per_s else 0.0


def known(values: Iterable[float]) -> list[float]:
    """The values that were measured; an unmeasured speed or ratio is 0."""
    return [value for value in values if value]


def quartiles(values: Iterable[float]) -> tuple[float, float]:
    """First and third quartile; the value itself if there is one, zeros for no values."""
    held = sorted(values)
    if len(held) < 2:
        return (held[0], held[0]) if held else (0.0, 0.0)
    low, _, high = statistics.quantiles(held, n=4, method="inclusive")
    return low, high
