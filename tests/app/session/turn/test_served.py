"""The machine's rules for a question that waits for requests of the local server."""

from __future__ import annotations

from msgspec.structs import replace

from app.session.turn import effects as fx
from app.session.turn.intents import Ahead, Load, Restart, Stop
from app.session.turn.link_state import Link, Phase
from app.session.turn.turn import STUCK_S
from core.events import Finished, Generate, Heartbeat, LoadModel, LoadProgress
from tests.app.session.turn.test_turn import SUBMIT, at, run
from tests.app.session.words import KILLED, LOADED, failed, finished, token

SERVED = replace(at(Phase.READY), ahead=1)


def sent(effects: list[fx.Effect]) -> list[object]:
    return [effect.command for effect in effects if isinstance(effect, fx.Send)]


def test_a_question_waits_until_nobody_is_ahead() -> None:
    link, effects = run(SUBMIT, start=SERVED)
    assert (link.phase, link.request, link.ahead, link.busy) == (Phase.WAITING, "r1", 1, True)
    assert effects == [fx.AnswerBegun("r1")]
    link, effects = run(Ahead(3), start=link)
    assert (link.phase, link.ahead, link.serving) == (Phase.WAITING, 3, True)
    assert not sent(effects)
    link, effects = run(Ahead(0), start=link)
    assert (link.phase, link.pending, link.serving) == (Phase.READING, None, False)
    assert sent(effects) == [SUBMIT]
    link, effects = run(token(0), finished(), start=link)
    assert link.phase is Phase.READY


def test_a_question_that_waits_is_stopped_without_asking_the_worker() -> None:
    link, effects = run(SUBMIT, Stop(), start=SERVED)
    assert link == at(Phase.READY)
    assert not sent(effects)
    (ended,) = [effect for effect in effects if isinstance(effect, Finished)]
    assert (ended.request, ended.reason) == ("r1", "cancelled")


def test_a_worker_that_dies_cuts_the_question_off() -> None:
    link, effects = run(SUBMIT, KILLED, start=SERVED)
    assert link == Link(SERVED.model, Phase.DEAD, SERVED.info)
    assert [type(effect) for effect in effects[1:]] == [fx.AnswerCutOff, fx.WorkerDied]


def test_a_worker_that_is_stuck_while_it_serves_is_told() -> None:
    beat = Heartbeat("decoding", STUCK_S, 1, 2)
    assert [type(effect) for effect in run(beat, start=SERVED)[1]] == [Heartbeat, fx.WorkerStuck]


OTHER = replace(LOADED, info=replace(LOADED.info, name="Other", reference="other"))


def test_a_question_waits_for_a_request_whose_model_is_being_loaded() -> None:
    link, effects = run(SUBMIT, Load("other"), Ahead(0), start=SERVED)
    assert (link.phase, link.before, link.loading, link.serving) == (Phase.WAITING, "starter", True, False)
    assert sent(effects) == [LoadModel("other")]
    # A third model replaces the worker. The server's requests wait; the question can be taken back.
    third, effects = run(Load("third"), start=link)
    assert (third.model, third.phase, type(effects[-1])) == ("third", Phase.STARTING, fx.RestartWorker)
    stopped, _ = run(Stop(), start=link)
    assert (stopped.phase, stopped.busy, stopped.loading) == (Phase.LOADING, False, True)
    assert run(OTHER, start=stopped)[0].phase is Phase.READY
    assert not run(Heartbeat("loading", STUCK_S, 1, 2), start=link)[0].quiet
    progress = LoadProgress("other", "Reading weights", 0.5)
    link, effects = run(progress, OTHER, start=link)
    assert [type(one) for one in effects] == [fx.LoadStarted, fx.ModelReady]
    assert (link.phase, link.model, link.loading, link.serving) == (Phase.WAITING, "other", False, True)
    # Its turn: the model that it was asked of is loaded again, then the question is sent.
    link, effects = run(Ahead(0), start=link)
    assert (link.phase, link.model, link.before) == (Phase.WAITING, "starter", "other")
    assert sent(effects) == [LoadModel("starter")]
    assert run(Stop(), LOADED, start=link)[0].phase is Phase.READY
    for ends in (LOADED, failed("", "load_model", "bad-model")):
        after, effects = run(ends, Ahead(0), start=link)
        assert (after.phase, after.pending) == (Phase.READING, None)
        assert [type(one) for one in sent(effects)] == [Generate]


def test_a_load_that_fails_or_kills_the_worker_leaves_the_previous_model() -> None:
    start, _ = run(SUBMIT, Load("other"), start=SERVED)
    link, effects = run(failed("", "load_model", "bad-model"), start=start)
    assert (link.phase, link.model, link.loading) == (Phase.WAITING, "starter", False)
    assert isinstance(effects[-1], fx.LoadFailed)
    link, effects = run(KILLED, Restart(), start=start)
    assert link == Link("starter")
