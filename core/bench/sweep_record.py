"""Record of a sweep: results in its folder and events on its stream, written as they are measured.

A folder with an interrupted sweep of the same conditions is continued: its results are sent again, not
measured again. A complete sweep, or one of other conditions, is overwritten.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.bench.harness import accepted_by_position, change_lines, known, median, table
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
from core.system.terminal import ProgressLine

Result = SweepCell | SweepTurn | SweepReading | SweepLikeness
_LISTS: dict[type[Struct], str] = {
    SweepCell: "cells",
    SweepTurn: "turns",
    SweepReading: "readings",
    SweepLikeness: "likenesses",
}

# Results belong to the same sweep if these fields are equal.
_CONDITIONS = ("model", "machine", "drafters", "exactness", "repeats", "max_tokens", "reference", "asked")


class Record:
    """Call `begin()` first. Events go to `stream`; without one, progress goes to stderr unless `quiet`."""

    def __init__(self, folder: Path, stream: BinaryIO | None = None, *, quiet: bool = False) -> None:
        self._folder = folder
        self._stream = stream
        self._line = ProgressLine(quiet or stream is not None)
        self._results: SweepResults | None = None
        self._earlier_results: SweepResults | None = None  # at the time of `begin()`
        self._began = 0.0
        self._doing = ""
        self._skipped = 0
        self._answers = self._readings = 0
        self._answered = self._read = 0
        self._answered_s = self._read_s = 0.0

    @property
    def results(self) -> SweepResults:
        """The results measured until now."""
        assert self._results is not None
        return self._results

    def begin(self, results: SweepResults, answers: int, readings: int) -> None:
        """Start or continue a sweep with this many answers and long prompts.

        Raises `RequestError` if the folder cannot be written.
        """
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
        for result in self._all():
            self.say(result)
        self._progress()

    @property
    def resumed(self) -> bool:
        """Whether there are results already, of an interrupted run or of this one."""
        return any(True for _ in self._all())

    def has(self, result: type[Result], **of: object) -> bool:
        """Whether there is a result of this type whose fields have these values."""
        return any(
            type(each) is result and all(getattr(each, name) == value for name, value in of.items())
            for each in self._all()
        )

    def say(self, event: SweepEvent) -> None:
        """Send an event as one line of JSON, if there is a stream."""
        if self._stream is not None:
            line = memoryview(msgspec.json.encode(event) + b"\n")
            while line:
                line = line[self._stream.write(line) or 0 :]

    def skip(self, answers: int = 0, readings: int = 0) -> None:
        """Count answers and readings that an earlier run measured."""
        self._answers -= answers
        self._readings -= readings
        self._skipped += answers + readings
        self._progress()

    def doing(self, what: str) -> None:
        """Describe the current work, for progress events."""
        self._doing = what
        self._progress()

    def answered(self, count: int, took_s: float) -> None:
        """Count measured answers and their time."""
        self._answered += count
        self._answered_s += took_s
        self._progress()

    def read(self, took_s: float) -> None:
        """Count one long prompt and its time."""
        self._read += 1
        self._read_s += took_s
        self._progress()

    def add(self, result: Result) -> None:
        """Write a result, then send it."""
        name = _LISTS[type(result)]
        self._results = replace(self.results, **{name: (*getattr(self.results, name), result)})
        self._write()
        self.say(result)

    def end(self) -> None:
        """Mark the sweep as complete."""
        self._results = replace(self.results, ended=True)
        self._write()
        self._line.clear()
        self.say(SweepEnded(str(self._folder), self.results.took_s))

    def _all(self) -> Iterator[Result]:
        for name in _LISTS.values():
            yield from getattr(self.results, name)

    def _earlier(self, results: SweepResults) -> SweepResults | None:
        """Results of an interrupted sweep of the same conditions in this folder."""
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
        """Estimated seconds left, from the mean times; None until each kind of run was measured once."""
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
        """Replace both files atomically, because the window reads them meanwhile."""
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


# ---- report


def write_report(results: SweepResults) -> str:
    """The results as Markdown."""
    lines = [
        "# Sweep of the Lab",
        "",
        f"{results.model}, {results.repeats} pairs a prompt, at most {results.max_tokens} new tokens, greedy,"
        f" exactness “{results.exactness}”; plain is `mlx_lm.stream_generate` on the same model, in turn with"
        f" each drafted answer. {results.answers:,} answers in {results.took_s / 60:.1f} min"
        f"{'' if results.ended else ', not ended'}. Ratios are medians of pairs.",
        "",
        results.machine,
    ]
    return (
        "\n".join([*lines, *_speeds(results), *_parity(results), *_turns(results), *_keeps(results)]) + "\n"
    )


def _speeds(results: SweepResults) -> list[str]:
    if not results.cells:
        return []
    lines = [
        "",
        "## Speed",
        "",
        *table(
            "class | prompt | drafter | ratio | least | most | tok/s | plain tok/s | accepted | mean a step",
            map(_speed_row, results.cells),
        ),
        "",
        "## Accepted of tested, by place in the draft",
        "",
    ]
    for c in results.cells:
        places = accepted_by_position(c.positions)
        lines.append(f"- {c.kind} {c.prompt + 1}, {c.drafter}: {places or 'nothing was drafted'}")
    return [*lines, *change_lines((c.drafter, x) for c in results.cells for x in c.changes)]


def _speed_row(cell: SweepCell) -> str:
    ratios = known(pair.ratio for pair in cell.pairs)
    three = (median(ratios), min(ratios), max(ratios)) if ratios else None
    return (
        f"{cell.kind} | {cell.prompt + 1} | {cell.drafter}"
        f" | {' | '.join(f'{ratio:.2f}' for ratio in three) if three else 'nothing to compare | – | –'}"
        f" | {_speed(p.tokens_per_s for p in cell.pairs)}"
        f" | {_speed(p.plain_tokens_per_s for p in cell.pairs)}"
        f" | {cell.acceptance:.0%} | {cell.mean_per_step:.2f}"
    )


def _speed(tokens_per_s: Iterable[float]) -> str:
    found = known(tokens_per_s)
    return f"{median(found):.1f}" if found else "–"


def _parity(results: SweepResults) -> list[str]:
    pairs = [(c, number, p) for c in results.cells for number, p in enumerate(c.pairs, 1)]
    if not pairs:
        return []
    equal = sum(pair.equal for _, _, pair in pairs)
    lines = [
        "",
        "## Same text as plain decoding",
        "",
        f"{equal} of {len(pairs)} drafted answers are identical.",
    ]
    for c, number, pair in pairs:
        if pair.difference is not None:
            by = "one is longer" if pair.margin is None else f"margin {pair.margin:.2g} at width 1"
            close = (
                ", a close call"
                if pair.close_call
                else ", NOT a close call"
                if pair.margin is not None
                else ""
            )
            lines.append(
                f"- {c.kind} {c.prompt + 1}, {c.drafter}, pair {number}: from token {pair.difference + 1} on"
                f" ({by}{close})"
            )
    return lines


def _turns(results: SweepResults) -> list[str]:
    if not results.turns:
        return []
    rows = (
        f"{t.kind} | {t.drafter} | {t.turn} | {t.tokens_per_s:.1f} | {t.plain_tokens_per_s:.1f}"
        f" | {'equal' if t.equal else '**different**'}"
        for t in results.turns
    )
    columns = "conversation | drafter | turn | tok/s | plain tok/s | output"
    return ["", "## Turn by turn", "", *table(columns, rows)]


def _keeps(results: SweepResults) -> list[str]:
    lines: list[str] = []
    if results.readings:
        rows = (
            f"{r.scorer} | {r.keep_pct:g}% | {r.read_tokens:,} of {r.prompt_tokens:,} | {r.ttft_s:.2f}"
            f" | {r.plain_ttft_s:.2f} | {r.ran}{': ' + r.reason if r.ran == 'dense' and r.reason else ''}"
            for r in results.readings
        )
        columns = "scorer | keep | read | TTFT s | dense TTFT s (mlx-lm) | ran"
        lines += ["", "## Reading less", "", *table(columns, rows)]
    if results.likenesses:
        lines += [
            "",
            "The next token is the one that reading everything gives:",
            "",
            *table(
                "scorer | keep | agreement | documents | tokens",
                (
                    f"{s.scorer} | {s.keep_pct:g}% | {s.agreement:.1%} | {s.documents} | {s.tokens}"
                    for s in results.likenesses
                ),
            ),
        ]
    return lines
