"""Prefills of drawn machines, played to a `PrefillClock`: what displays show, and when."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from core.events import PrefillProgress, ReadingPace
from core.prefill.forecast import PrefillClock, PrefillDisplay, display

_BEGUN_S = 5000.0  # of the steady clock


class Machine(Struct, frozen=True):
    """Its real speeds. `load(time_s)`: how many times longer steps take then. `noise`: of the time of a step,
    which is `step_s` at most, and reads 512 tokens at most.
    """

    reading: ReadingPace
    scoring: ReadingPace = ReadingPace(0.0, 0.0)
    draft: ReadingPace = ReadingPace(0.0, 0.0)
    load: Callable[[float], float] = lambda time_s: 1.0
    noise: float = 0.25
    step_s: float = 0.5


class Work(Struct, frozen=True):
    """Tokens to score, to read after `reused` others, and that a draft model reads afterwards.

    `chosen`: of a sparse prefill, the tokens that are read in the end; None: `to_read`.
    """

    to_read: int
    to_score: int = 0
    to_draft: int = 0
    reused: int = 0
    chosen: int | None = None


def play(clock: PrefillClock, work: Work, machine: Machine, rng: random.Random) -> list[PrefillProgress]:
    """The events of the prefill, with the times at which they are sent."""
    events: list[PrefillProgress] = []
    time_s = 0.4  # template and tokenizer

    def sent(phase: str, done: float, total: float, kept: int = 0) -> None:
        shown = clock.forecast(time_s)
        events.append(
            PrefillProgress(
                "r",
                round(done),
                round(total),
                0,
                shown.seconds_left,
                phase,  # type: ignore[arg-type]
                kept_tokens=kept,
                time_s=time_s,
                fraction=shown.fraction,
                passages=9 if kept else 0,
                tokens_per_s=shown.tokens_per_s,
                at_s=_BEGUN_S + time_s,
            )
        )

    def steps(tokens: int, pace: ReadingPace, before: int) -> Iterator[int]:
        nonlocal time_s
        done = 0
        yield 0
        while done < tokens:
            fits = int(machine.step_s / pace.seconds(1, before + done))
            now = min(max(1, fits), 512, tokens - done)
            spread = max(0.2, rng.gauss(1.0, machine.noise))
            time_s += pace.seconds(now, before + done) * machine.load(time_s) * spread
            done += now
            yield done

    clock.expect_reading(work.to_read, work.reused)
    if work.to_score:
        for done in steps(work.to_score, machine.scoring, 0):
            clock.scored(work.to_score - done, done, time_s)
            sent("scoring", 0, work.to_score)
    tokens = work.to_read if work.chosen is None else work.chosen
    for done in steps(tokens, machine.reading, work.reused):
        clock.read(tokens - done, work.reused + done, time_s)
        sent("reading", done, tokens, tokens if work.to_score else 0)
    if work.to_draft:
        for done in steps(work.to_draft, machine.draft, 0):
            clock.read_by_draft(work.to_draft - done, done, time_s)
            sent("reading", tokens + done, tokens + work.to_draft)
    return events


def shown_at(events: Sequence[PrefillProgress], time_s: float) -> tuple[PrefillProgress, PrefillDisplay]:
    """The latest event at `time_s` of the prefill, and what displays show of it."""
    latest = events[max(0, bisect_right(events, time_s, key=lambda event: event.time_s) - 1)]
    return latest, display(latest, latest.at_s + time_s - latest.time_s)


def left_at(events: Sequence[PrefillProgress], time_s: float) -> float | None:
    """The predicted seconds left at `time_s`, counted on from the latest event; None if unknown."""
    latest, _ = shown_at(events, time_s)
    if latest.seconds_left is None or latest.time_s > time_s:
        return None
    return latest.seconds_left - (time_s - latest.time_s)


def ratio_at(events: Sequence[PrefillProgress], share: float = 0.5) -> float:
    """Predicted over real seconds that are left after `share` of the real total; infinite if unknown."""
    total_s = events[-1].time_s
    predicted_s = left_at(events, share * total_s)
    return float("inf") if predicted_s is None else predicted_s / ((1 - share) * total_s)


def longest_unchanged_s(events: Sequence[PrefillProgress], every_s: float = 0.25) -> float:
    """How long the same words were shown at most while work was left, from the first event on."""
    time_s = since_s = events[0].time_s
    longest_s, words = 0.0, ""
    while time_s < events[-1].time_s:
        found = shown_at(events, time_s)[1].words
        if found != words:
            words, since_s = found, time_s
        longest_s = max(longest_s, time_s - since_s)
        time_s += every_s
    return longest_s
