"""Record: all results of a sweep so far, written to its folder and said on its stream as they come.

A folder that holds a sweep of the same conditions that was stopped is gone on with: what it has is said
again, not measured again. One that ended, or is of other conditions, is written over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.bench.sweep.sweep_report import write_report
from core.errors import RequestError
from core.events.sweep import (
    SweepCell,
    SweepEnded,
    SweepEvent,
    SweepLikeness,
    SweepProgress,
    SweepReading,
    SweepResults,
    SweepStarted,
    SweepTurn,
)
from core.system.progress_line import ProgressLine

Result = SweepCell | SweepTurn | SweepReading | SweepLikeness
_LISTS: dict[type[Struct], str] = {
    SweepCell: "cells",
    SweepTurn: "turns",
    SweepReading: "readings",
    SweepLikeness: "likenesses",
}

# Two results are of one sweep only if these are the same.
_CONDITIONS = ("model", "machine", "drafters", "exactness", "repeats", "max_tokens", "reference", "asked")


class Record:
    """`begin()` first. Without `stream` progress is said on stderr, unless `quiet`."""

    def __init__(self, folder: Path, stream: BinaryIO | None = None, *, quiet: bool = False) -> None:
        self._folder = folder
        self._stream = stream
        # Whoever listens is told of the progress there.
        self._line = ProgressLine(quiet or stream is not None)
        self._results: SweepResults | None = None
        self._earlier_results: SweepResults | None = None  # as `begin` found or made them
        self._began = 0.0
        self._doing = ""
        self._skipped = 0
        self._answers = self._readings = 0
        self._answered = self._read = 0
        self._answered_s = self._read_s = 0.0

    @property
    def results(self) -> SweepResults:
        """As they stand."""
        assert self._results is not None
        return self._results

    def begin(self, results: SweepResults, answers: int, readings: int) -> None:
        """What is measured, and how much of it. Raises `RequestError` if it cannot be written."""
        earlier = self._earlier(results)
        self._results = self._earlier_results = earlier or results
        self._answers, self._readings = answers, readings
        self._began = time.perf_counter()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write()
        except OSError as error:
            raise RequestError(
                f"{self._folder} cannot be written: {error.strerror}.", "Choose another --out."
            ) from None
        self.say(SweepStarted(results.model, results.machine, answers, readings, results.noise))
        for result in self._held():
            self.say(result)
        self._progress()

    @property
    def goes_on(self) -> bool:
        """Whether an earlier run left some of it."""
        return any(True for _ in self._held())

    def has(self, result: type[Result], **of: object) -> bool:
        """Whether there is such a result already: one whose fields `of` names have these values."""
        return any(
            type(held) is result and all(getattr(held, name) == value for name, value in of.items())
            for held in self._held()
        )

    def say(self, event: SweepEvent) -> None:
        """One line, if anyone listens."""
        if self._stream is not None:
            line = memoryview(msgspec.json.encode(event) + b"\n")
            while line:
                line = line[self._stream.write(line) or 0 :]

    def skip(self, answers: int = 0, readings: int = 0) -> None:
        """So many are there from an earlier run."""
        self._answers -= answers
        self._readings -= readings
        self._skipped += answers + readings
        self._progress()

    def doing(self, what: str) -> None:
        """What comes next."""
        self._doing = what
        self._progress()

    def answered(self, count: int, took_s: float) -> None:
        """So many answers were given."""
        self._answered += count
        self._answered_s += took_s
        self._progress()

    def read(self, took_s: float) -> None:
        """One long prompt was read."""
        self._read += 1
        self._read_s += took_s
        self._progress()

    def add(self, result: Result) -> None:
        """One more result: written, then said."""
        name = _LISTS[type(result)]
        self._results = replace(self.results, **{name: (*getattr(self.results, name), result)})
        self._write()
        self.say(result)

    def end(self) -> None:
        """All is measured."""
        self._results = replace(self.results, ended=True)
        self._write()
        self._line.clear()
        self.say(SweepEnded(str(self._folder), self.results.took_s))

    def _held(self) -> Iterator[Result]:
        for name in _LISTS.values():
            yield from getattr(self.results, name)

    def _earlier(self, results: SweepResults) -> SweepResults | None:
        """What was stopped in this folder under the same conditions."""
        try:
            found = msgspec.json.decode((self._folder / "results.json").read_bytes(), type=SweepResults)
        except (OSError, msgspec.DecodeError):
            return None
        same = all(getattr(found, name) == getattr(results, name) for name in _CONDITIONS)
        return found if same and not found.ended else None

    def _progress(self) -> None:
        done = self._skipped + self._answered + self._read
        total = self._skipped + self._answers + self._readings
        self._line.say(f"{done} of {total}: {self._doing}")
        self.say(SweepProgress(done, total, self._doing, self._left_s()))

    def _left_s(self) -> float | None:
        """From the means so far; None while there is a kind of run that none was measured of."""
        left = 0.0
        for done, all_of_it, took_s in (
            (self._answered, self._answers, self._answered_s),
            (self._read, self._readings, self._read_s),
        ):
            if all_of_it and not done:
                return None
            left += (all_of_it - done) * took_s / done if done else 0.0
        return left

    def _write(self) -> None:
        """Whole or not at all: whoever reads it meanwhile sees the one before."""
        earlier = self._earlier_results
        assert earlier is not None
        self._results = replace(
            self.results,
            took_s=earlier.took_s + time.perf_counter() - self._began,
            answers=earlier.answers + self._answered,
            seconds_an_answer=self._answered_s / self._answered
            if self._answered
            else earlier.seconds_an_answer,
            seconds_a_reading=self._read_s / self._read if self._read else earlier.seconds_a_reading,
        )
        for name, content in (
            ("results.json", msgspec.json.format(msgspec.json.encode(self._results))),
            ("report.md", write_report(self._results).encode()),
        ):
            part = self._folder / f"{name}.part"
            part.write_bytes(content)
            os.replace(part, self._folder / name)
