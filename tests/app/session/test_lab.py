"""The Lab's machine: what starts, stands still and ends a sweep, and that its results gather."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.session.lab import (
    ChatBusy,
    Effect,
    Given,
    Gone,
    GoOn,
    HoldChat,
    Lab,
    LabRun,
    LabStage,
    Launch,
    Opened,
    Pause,
    ResultLost,
    RunEnd,
    Said,
    StopSweep,
    SweepPlan,
    advance,
)
from core.events import Failed
from core.events.sweep import (
    SweepCell,
    SweepEnded,
    SweepLikeness,
    SweepPair,
    SweepProgress,
    SweepReading,
    SweepResults,
    SweepStarted,
    SweepTurn,
)

PLAN = SweepPlan("starter", ("auto",), ("prompts.jsonl",), ("code",), 3, 32)
RUN = LabRun(PLAN, 1.0)
STARTED = Said(SweepStarted("Toy 1M", "here", 6, 2, 0.5))
CELL = SweepCell("code", 0, "auto", 5, 6, 0.5, 2.0, (), (SweepPair(2.0, 20.0, 10.0),))
TURN = SweepTurn("chat", "auto", 1, 5, 20.0, 10.0, True)
READING = SweepReading("lexical", 20.0, 100, 20, 1.0, 3.0)
LIKENESS = SweepLikeness("lexical", 20.0, 2, 128, 0.9)
ENDED = Said(SweepEnded("out", 12.0))


def run(*inputs: Given, start: Lab | None = None) -> tuple[Lab, list[Effect]]:
    lab, effects = start or Lab(), []
    for given in inputs:
        step = advance(lab, given)
        lab = step.lab
        effects += step.effects
    return lab, effects


def test_a_sweep_from_its_start_to_its_end() -> None:
    lab, effects = run(RUN, STARTED, Said(SweepProgress(2, 8, "code, auto", 30.0)))
    assert effects == [HoldChat(True), Launch(PLAN)]
    assert (lab.stage, lab.done, lab.total, lab.doing, lab.seconds_left) == (
        LabStage.RUNNING,
        2,
        8,
        "code, auto",
        30.0,
    )
    lab, effects = run(
        Said(CELL), Said(TURN), Said(READING), Said(LIKENESS), ENDED, Gone("status 0"), start=lab
    )
    assert effects == [HoldChat(False)]
    assert lab.stage is LabStage.IDLE
    assert lab.trouble == ""
    results = lab.results
    assert results
    assert results.ended
    assert (results.model, results.reference, results.noise, results.took_s) == (
        "Toy 1M",
        "starter",
        0.5,
        12.0,
    )
    # Of the eight, two were long prompts.
    assert results.answers == 6
    assert results.cells == (CELL,)
    assert results.turns == (TURN,)
    assert results.readings == (READING,)
    assert results.likenesses == (LIKENESS,)


def test_stopping_keeps_what_is_measured() -> None:
    lab, effects = run(RUN, STARTED, Said(CELL), StopSweep(), StopSweep())
    assert effects == [HoldChat(True), Launch(PLAN), RunEnd()]
    assert lab.stage is LabStage.STOPPING
    lab, effects = run(Gone("It ended with status 143."), start=lab)
    assert (lab.stage, lab.trouble, effects) == (LabStage.IDLE, "", [HoldChat(False)])
    assert lab.results
    assert lab.results.cells == (CELL,)
    assert not lab.results.ended


def test_it_stands_still_while_the_chat_is_busy() -> None:
    lab, effects = run(RUN, STARTED, ChatBusy(True), ChatBusy(True))
    assert effects == [HoldChat(True), Launch(PLAN), Pause()]
    assert lab.paused
    lab, effects = run(ChatBusy(False), start=lab)
    assert effects == [HoldChat(True), GoOn()]  # whichever worker it is by now
    assert not lab.paused


def test_started_while_the_chat_is_busy_it_waits() -> None:
    lab, effects = run(ChatBusy(True), RUN)
    assert effects == [Launch(PLAN), Pause()]
    assert lab.paused
    assert run(StopSweep(), ChatBusy(False), start=lab)[1] == [RunEnd()]


def test_a_chat_without_a_sweep_means_nothing() -> None:
    lab, effects = run(ChatBusy(True), ChatBusy(False))
    assert effects == []
    assert lab == Lab()


def test_the_same_word_again_changes_nothing() -> None:
    lab, _ = run(RUN, ChatBusy(True))
    assert advance(lab, ChatBusy(True)).lab is lab


@pytest.mark.parametrize("given", [StopSweep(), Said(CELL), Gone("x"), ResultLost("x"), ENDED])
def test_late_words_change_nothing(given: Given) -> None:
    lab = Lab(results=SweepResults("sweep", "m", "", (), "fast", 1, 1, 0.0))
    assert advance(lab, given).lab is lab


def test_a_second_run_waits_for_the_first_to_end() -> None:
    lab, _ = run(RUN)
    assert advance(lab, RUN).lab is lab
    results = SweepResults("sweep", "m", "", (), "fast", 1, 1, 0.0)
    assert advance(lab, Opened(results)).lab is lab


def test_what_went_wrong_is_said() -> None:
    failed = Failed("", "sweep", "request", "bad-model", "There is no model x.", "Choose another.")
    lab, _ = run(RUN, Said(failed), Gone("It ended with status 1."))
    assert lab.trouble == "There is no model x. Choose another."
    lab, _ = run(RUN, STARTED, Gone("It ended with status -9."))
    assert lab.trouble == "It ended with status -9."
    assert run(RUN, start=lab)[0].trouble == ""
    lab, _ = run(RUN, STARTED, ResultLost("The disk is full."))
    assert lab.trouble == "The disk is full."


def test_opened_results_take_the_place_of_others() -> None:
    results = SweepResults("sweep", "m", "", (), "fast", 1, 1, 0.0)
    lab, _ = run(ChatBusy(True), Opened(results))
    assert lab == replace(Lab(), results=results, chat_busy=True)
