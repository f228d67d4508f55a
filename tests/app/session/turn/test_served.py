"""The machine's rules for a question and for requests of the local server in one worker's queue."""

from __future__ import annotations

from msgspec.structs import replace

from app.session.turn import effects as fx
from app.session.turn.intents import Load, Restart, Served, Stop
from app.session.turn.link_state import Link, Phase
from app.session.turn.turn import STUCK_S
from core.events import Cancel, Heartbeat, LoadModel, LoadProgress, ModelUnloaded, Queued
from tests.app.session.turn.test_turn import SUBMIT, at, run
from tests.app.session.words import INFO, KILLED, LOADED, failed, finished, reading, token

LOADED_STARTER = replace(LOADED, info=replace(INFO, reference="starter"))
OTHER = replace(LOADED, info=replace(INFO, name="Other", reference="other"))
SERVED, _ = run(LOADED_STARTER, Served(1), start=at(Phase.LOADING))
WAITING, _ = run(SUBMIT, Queued("r1", 1), start=SERVED)


def sent(effects: list[fx.Effect]) -> list[object]:
    return [effect.command for effect in effects if isinstance(effect, fx.Send)]


def test_a_question_is_sent_at_once_and_names_its_model() -> None:
    link, effects = run(SUBMIT, start=SERVED)
    assert (link.phase, link.request, link.busy) == (Phase.READING, "r1", True)
    assert (effects[0], *sent(effects)) == (fx.AnswerBegun("r1"), replace(SUBMIT, model="starter"))
    link, effects = run(Queued("r1", 3), Queued("r1", 2), start=link)
    assert (link.phase, link.ahead, link.serving, effects) == (Phase.READING, 2, True, [])
    for first in (Queued("r1", 0), reading(), token(0)):
        after, _ = run(first, start=link)
        assert (after.ahead, after.serving) == (0, False)
    link, _ = run(reading(), token(0), finished(), Served(0), start=link)
    assert (link.phase, link.serving) == (Phase.READY, False)


def test_a_question_that_waits_is_stopped_by_the_worker() -> None:
    link, effects = run(Stop(), start=WAITING)
    assert (link.phase, sent(effects)) == (Phase.STOPPING, [Cancel("r1")])
    link, effects = run(finished(reason="cancelled"), start=link)
    assert (link.phase, link.ahead, link.serving) == (Phase.READY, 0, True)
    assert [effect.reason for effect in effects] == ["cancelled"]  # type: ignore[union-attr]


def test_a_worker_that_dies_cuts_the_question_off() -> None:
    link, effects = run(KILLED, start=WAITING)
    assert link == Link("starter", Phase.DEAD, LOADED_STARTER.info)
    assert [type(effect) for effect in effects] == [fx.AnswerCutOff, fx.WorkerDied]


def test_a_worker_that_is_stuck_while_it_serves_is_told() -> None:
    beat = Heartbeat("decoding", STUCK_S, 1, 2)
    assert [type(effect) for effect in run(beat, start=SERVED)[1]] == [Heartbeat, fx.WorkerStuck]


def test_the_worker_loads_a_model_for_a_request() -> None:
    progress, beat = LoadProgress("other", "Reading weights", 0.5), Heartbeat("loading", 1.0, 1, 2)
    empty, _ = run(ModelUnloaded(), start=SERVED)
    for start in (SERVED, WAITING, empty):
        link, effects = run(progress, beat, start=start)
        assert (link.phase, link.model, link.loads, link.loading) == (start.phase, "starter", True, False)
        assert effects == [beat]
        link, effects = run(OTHER, Heartbeat("decoding", 1.0, 1, 2), start=link)
        assert (link.phase, link.model, link.loads) == (
            Phase.READY if start is empty else start.phase,
            "other",
            False,
        )
        assert effects[0] == fx.ModelReady(OTHER.info)
        # A worker that dies comes back with it, and before that with the previous one.
        assert run(KILLED, Restart(), start=link)[0] == Link("other")
    assert run(progress, KILLED, Restart(), start=WAITING)[0] == Link("starter")


def test_a_person_loads_a_model_while_one_is_loaded_for_a_request() -> None:
    link, effects = run(Load("third"), start=WAITING)
    assert (link.phase, sent(effects)) == (Phase.STOPPING, [Cancel("r1"), LoadModel("third")])
    link, effects = run(finished(reason="cancelled"), LoadProgress("other", "", 0.5), OTHER, start=link)
    assert (link.phase, link.model, link.loading) == (Phase.LOADING, "third", True)
    assert not [one for one in effects if isinstance(one, fx.ModelReady | fx.LoadStarted | fx.WorkerMistake)]
    third = replace(LOADED, info=replace(INFO, reference="third"))
    assert run(third, start=link)[0].phase is Phase.READY
    link, effects = run(failed("", "load_model", "bad-model"), start=link)
    assert (link.phase, link.model) == (Phase.READY, "starter")
    assert isinstance(effects[-1], fx.LoadFailed)
