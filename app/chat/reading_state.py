"""ReadingState: the content of one answer's reading card, with times.

It is kept with the answer, and events reach it whether or not its chat is shown, so that a
recreated card shows the same. Times are seconds of `now_s`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from msgspec.structs import replace

from app.chat import strings
from app.chat.reading_map import ReadingFacts, facts_of
from core.events import PrefillProgress, ReadingMap

Label = tuple[float, str]  # position on the map's strip from 0 to 1, text


def now_s() -> float:
    """The clock of running answers, in seconds."""
    return time.monotonic()


@dataclass
class ReadingState:
    """The last report of a prefill, its map, and the times of both; and the images of the question."""

    progress: PrefillProgress | None = None
    reading: ReadingMap | None = None
    labels: tuple[Label, ...] = ()
    images: int = 0
    _scoring_since_s: float | None = None
    _scored_s: float | None = None

    def show_progress(self, progress: PrefillProgress, at_s: float) -> None:
        """Take a report that arrived at `at_s`."""
        if progress.phase == "scoring" and self._scoring_since_s is None:
            self._scoring_since_s = at_s
        self.progress = progress

    def show_map(self, reading: ReadingMap, labels: tuple[Label, ...], at_s: float) -> None:
        """Take the map that arrived at `at_s`."""
        if self._scoring_since_s is not None and self._scored_s is None:
            self._scored_s = at_s - self._scoring_since_s
        self.reading, self.labels = reading, labels

    def facts(self, at_s: float) -> ReadingFacts | None:
        """The card's texts at that time; None before the first report."""
        if self.progress is None:
            return None
        facts = facts_of(self.progress, self.reading, self._scored_s, at_s)
        return replace(facts, done=strings.with_images(facts.done, self.images)) if self.images else facts
