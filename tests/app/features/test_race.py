"""The race: its machine, what it says of its two answers, and its chart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from pytestqt.qtbot import QtBot

from app.features.race import replay as module
from app.features.race import strings
from app.features.race.replay import RaceChart
from app.features.race.state import (
    Ask,
    Broke,
    Course,
    Effect,
    Ended,
    Given,
    Halt,
    Race,
    Read,
    Recording,
    Replay,
    Stage,
    StartRace,
    StopAnswer,
    Wrote,
    advance,
    duration_s,
    replay_of,
    sight,
    verdict,
    written,
)
from app.theme.theme import Theme
from core.events import Message, Token
from core.settings import Settings, assign
from tests.app.session.words import finished, reading

COURSE = Course((Message("user", "Why?"),), assign(Settings(), "drafting.drafter", "ngram-mod"))


def heard(position: int, at_s: float, number: int = 7) -> Token:
    return Token("r", number, "a", "normal", position + 1, position, time_s=at_s)


def answer(times_s: list[float], ids: list[int] | None = None, tokens_per_s: float = 10.0) -> Recording:
    numbers = ids or list(range(len(times_s)))
    ended = finished(tokens=len(times_s))
    ended = replace(ended, stats=replace(ended.stats, tokens_per_s=tokens_per_s))
    tokens = tuple(heard(place, at_s, numbers[place]) for place, at_s in enumerate(times_s))
    return Recording(tokens, ended)


def run(*inputs: Given, start: Race | None = None) -> tuple[Race, list[Effect]]:
    race, effects = start or Race(), []
    for given in inputs:
        step = advance(race, given)
        race = step.race
        effects += step.effects
    return race, effects


def test_plain_then_drafted_with_nothing_else_changed() -> None:
    race, effects = run(
        StartRace(COURSE), Wrote(heard(0, 0.1)), Ended(finished()), Wrote(heard(0, 0.2)), Ended(finished())
    )
    assert race.stage is Stage.RUN
    assert [token.time_s for token in race.plain.tokens] == [0.1]
    assert [token.time_s for token in race.drafted.tokens] == [0.2]
    plain, drafted = (effect for effect in effects if isinstance(effect, Ask))
    assert plain.request != drafted.request
    assert plain.messages == drafted.messages == COURSE.messages
    assert plain.settings.drafting.drafter == "off"
    assert drafted.settings == COURSE.settings
    assert replace(plain.settings, drafting=drafted.settings.drafting) == drafted.settings


def test_the_second_answer_is_asked_for_only_after_the_first() -> None:
    race, effects = run(StartRace(COURSE), Wrote(heard(0, 0.1)))
    assert race.stage is Stage.PLAIN
    assert len(effects) == 1
    race, effects = run(Ended(finished()), start=race)
    assert race.stage is Stage.DRAFTED
    assert len(effects) == 1


@pytest.mark.parametrize("answers_before", [0, 1])
def test_stopping_keeps_nothing(answers_before: int) -> None:
    race, _ = run(StartRace(COURSE), Wrote(heard(0, 0.1)), *[Ended(finished())] * answers_before)
    race, effects = run(Halt(), Halt(), start=race)
    assert effects == [StopAnswer()]
    assert race.stage is Stage.STOPPING
    race, effects = run(Wrote(heard(1, 0.3)), Ended(finished(reason="cancelled")), start=race)
    assert (race.stage, effects) == (Stage.IDLE, [])
    assert race.plain == race.drafted == Recording()
    assert race.course == COURSE


def test_an_answer_that_ends_before_the_stop_arrives_goes_no_further() -> None:
    race, effects = run(StartRace(COURSE), Halt(), Ended(finished()))
    assert race.stage is Stage.IDLE
    assert [type(effect) for effect in effects] == [Ask, StopAnswer]


def test_what_breaks_it_is_said() -> None:
    race, effects = run(StartRace(COURSE), Ended(finished()), Broke("There was not enough memory."))
    assert race.stage is Stage.IDLE
    assert race.trouble == "There was not enough memory."
    again, _ = run(StartRace(COURSE), start=race)
    assert again.trouble == ""
    assert again.request not in {effect.request for effect in effects if isinstance(effect, Ask)}


@pytest.mark.parametrize("given", [Halt(), Wrote(heard(0, 0.1)), Ended(finished()), Read(reading())])
def test_late_words_change_nothing(given: Given) -> None:
    for race in (Race(), Race(Stage.RUN, COURSE, answer([0.1]), answer([0.1]))):
        step = advance(race, given)
        assert step.race is race
        assert step.effects == ()


def test_starting_twice_is_starting_once() -> None:
    race, _ = run(StartRace(COURSE))
    assert advance(race, StartRace(COURSE)).race is race


# ---- the replay


def test_a_moment() -> None:
    recording = answer([0.5, 1.0, 1.0, 2.0], tokens_per_s=3.0)
    assert [written(recording, at_s) for at_s in (0.0, 0.5, 0.99, 1.0, 5.0)] == [0, 1, 1, 3, 4]
    early = sight(recording, 1.5)
    assert (early.tokens, early.total, early.clock_s, early.done) == (3, 4, 1.5, False)
    assert early.tokens_per_s == pytest.approx(2 / 0.5)
    late = sight(recording, 9.0)
    assert (late.clock_s, late.done, late.share, late.tokens_per_s) == (2.0, True, 1.0, 3.0)
    assert sight(recording, 0.1).tokens_per_s == 0.0


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


def test_the_clock() -> None:
    replay = replay_of(answer([1.0, 4.0]), answer([1.0, 2.0]), rate=2.0)
    assert replay.end_s == 4.0
    assert replay.passed(1.0).at_s == 0.0  # nobody plays it
    playing = replay.play()
    assert playing.passed(1.0).at_s == 2.0
    ended = playing.passed(10.0)
    assert (ended.at_s, ended.playing, ended.over) == (4.0, False, True)
    assert ended.play().at_s == 0.0
    assert playing.sought(-1.0).at_s == 0.0
    assert playing.sought(3.0) == Replay(4.0, 3.0, 2.0, False)
    assert playing.sought(3.0).play().at_s == 3.0
    assert not Replay(0.0).play().playing
    assert duration_s(Recording()) == 0.0


def recording(count: int, seconds: float) -> Recording:
    """Tokens that came evenly."""
    return Recording(
        tuple(Token("r", n, "w", "normal", n, n, time_s=seconds * (n + 1) / count) for n in range(count))
    )


def test_no_moment_crosses_the_names_of_the_ends(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, QRectF] = {}
    draw = module.draw_text

    def noted(painter: QPainter, box: QRectF, words: str, *rest: Any) -> None:
        drawn[words] = box
        draw(painter, box, words, *rest)

    monkeypatch.setattr(module, "draw_text", noted)
    chart = RaceChart(theme)
    qtbot.addWidget(chart)
    chart.resize(600, module.HEIGHT_PX)
    chart.show_race(recording(40, 7.03), recording(40, 4.01))
    names = [module.strings.at_seconds(7.03), module.strings.done_at(4.01)]
    stood: dict[str, set[float]] = {name: set() for name in names}
    for moment in range(0, 7001, 100):
        drawn.clear()
        chart.show_moment(moment / 1000)
        chart.grab()
        line = chart._at(moment / 1000, 0).x()
        for name in names:
            assert not drawn[name].left() < line < drawn[name].right(), f"{name} at {moment} ms"
            stood[name].add(drawn[name].left())
    assert all(len(places) > 1 for places in stood.values()), "no moment was near a name"


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
    assert strings.headline(2.5) == "2.5× faster writing"
