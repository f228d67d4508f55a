"""ReadingState: what the reading card of one answer shows, and since when.

It is kept with the answer, and events reach it whether or not its chat is shown, so that a card which is made
again shows what it would have shown. Times are seconds of `now_s`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from msgspec.structs import replace

from app.chat.reading_map import ReadingFacts, facts_of, reading_rate
from core.events import PrefillProgress, ReadingMap

Label = tuple[float, str]  # position on the map's strip from 0 to 1, text


def now_s() -> float:
    """The clock of running answers, in seconds."""
    return time.monotonic()


@dataclass
class ReadingState:
    """The last report of a prefill, its map, and the times of both."""

    progress: PrefillProgress | None = None
    reading: ReadingMap | None = None
    labels: tuple[Label, ...] = ()
    _rate: float | None = None  # tokens per second
    _scoring_since_s: float | None = None
    _scored_s: float | None = None
    _reported_s: float = 0.0
    _interval_s: float = 0.0  # between the last two reports
    _least_left_s: float = math.inf  # shown so far of the same work

    def show_progress(self, progress: PrefillProgress, at_s: float) -> None:
        """Take a report that arrived at `at_s`."""
        if progress.phase == "scoring" and self._scoring_since_s is None:
            self._scoring_since_s = at_s
        self._left_s(at_s)  # what was shown until now, by a card or not
        if self.progress is None or _work_of(progress) != _work_of(self.progress):
            self._least_left_s = math.inf
        self._interval_s = at_s - self._reported_s if self.progress is not None else 0.0
        self.progress, self._reported_s = progress, at_s
        self._rate = reading_rate(progress) or self._rate

    def show_map(self, reading: ReadingMap, labels: tuple[Label, ...], at_s: float) -> None:
        """Take the map that arrived at `at_s`."""
        if self._scoring_since_s is not None and self._scored_s is None:
            self._scored_s = at_s - self._scoring_since_s
        self.reading, self.labels = reading, labels

    def facts(self, at_s: float) -> ReadingFacts | None:
        """The card's texts at that time; None before the first report."""
        if self.progress is None:
            return None
        progress = replace(self.progress, seconds_left=self._left_s(at_s))
        return facts_of(progress, self.reading, self._scored_s, self._rate)

    def _left_s(self, at_s: float) -> float | None:
        """Seconds left: the last report's, minus the time since then up to one report interval.

        They never rise during the same work: a forecast that was too short stands still until it is true.
        """
        left_s = self.progress.seconds_left if self.progress else None
        if left_s is None:
            return None
        passed_s = min(at_s - self._reported_s, self._interval_s)
        self._least_left_s = min(self._least_left_s, max(0.0, left_s - max(0.0, passed_s)))
        return self._least_left_s


def _work_of(progress: PrefillProgress) -> tuple[str, int, int]:
    """What the remaining time is about; a person sees where it changes."""
    return progress.phase, progress.total_tokens, progress.kept_tokens
