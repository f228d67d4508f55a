"""The machine's rules for what the local server asks: routed, waited for, cut off, and never the turn's."""

from __future__ import annotations

from msgspec.structs import replace

from app.session.turn import effects as fx
from app.session.turn.intents import Ahead, Close, Load, Restart, Serve, Stop, StopServed
from app.session.turn.link_state import Link, Phase
from app.session.turn.turn import STUCK_S
from core.events import (
    Cancel,
    CountTokens,
    EmbedTexts,
    Failed,
    Finished,
    Generate,
    Heartbeat,
    LoadModel,
    LoadProgress,
    Message,
    TextsEmbedded,
    TokenCount,
)
from tests.app.session.turn.test_turn import SERVE, SUBMIT, at, run
from tests.app.session.words import KILLED, LOADED, failed, finished, gauges, reading, token

SERVED = at(Phase.READY)
SERVED = replace(SERVED, served="s1")
HEARD = tuple(
    replace(event, request="s1") for event in (reading(), token(0), token(1), gauges(), finished(tokens=2))
)


def sent(effects: list[fx.Effect]) -> list[object]:
    return [effect.command for effect in effects if isinstance(effect, fx.Send)]


def test_a_served_request_changes_nothing_of_the_turn() -> None:
    link, effects = run(SERVE, *HEARD, start=at(Phase.READY))
    assert link == at(Phase.READY)
    assert sent(effects) == [SERVE.command]
    assert [effect.event for effect in effects if isinstance(effect, fx.ServedHeard)] == list(HEARD)
    assert len(effects) == 1 + len(HEARD)


def test_a_question_waits_until_nobody_is_ahead() -> None:
    link, effects = run(SUBMIT, start=SERVED)
    assert (link.phase, link.request, link.ahead, link.busy) == (Phase.WAITING, "r1", 1, True)
    assert effects == [fx.AnswerBegun("r1")]
    link, effects = run(Ahead(3), *HEARD[:2], start=link)
    assert (link.phase, link.ahead) == (Phase.WAITING, 3)
    assert not sent(effects)
    link, effects = run(HEARD[-1], Ahead(0), start=link)
    assert (link.phase, link.pending, link.served) == (Phase.READING, None, "")
    assert sent(effects) == [Generate("r1", SUBMIT.messages, SUBMIT.settings)]
    link, effects = run(token(0), finished(), start=link)
    assert link.phase is Phase.READY


def test_a_question_that_waits_is_stopped_without_asking_the_worker() -> None:
    link, effects = run(SUBMIT, Stop(), start=SERVED)
    assert link == SERVED
    assert not sent(effects)
    (ended,) = [effect for effect in effects if isinstance(effect, Finished)]
    assert (ended.request, ended.reason) == ("r1", "cancelled")


def test_a_served_request_is_stopped_by_its_own_id_alone() -> None:
    assert sent(run(StopServed("s1"), start=SERVED)[1]) == [Cancel("s1")]
    assert not sent(run(StopServed("s2"), start=SERVED)[1])
    assert not sent(run(StopServed("r1"), start=at(Phase.WRITING))[1])


def test_what_cannot_be_asked_fails_at_once() -> None:
    for start in (at(Phase.DEAD), at(Phase.LOADING), at(Phase.NO_MODEL), at(Phase.WRITING), SERVED):
        link, effects = run(Serve(Generate("s2", (Message("user", "Who?"),))), start=start)
        assert link == start
        (effect,) = effects
        assert isinstance(effect, fx.ServedHeard)
        assert isinstance(effect.event, Failed)
        assert effect.event.request == "s2"


def test_a_count_for_the_server_goes_beside_the_turn() -> None:
    link, effects = run(Serve(CountTokens("count-1", "text")), start=at(Phase.WRITING))
    assert sent(effects) == [CountTokens("count-1", "text")]
    link, effects = run(TokenCount("count-1", 3), TokenCount("c1", 4), start=link)
    assert effects == [fx.ServedHeard(TokenCount("count-1", 3)), fx.Counted("c1", 4)]
    assert link == at(Phase.WRITING)


def test_vectors_for_the_server_go_beside_the_turn_and_are_ignored_when_nobody_waits() -> None:
    command, vectors = EmbedTexts("embed-1", ("text",)), TextsEmbedded("embed-1", b"", (3,))
    link, effects = run(Serve(command), start=at(Phase.WRITING))
    assert sent(effects) == [command]
    link, effects = run(vectors, vectors, start=link)
    assert effects == [fx.ServedHeard(vectors)]
    assert link == at(Phase.WRITING)


def test_a_failure_without_an_id_is_the_served_one_s() -> None:
    link, effects = run(failed("", "generate", "bad-line"), start=SERVED)
    assert link.served == ""
    assert effects == [fx.ServedHeard(failed("s1", "generate", "bad-line"))]


def test_a_worker_that_dies_cuts_both_off() -> None:
    link, effects = run(SUBMIT, KILLED, start=SERVED)
    assert link == Link(SERVED.model, Phase.DEAD, SERVED.info)
    assert [type(effect) for effect in effects[1:]] == [fx.AnswerCutOff, fx.ServedCutOff, fx.WorkerDied]
    link, effects = run(Restart(), start=SERVED)
    assert [type(effect) for effect in effects] == [fx.ServedCutOff, fx.RestartWorker]
    # Whoever closes the window has told the clients already.
    assert run(Close(), start=SERVED)[1] == []


def test_the_end_of_a_served_answer_is_heard_while_another_model_loads() -> None:
    link, effects = run(Load("other"), HEARD[-1], start=SERVED)
    assert (link.phase, link.served) == (Phase.LOADING, "")
    assert effects[-1] == fx.ServedHeard(HEARD[-1])


def test_a_worker_that_is_stuck_while_it_serves_is_told() -> None:
    beat = Heartbeat("decoding", STUCK_S, 1, 2)
    assert [type(effect) for effect in run(beat, start=SERVED)[1]] == [Heartbeat, fx.WorkerStuck]


OTHER = replace(LOADED, info=replace(LOADED.info, name="Other", reference="other"))


def test_a_question_waits_for_a_request_whose_model_is_being_loaded() -> None:
    start, _ = run(Ahead(1), start=at(Phase.READY))
    link, effects = run(SUBMIT, Load("other"), Ahead(0), start=start)
    assert (link.phase, link.before, link.loading) == (Phase.WAITING, "starter", True)
    assert sent(effects) == [LoadModel("other")]
    # A third model replaces the worker. The server's requests wait; the question can be taken back.
    third, effects = run(Load("third"), start=link)
    assert (third.model, third.phase, type(effects[-1])) == ("third", Phase.STARTING, fx.RestartWorker)
    assert not sent(run(SERVE, start=link)[1])
    stopped, _ = run(Stop(), start=link)
    assert (stopped.phase, stopped.busy, stopped.loading) == (Phase.LOADING, False, True)
    assert run(OTHER, start=stopped)[0].phase is Phase.READY
    assert not run(Heartbeat("loading", STUCK_S, 1, 2), start=link)[0].quiet
    progress = LoadProgress("other", "Reading weights", 0.5)
    link, effects = run(progress, OTHER, SERVE, start=link)
    assert [type(one) for one in effects] == [fx.LoadStarted, fx.ModelReady, fx.Send]
    assert (link.phase, link.model, link.loading, link.served) == (Phase.WAITING, "other", False, "s1")
    # Its turn: the model that it was asked of is loaded again, then the question is sent.
    link, effects = run(HEARD[-1], Ahead(0), start=link)
    assert (link.phase, link.model, link.before) == (Phase.WAITING, "starter", "other")
    assert sent(effects) == [LoadModel("starter")]
    assert run(Stop(), LOADED, start=link)[0].phase is Phase.READY
    for ends in (LOADED, failed("", "load_model", "bad-model")):
        after, effects = run(ends, Ahead(0), start=link)
        assert (after.phase, after.pending) == (Phase.READING, None)
        assert [type(one) for one in sent(effects)] == [Generate]


def test_a_load_that_fails_or_kills_the_worker_leaves_the_previous_model() -> None:
    start, _ = run(SUBMIT, Load("other"), start=replace(at(Phase.READY), ahead=1))
    link, effects = run(failed("", "load_model", "bad-model"), start=start)
    assert (link.phase, link.model, link.loading) == (Phase.WAITING, "starter", False)
    assert isinstance(effects[-1], fx.LoadFailed)
    link, effects = run(KILLED, Restart(), start=start)
    assert link == Link("starter")
