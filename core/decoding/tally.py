"""Tally: counts one answer's steps and turns them into `Stats` and live `Gauges` figures."""

from __future__ import annotations

import statistics
from collections import deque

from core.decoding.loop import Step
from core.events import PositionStat

_LIVE_WINDOW_S = 2.0


class Tally:
    """Times are seconds since the request was taken up, given by the caller."""

    def __init__(self) -> None:
        self.tokens = self.accepted = self.bonus = self.normal = 0
        self.drafted = self.tested = self.steps = self.rechecked = self.forced = 0
        self.first_s = self.last_s = 0.0
        self._first_step_tokens = 0
        self._positions: list[list[int]] = []
        self._draft_us: list[float] = []
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, step: Step, now_s: float) -> None:
        """Count `step`, which was done at `now_s`."""
        if self.steps == 0:
            self.first_s, self._first_step_tokens = now_s, len(step.tokens)
        self.last_s = now_s
        self.steps += 1
        self.tokens += len(step.tokens)
        self.accepted += step.accepted
        self.drafted += step.drafted
        self.tested += step.tested
        self.rechecked += step.rechecked
        self.forced += step.forced
        if step.drafted:
            self.bonus += 1
        else:
            self.normal += 1
        for index in range(step.tested):
            if index == len(self._positions):
                self._positions.append([0, 0])
            self._positions[index][0] += 1
            self._positions[index][1] += index < step.accepted
        self._draft_us.append(step.draft_s * 1e6)
        self._recent.append((now_s, len(step.tokens)))
        while now_s - self._recent[0][0] > _LIVE_WINDOW_S and len(self._recent) > 1:
            self._recent.popleft()

    @property
    def positions(self) -> tuple[PositionStat, ...]:
        return tuple(PositionStat(tested, accepted) for tested, accepted in self._positions)

    @property
    def acceptance(self) -> float:
        return self.accepted / self.tested if self.tested else 0.0

    @property
    def mean_per_step(self) -> float:
        return self.tokens / self.steps if self.steps else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Over the whole answer: tokens after the first step, by the time since it."""
        elapsed = self.last_s - self.first_s
        return (self.tokens - self._first_step_tokens) / elapsed if elapsed > 0 else 0.0

    @property
    def live_tokens_per_s(self) -> float:
        """Over the last two seconds."""
        elapsed = self._recent[-1][0] - self._recent[0][0] if self._recent else 0.0
        return sum(n for _, n in list(self._recent)[1:]) / elapsed if elapsed > 0 else 0.0

    @property
    def draft_us_median(self) -> float:
        return statistics.median(self._draft_us) if self._draft_us else 0.0

    @property
    def draft_us_p99(self) -> float:
        ordered = sorted(self._draft_us)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0
