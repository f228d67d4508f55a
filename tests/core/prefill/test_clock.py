"""PrefillClock: on drawn machines the time left halfway is nearly right, and what is shown keeps changing."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from core.events import ReadingPace
from core.prefill.forecast import PrefillClock, display, slowing
from tests.core.prefill.played import Machine, Work, longest_unchanged_s, play, ratio_at, shown_at

Drawn = tuple[PrefillClock, Work, Machine]
Scene = Callable[[random.Random], Drawn]


def machine_of(rng: random.Random) -> Machine:
    """From 20 to 500 tokens a second; attention costs as much as everything else after 2,000 to 9,000."""
    token_s = 10 ** rng.uniform(-2.7, -1.3)
    reading = ReadingPace(token_s, token_s / rng.uniform(2000, 9000))
    scoring = ReadingPace(token_s * rng.uniform(0.05, 0.5), 0.0)
    draft = ReadingPace(token_s * rng.uniform(0.1, 0.5), reading.attention_s * 0.3)
    return Machine(reading, scoring, draft)


class Known:
    """What was measured of a machine on another day, when it was quicker or slower."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._day = 1.5 ** rng.uniform(-1, 1)

    def pace(self, pace: ReadingPace) -> ReadingPace:
        factor = self._day * 1.15 ** self._rng.uniform(-1, 1)
        return ReadingPace(pace.token_s * factor, pace.attention_s * factor * self._rng.uniform(0.5, 1.5))


def dense(rng: random.Random) -> Drawn:
    machine, known = machine_of(rng), Known(rng)
    return PrefillClock(known.pace(machine.reading)), Work(rng.randrange(500, 9000)), machine


def sparse(rng: random.Random) -> Drawn:
    machine, tokens, known = machine_of(rng), rng.randrange(2000, 9000), Known(rng)
    clock = PrefillClock(known.pace(machine.reading))
    clock.expect_scoring(known.pace(machine.scoring), guess=None, attends=False)
    chosen = round(0.12 * tokens) + 200
    return clock, Work(chosen, tokens, chosen=chosen + rng.randrange(-30, 30)), machine


def slow_scoring(rng: random.Random) -> Drawn:
    """Scoring takes most of the time."""
    machine, known = machine_of(rng), Known(rng)
    machine = replace(machine, scoring=machine.reading)
    clock = PrefillClock(known.pace(machine.reading))
    clock.expect_scoring(known.pace(machine.scoring), guess=None, attends=False)
    return clock, Work(600, rng.randrange(2000, 9000)), machine


def vectors_on_the_disk(rng: random.Random) -> Drawn:
    """Nothing is left to score, or almost nothing."""
    clock, work, machine = sparse(rng)
    return clock, replace(work, to_score=rng.choice((0, 64))), machine


def first_ever(rng: random.Random) -> Drawn:
    machine = machine_of(rng)
    return PrefillClock(), Work(rng.randrange(500, 9000)), machine


def first_ever_sparse(rng: random.Random) -> Drawn:
    """A short timing of the model, and a guess of the scorer's speed that is far off."""
    _, work, machine = sparse(rng)
    clock = PrefillClock()
    clock.guess(slowing(machine.reading.token_s * rng.uniform(0.8, 1.25)))
    guess = ReadingPace(machine.scoring.token_s * 4 ** rng.uniform(-1, 1), 0.0)
    clock.expect_scoring(None, guess=guess, attends=False)
    return clock, work, machine


def scored_by_a_draft_model(rng: random.Random) -> Drawn:
    machine, known = machine_of(rng), Known(rng)
    machine = replace(machine, scoring=machine.draft)
    _, work, _ = sparse(rng)
    clock = PrefillClock(known.pace(machine.reading))
    clock.expect_scoring(known.pace(machine.draft), guess=None, attends=True)
    return clock, work, machine


def read_by_a_draft_model_too(rng: random.Random) -> Drawn:
    machine, known, tokens = machine_of(rng), Known(rng), rng.randrange(500, 9000)
    clock = PrefillClock(known.pace(machine.reading))
    clock.expect_draft(tokens, known.pace(machine.draft), 0.3)
    return clock, Work(tokens, to_draft=tokens), machine


def after_a_reused_prefix(rng: random.Random) -> Drawn:
    clock, work, machine = dense(rng)
    return clock, replace(work, reused=rng.randrange(1000, 6000)), machine


def busy(rng: random.Random) -> Drawn:
    """Another program takes half of the machine, or took it when it was measured."""
    clock, work, machine = rng.choice((dense, sparse))(rng)
    factor = rng.choice((2.0, 0.5))
    return clock, work, replace(machine, load=lambda time_s: factor)


SCENES: tuple[Scene, ...] = (
    dense,
    sparse,
    slow_scoring,
    vectors_on_the_disk,
    first_ever,
    first_ever_sparse,
    scored_by_a_draft_model,
    read_by_a_draft_model_too,
    after_a_reused_prefix,
    busy,
)
_DRAWN = 120


@pytest.mark.sweep
@pytest.mark.parametrize("scene", SCENES)
def test_halfway_the_time_left_is_within_30_percent_in_nine_of_ten(scene: Scene) -> None:
    """Of prefills of three seconds and more; before that hardly anything was measured."""
    ratios = []
    for seed in range(_DRAWN):
        rng = random.Random(f"{scene.__name__} {seed}")
        events = play(*scene(rng), rng)
        if events[-1].time_s >= 3:
            ratios.append(ratio_at(events))
    assert len(ratios) > _DRAWN // 2
    within = sum(0.7 <= ratio <= 1.3 for ratio in ratios)
    assert within >= 0.9 * len(ratios), sorted(ratios)[:: len(ratios) // 10]


def test_a_machine_that_gets_busy_in_the_middle_is_noticed_soon() -> None:
    """Another program begins at 30% to 50% of the work, and makes the rest two to three times longer."""
    within = []
    for seed in range(_DRAWN):
        rng = random.Random(seed)
        clock, work, machine = dense(rng)
        quiet_s = machine.reading.seconds(work.to_read)
        begins_s, factor = rng.uniform(0.3, 0.5) * quiet_s, rng.uniform(2, 3)
        machine = replace(machine, load=lambda time_s: factor if time_s > begins_s else 1.0)  # noqa: B023
        within.append(0.7 <= ratio_at(play(clock, work, machine, rng), 0.75) <= 1.3)
    assert sum(within) >= 0.9 * _DRAWN


def test_what_scoring_shows_of_a_busy_machine_holds_for_reading() -> None:
    """The time left is nearly right before anything is read, though all takes three times longer."""
    within = []
    for seed in range(_DRAWN):
        rng = random.Random(seed)
        machine, tokens = machine_of(rng), rng.randrange(2000, 9000)
        clock = PrefillClock(machine.reading)
        clock.expect_scoring(machine.scoring, guess=None, attends=False)
        machine = replace(machine, load=lambda time_s: 3.0)
        events = play(clock, Work(1000, tokens), machine, rng)
        scored_s = max(event.time_s for event in events if event.phase == "scoring")
        if scored_s > 3:
            within.append(0.7 <= ratio_at(events, scored_s / events[-1].time_s) <= 1.3)
    assert len(within) > _DRAWN // 2
    assert sum(within) >= 0.9 * len(within)


@pytest.mark.sweep
@pytest.mark.parametrize("scene", SCENES)
def test_the_bar_never_falls_and_ends_at_its_end(scene: Scene) -> None:
    """Counted on between the events, too."""
    for seed in range(20):
        rng = random.Random(f"{scene.__name__} {seed}")
        events = play(*scene(rng), rng)
        times = [events[-1].time_s * number / 500 for number in range(501)]
        shown = [shown_at(events, time_s)[1].fraction for time_s in times if time_s >= events[0].time_s]
        assert shown == sorted(shown)
        assert events[-1].fraction == 1.0
        assert events[-1].seconds_left == 0.0
        assert all(event.fraction < 1.0 for event in events[:-1])


@pytest.mark.parametrize("scene", SCENES)
def test_there_is_a_time_from_the_first_step_on(scene: Scene) -> None:
    for seed in range(20):
        rng = random.Random(f"{scene.__name__} {seed}")
        clock, work, machine = scene(rng)
        known = clock.pace is not None
        events = play(clock, work, machine, rng)
        assert all(event.seconds_left is not None for event in events[0 if known else 1 :])
        # The speed is that of reading, and there is one as soon as something was read.
        read = [event for event in events if event.phase == "reading"]
        assert all(event.tokens_per_s > 0 for event in read[1:] if event.done_tokens)
        assert not any(event.tokens_per_s for event in events if event.phase == "scoring")


@pytest.mark.parametrize("scene", SCENES)
def test_the_words_change_every_five_seconds(scene: Scene) -> None:
    """Between events that are half a minute apart, too, and after the predicted end."""
    for seed in range(10):
        rng = random.Random(f"{scene.__name__} {seed}")
        clock, work, machine = scene(rng)
        assert longest_unchanged_s(play(clock, work, machine, rng)) <= 5.0
    events = play(PrefillClock(ReadingPace(0.05, 0.0)), Work(1200), Machine(slowing(0.2), step_s=60), rng)
    assert max(b.time_s - a.time_s for a, b in pairwise(events)) > 30
    assert longest_unchanged_s(events) <= 5.0


def test_a_bad_prediction_is_admitted() -> None:
    rng = random.Random(0)
    events = play(
        PrefillClock(ReadingPace(0.01, 0.0)), Work(500), Machine(ReadingPace(0.1, 0.0), step_s=60), rng
    )
    assert shown_at(events, 0.5)[1].left == "5 s left"
    assert shown_at(events, 6.0)[1].left == "a few seconds left"
    assert shown_at(events, 20.4)[1].left == "15 s longer than expected"
    assert shown_at(events, 20.4)[1].fraction < 1.0


def test_a_display_that_begins_late_shows_the_same() -> None:
    """An event carries all that a card needs, however late it is made."""
    rng = random.Random(1)
    events = play(*sparse(rng), rng)
    for event in events:
        for later_s in (0.0, 2.0, 40.0):
            assert display(event, event.at_s + later_s) == display(replace(event), event.at_s + later_s)
    middle = events[len(events) // 2]
    assert middle.seconds_left is not None
    assert display(middle, middle.at_s).fraction <= display(middle, middle.at_s + 3).fraction
    unknown = replace(middle, at_s=0.0)  # nothing to count from
    assert display(unknown, 1e9) == display(middle, middle.at_s)
