"""The tokens of a running answer are counted in one place, and go to whoever asked."""

from __future__ import annotations

from typing import Any

import pytest

from app.controllers.running_answer import RunningAnswer
from app.session.turn import effects as fx
from tests.app.session.words import failed, finished, gauges, reading, reading_map, token


class Recorded:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *told, **named: self.told.append((name, *told, *named.values()))


@pytest.fixture
def asked() -> dict[str, Recorded]:
    return {"r1": Recorded(), "r2": Recorded()}


@pytest.fixture
def mistakes() -> list[fx.WorkerMistake]:
    return []


@pytest.fixture
def answer(asked: dict[str, Recorded], mistakes: list[fx.WorkerMistake]) -> RunningAnswer:
    return RunningAnswer(lambda request: asked[request], mistakes.append)


def test_all_of_an_answer_goes_to_who_asked(answer: RunningAnswer, asked: dict[str, Recorded]) -> None:
    answer.on_begun(fx.AnswerBegun("r1"))
    answer.on_reading(fx.ReadingHeard(reading()))
    answer.on_map(fx.MapHeard(reading_map()))
    answer.on_token(fx.TokenHeard(token(0)))
    answer.on_gauges(fx.GaugesHeard(gauges()))
    answer.on_finished(fx.AnswerFinished(finished()))
    assert asked["r1"].told == [
        ("begin",),
        ("read", reading()),
        ("choose", reading_map()),
        ("write", token(0)),
        ("measure", gauges()),
        ("finish", finished()),
    ]
    assert not asked["r2"].told


@pytest.mark.parametrize("position", [0, 2])
def test_a_token_that_is_missing_or_comes_twice_is_dropped_and_told(
    position: int, answer: RunningAnswer, asked: dict[str, Recorded], mistakes: list[fx.WorkerMistake]
) -> None:
    answer.on_begun(fx.AnswerBegun("r1"))
    answer.on_token(fx.TokenHeard(token(0)))
    answer.on_token(fx.TokenHeard(token(position)))
    answer.on_token(fx.TokenHeard(token(1)))
    assert asked["r1"].told == [("begin",), ("write", token(0)), ("write", token(1))]
    assert [mistake.message for mistake in mistakes] == [f"Token has position {position} where 1 comes next."]


def test_an_end_says_how_much_was_written(answer: RunningAnswer, asked: dict[str, Recorded]) -> None:
    for request in ("r1", "r2"):
        answer.on_begun(fx.AnswerBegun(request))
    answer.on_token(fx.TokenHeard(token(0, request="r2")))
    answer.on_failed(fx.AnswerFailed(failed("r2")))
    assert asked["r2"].told[-1] == ("fail", failed("r2"), 1)
    assert answer.take_lost() is None


def test_what_was_lost_is_known_once(answer: RunningAnswer, asked: dict[str, Recorded]) -> None:
    answer.on_begun(fx.AnswerBegun("r1"))
    answer.on_token(fx.TokenHeard(token(0)))
    answer.on_cut_off(fx.AnswerCutOff("r1"))
    assert asked["r1"].told[-1] == ("cut_off", 1, False)
    assert answer.take_lost() == 1
    assert answer.take_lost() is None
