"""The race: how its two answers compare, and what it says of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.features.race import strings
from app.features.race.state import Recording, verdict
from core.events import Token
from tests.app.session.words import finished


def answer(times_s: list[float], ids: list[int] | None = None, tokens_per_s: float = 10.0) -> Recording:
    numbers = ids or list(range(len(times_s)))
    ended = finished(tokens=len(times_s))
    ended = replace(ended, stats=replace(ended.stats, tokens_per_s=tokens_per_s))
    return Recording(
        [
            Token("r", numbers[place], "a", "normal", place + 1, place, time_s=at_s)
            for place, at_s in enumerate(times_s)
        ],
        ended,
    )


def test_the_times_of_an_answer() -> None:
    recording = answer([0.5, 1.0, 1.0, 2.0])
    assert (recording.first_s, recording.duration_s, Recording().duration_s) == (0.5, 2.0, 0.0)


def test_the_verdict() -> None:
    plain, drafted = answer([1.0, 2.0, 3.0]), answer([1.0, 1.2, 1.4], tokens_per_s=25.0)
    found = verdict(plain, drafted)
    assert (found.ratio, found.difference, found.tokens) == (2.5, None, 3)
    assert found.sooner_s == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("ids", "difference"), [([0, 1, 2], None), ([0, 9, 2], 1), ([0, 1], 2), ([0, 1, 2, 3], 3)]
)
def test_the_first_difference(ids: list[int], difference: int | None) -> None:
    plain = answer([1.0, 2.0, 3.0], [0, 1, 2])
    drafted = answer([float(place) for place in range(len(ids))], ids)
    assert verdict(plain, drafted).difference == difference


def test_answers_of_one_step_have_no_ratio() -> None:
    assert verdict(answer([1.0], tokens_per_s=0.0), answer([1.0])).ratio == 0.0


@pytest.mark.parametrize(
    ("sooner_s", "read_sooner_s", "said"),
    [
        (8.94, 2.0, "Done 8.94 s sooner."),
        # Written more slowly, and done sooner all the same: why is said.
        (8.94, 12.0, "Done 8.94 s sooner: prompt read 12.0 s sooner, answer written 3.06 s later."),
        (-3.0, -5.0, "Done 3.00 s later: prompt read 5.00 s later, answer written 2.00 s sooner."),
        (-3.0, 0.0, "Done 3.00 s later."),
        (0.001, 0.0, "Done at the same time."),
    ],
)
def test_sooner_and_slower_are_both_explained(sooner_s: float, read_sooner_s: float, said: str) -> None:
    assert strings.sooner(sooner_s, read_sooner_s) == said


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(0.0, "Too short to compare"), (0.72, "0.72× the plain speed"), (1.0, "1.00× the plain speed")],
)
def test_slower_is_not_called_faster(ratio: float, said: str) -> None:
    assert strings.headline(ratio) == said
    assert strings.headline(2.5) == "2.5× as fast"
