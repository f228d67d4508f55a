"""The machine of link and turn: every transition, and that nothing illegal changes anything."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from app.session.turn import effects as fx
from app.session.turn.intents import INTENTS, Close, Load, Restart, Served, SpawnFailed, Stop, Unload
from app.session.turn.link_state import Link, Phase
from app.session.turn.turn import MOST_LOAD_DEATHS, OUT_OF_BAND, RULES, STUCK_S, Input, advance
from core.events import (
    Cancel,
    DownloadProgress,
    Failed,
    Finished,
    Gauges,
    Generate,
    Heartbeat,
    Hello,
    LoadModel,
    LoadProgress,
    Message,
    ModelList,
    ModelReleased,
    ModelUnloaded,
    PrefillProgress,
    Queued,
    ReadAheadProgress,
    ReadingMap,
    SavedChatsListed,
    TableStatus,
    Token,
)
from core.events.codec import BadLine, WorkerExited, WorkerSilent
from core.settings import Settings
from tests.app.session.words import (
    HEARTBEAT,
    HELLO,
    INFO,
    KILLED,
    LOADED,
    failed,
    finished,
    gauges,
    reading,
    reading_map,
    token,
)

SUBMIT = Generate("r1", (Message("user", "Why?"),), Settings())
START = Link("starter")


def run(*inputs: Input, start: Link = START) -> tuple[Link, list[fx.Effect]]:
    """The state after `inputs`, and all effects on the way."""
    link, effects = start, []
    for given in inputs:
        step = advance(link, given)
        link = step.link
        effects += step.effects
    return link, effects


def at(phase: Phase) -> Link:
    """A link that came to `phase` by legal steps."""
    ways: dict[Phase, tuple[Input, ...]] = {
        Phase.STARTING: (),
        Phase.LOADING: (HELLO,),
        Phase.NO_MODEL: (HELLO, failed("", "load_model", "bad-model")),
        Phase.READY: (HELLO, LOADED),
        Phase.READING: (HELLO, LOADED, SUBMIT),
        Phase.WRITING: (HELLO, LOADED, SUBMIT, token(0)),
        Phase.STOPPING: (HELLO, LOADED, SUBMIT, token(0), Stop()),
        Phase.DEAD: (HELLO, LOADED, KILLED),
        Phase.CLOSED: (HELLO, LOADED, Close()),
    }
    link, effects = run(*ways[phase])
    assert link.phase is phase
    assert not [one for one in effects if isinstance(one, fx.WindowMistake | fx.WorkerMistake)]
    return link


# One input of each type, as legal as it can be in the phases that accept it.
SAMPLES: dict[type, Any] = {
    type(sample): sample
    for sample in (
        HELLO,
        LoadProgress("starter", "Reading weights", 0.5),
        LOADED,
        ModelUnloaded(),
        ModelReleased(),
        Queued("r1", 2),
        reading(),
        reading_map(),
        token(1),
        gauges(),
        finished(),
        failed(),
        TableStatus("warm", "f" * 64, "Fake"),
        ModelList("m1", "models", ()),
        DownloadProgress("owner/name", "running", 1, 2),
        ReadAheadProgress("a chat", 1, 2),
        SavedChatsListed(1, 2, "Not saved"),
        HEARTBEAT,
        KILLED,
        WorkerSilent(15.0),
        BadLine("This line is not an event."),
        SUBMIT,
        Stop(),
        Served(2),
        Unload(),
        Restart(),
        Load("other"),
        SpawnFailed("The engine could not be started.", "Reinstall Draftlight."),
        Close(),
    )
}


def test_every_input_has_a_rule_and_a_sample() -> None:
    assert set(SAMPLES) == set(RULES)


ILLEGAL = [(kind, phase) for kind, (phases, _) in RULES.items() for phase in Phase if phase not in phases]


@pytest.mark.parametrize(
    ("kind", "phase"), ILLEGAL, ids=[f"{kind.__name__}-{phase.value}" for kind, phase in ILLEGAL]
)
def test_an_input_out_of_place_changes_nothing_and_says_whose_fault_it_is(kind: type, phase: Phase) -> None:
    link, given = at(phase), SAMPLES[kind]
    step = advance(link, given)
    assert step.link == link
    if phase is Phase.CLOSED and not isinstance(given, INTENTS):
        assert step.effects == ()  # late words of a worker that is being stopped
        return
    (effect,) = step.effects
    assert isinstance(effect, fx.WindowMistake if isinstance(given, INTENTS) else fx.WorkerMistake)
    assert kind.__name__ in effect.message
    assert phase.value in effect.message


def test_a_whole_answer() -> None:
    heard = (reading(), reading_map(), token(0), token(1), gauges(), finished(tokens=2))
    link, effects = run(HELLO, LOADED, SUBMIT, *heard)
    assert link == Link("starter", Phase.READY, INFO)
    assert [type(effect) for effect in effects] == [
        fx.WorkerReady,
        fx.LoadStarted,
        fx.Send,
        fx.ModelReady,
        fx.AnswerBegun,
        fx.Send,
        PrefillProgress,
        ReadingMap,
        Token,
        Token,
        Gauges,
        Finished,
    ]
    sent = [effect.command for effect in effects if isinstance(effect, fx.Send)]
    assert sent == [LoadModel("starter"), SUBMIT]


def test_loading_progress_is_told() -> None:
    link, effects = run(LoadProgress("starter", "Reading weights", 0.5), start=at(Phase.LOADING))
    assert link.phase is Phase.LOADING
    assert effects == [fx.LoadStarted("starter", "Reading weights", 0.5)]


def test_a_load_that_fails_leaves_no_model_and_can_be_repeated() -> None:
    link, effects = run(failed("", "load_model", "bad-model"), start=at(Phase.LOADING))
    assert link.phase is Phase.NO_MODEL
    assert effects == [fx.LoadFailed(failed("", "load_model", "bad-model"), "", link.model)]
    link, effects = run(Load("starter"), LOADED, start=link)
    assert link.phase is Phase.READY
    assert fx.Send(LoadModel("starter")) in effects


@pytest.mark.parametrize("end", [LOADED, failed("", "load_model", "bad-model")])
def test_the_end_of_a_load_does_not_end_an_answer_that_is_being_stopped(end: Input) -> None:
    stopping, _ = run(Load("other"), start=at(Phase.WRITING))
    assert stopping.busy
    link, _ = run(end, start=stopping)
    assert (link.phase, link.request) == (stopping.phase, "r1")
    link, _ = run(finished(), start=link)
    assert (link.phase, link.request) == (Phase.READY, "")


def test_a_load_that_fails_beside_a_loaded_model_goes_back_to_it() -> None:
    refused = failed("", "load_model", "bad-model")
    link, effects = run(Load("other"), refused, start=at(Phase.READY))
    assert link == at(Phase.READY)
    assert effects[-1] == fx.LoadFailed(refused, INFO.name, "other")
    link, effects = run(Load("other"), LOADED, Restart(), start=at(Phase.READY))
    assert link.model == "other"


@pytest.mark.parametrize("kind", OUT_OF_BAND)
def test_what_does_not_concern_the_turn_is_shown_in_the_middle_of_an_answer(kind: type) -> None:
    link, effects = run(SAMPLES[kind], start=at(Phase.WRITING))
    assert (link, effects) == (at(Phase.WRITING), [SAMPLES[kind]])


def test_unloading_leaves_no_model() -> None:
    link, _ = run(ModelUnloaded(), start=at(Phase.READY))
    assert (link.phase, link.info) == (Phase.NO_MODEL, None)


def test_what_is_asked_for_while_the_model_is_being_unloaded_goes_on() -> None:
    idle, _ = run(Unload(), start=at(Phase.READY))
    link, effects = run(SUBMIT, ModelUnloaded(), start=idle)
    assert (link.phase, link.info) == (Phase.READING, None)
    assert effects[-1] == fx.ModelGone()
    link, _ = run(LOADED, token(0), start=link)
    assert link == at(Phase.WRITING)
    link, _ = run(SUBMIT, ModelUnloaded(), failed(), start=idle)
    assert link.phase is Phase.NO_MODEL
    link, effects = run(Load("other"), ModelUnloaded(), start=idle)
    assert (link.phase, link.info) == (Phase.LOADING, None)
    assert not any(isinstance(each, fx.WorkerMistake) for each in effects)


def test_a_released_model_is_loaded_again_within_the_next_answer() -> None:
    idle, effects = run(ModelReleased(), start=at(Phase.READY))
    assert (idle, effects) == (replace(at(Phase.READY), released=True), [])
    progress = LoadProgress("starter", "Reading the weights", 0.5)
    slow = replace(HEARTBEAT, stalled_s=STUCK_S + 1)
    link, effects = run(SUBMIT, progress, slow, LOADED, token(0), start=idle)
    assert link == at(Phase.WRITING)
    kinds = [fx.AnswerBegun, fx.Send, Heartbeat, Token]
    assert [type(effect) for effect in effects] == kinds
    # Its files may have been replaced meanwhile.
    other = replace(LOADED, info=replace(INFO, layers=3))
    link, effects = run(SUBMIT, other, start=idle)
    assert link.info == other.info
    assert effects[-1] == fx.ModelReady(other.info)
    # A load that fails fails the request only, and the next one tries again.
    refused = failed("r1", "generate", "bad-model")
    link, effects = run(SUBMIT, progress, refused, start=idle)
    assert link == idle
    assert effects[-1] == fx.AnswerFailed(refused)
    # A stop while it loads, another model, and none.
    link, _ = run(SUBMIT, progress, Stop(), LOADED, finished(reason="cancelled"), start=idle)
    assert link == at(Phase.READY)
    assert not run(Load("other"), LOADED, start=idle)[0].released
    assert run(Load("other"), failed("", "load_model", "bad-model"), start=idle)[0] == idle
    assert not run(ModelUnloaded(), start=idle)[0].released
    # For a request of the local server, too.
    link, effects = run(Served(1), progress, LOADED, start=idle)
    assert not link.released
    assert not any(isinstance(each, fx.WorkerMistake) for each in effects)


@pytest.mark.parametrize("phase", [Phase.READING, Phase.WRITING])
def test_stop_cancels_once_and_late_tokens_still_count(phase: Phase) -> None:
    link, effects = run(Stop(), Stop(), start=at(phase))
    assert link.phase is Phase.STOPPING
    assert effects == [fx.Send(Cancel("r1"))]
    late = token(1)
    link, effects = run(late, reading(), reading_map(), finished(reason="cancelled"), start=link)
    assert link.phase is Phase.READY
    assert [type(effect) for effect in effects] == [Token, Finished]


def test_a_token_of_another_request_is_the_workers_mistake() -> None:
    link = at(Phase.WRITING)
    step = advance(link, token(1, request="r0"))
    assert step.link == link
    assert isinstance(step.effects[0], fx.WorkerMistake)
    assert "r0" in step.effects[0].message


def test_only_the_first_token_makes_another_link() -> None:
    link = at(Phase.WRITING)
    assert advance(link, token(1)).link is link


@pytest.mark.parametrize(
    "given",
    [reading("r0"), reading_map("r0"), gauges("r0"), finished("r0")],
    ids=["reading", "map", "gauges", "end"],
)
def test_figures_of_another_request_are_refused(given: Input) -> None:
    link = at(Phase.READING)
    assert advance(link, given).link == link


def test_a_failed_request_leaves_the_session_ready() -> None:
    for phase in (Phase.READING, Phase.WRITING, Phase.STOPPING):
        link, effects = run(failed(), start=at(phase))
        assert (link.phase, link.request) == (Phase.READY, "")
        assert effects == [fx.AnswerFailed(failed())]


def test_a_generate_that_could_not_be_decoded_fails_the_running_request() -> None:
    link, effects = run(failed("", "generate", "bad-setting"), start=at(Phase.READING))
    assert link.phase is Phase.READY
    assert effects == [fx.AnswerFailed(failed("r1", "generate", "bad-setting"))]


def test_a_failure_nobody_waited_for_is_told_and_remembered_as_the_reason_of_a_death() -> None:
    blas = Failed("", "start", "request", "missing-library", "OpenBLAS is missing.", "Install it.")
    link, effects = run(blas, replace(KILLED, returncode=1, signal_name=""))
    assert link.phase is Phase.DEAD
    died = effects[-1]
    assert isinstance(effects[0], fx.TroubleHeard)
    assert isinstance(died, fx.WorkerDied)
    assert died.message == "OpenBLAS is missing. Install it."


def test_a_failure_of_an_unknown_request_is_the_workers_mistake() -> None:
    assert isinstance(advance(at(Phase.READY), failed("r0")).effects[0], fx.WorkerMistake)
    assert isinstance(advance(at(Phase.READY), failed("", "load_model")).effects[0], fx.WorkerMistake)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in (Phase.DEAD, Phase.CLOSED)])
def test_death_is_accepted_everywhere_and_cuts_an_answer_off(phase: Phase) -> None:
    before = at(phase)
    link, effects = run(KILLED, start=before)
    assert link == Link("starter", Phase.DEAD, before.info, load_deaths=int(phase is Phase.LOADING))
    cut: list[fx.Effect] = [fx.AnswerCutOff("r1")] if before.busy else []
    assert effects == [*cut, fx.WorkerDied(KILLED, phase.value)]


def test_restart_after_death_loads_the_model_again_and_answers() -> None:
    link, effects = run(Restart(), start=at(Phase.DEAD))
    assert link == Link("starter")
    assert effects == [fx.RestartWorker()]
    link, _ = run(HELLO, LOADED, SUBMIT, token(0), start=link)
    assert link.phase is Phase.WRITING


def test_after_two_deaths_while_loading_no_model_is_loaded() -> None:
    once, _ = run(KILLED, Restart(), HELLO, start=at(Phase.LOADING))
    assert once.phase is Phase.LOADING
    link, effects = run(KILLED, Restart(), HELLO, start=once)
    assert (link.phase, link.load_deaths) == (Phase.NO_MODEL, MOST_LOAD_DEATHS)
    assert not any(isinstance(each, fx.Send) for each in effects)
    assert isinstance(told := effects[-1], fx.LoadFailed)
    assert "twice" in told.failed.message
    # Another model, or the same one on request; a model that loads ends the count.
    for model in ("other", "starter"):
        effects = run(Load(model), start=link)[1]
        assert effects[-1] == fx.Send(LoadModel(model))
    assert run(Load("other"), LOADED, start=link)[0].load_deaths == 0
    assert run(Load("other"), KILLED, Restart(), HELLO, start=link)[0].phase is Phase.LOADING
    # Deaths between loads do not count, and a worker that does not start is another matter.
    assert run(LOADED, KILLED, start=once)[0].load_deaths == 0
    assert run(KILLED, Restart(), KILLED, start=once)[0].load_deaths == 2


@pytest.mark.parametrize("phase", sorted(set(Phase) - {Phase.CLOSED}, key=str))
def test_another_model_can_be_chosen_in_every_phase(phase: Phase) -> None:
    link, effects = run(Load("other"), start=at(phase))
    assert not any(isinstance(each, fx.WindowMistake) for each in effects)
    if phase in (Phase.READING, Phase.WRITING, Phase.STOPPING):  # the answer ends first
        assert fx.Send(Cancel("r1")) in effects or phase is Phase.STOPPING
        link, more = run(finished(reason="cancelled"), start=link)
        effects += more
    if link.phase is Phase.STARTING:
        assert fx.RestartWorker() in effects or phase is Phase.STARTING
        link, effects = run(HELLO, start=link)
    assert fx.Send(LoadModel("other")) in effects
    link, _ = run(LOADED, start=link)
    assert (link.phase, link.model, link.before) == (Phase.READY, "other", "")


def test_restart_in_mid_answer_cuts_it_off_first() -> None:
    link, effects = run(Restart(), start=at(Phase.WRITING))
    assert link.phase is Phase.STARTING
    assert effects == [fx.AnswerCutOff("r1"), fx.RestartWorker()]


def test_a_worker_that_cannot_be_started_is_dead() -> None:
    link, effects = run(SpawnFailed("No such file.", "Reinstall Draftlight."))
    assert link.phase is Phase.DEAD
    assert effects == [fx.WorkerDied(None, "starting", "No such file. Reinstall Draftlight.")]


def test_a_worker_of_another_protocol_is_not_used() -> None:
    link, effects = run(replace(HELLO, protocol=99))
    assert link.phase is Phase.DEAD
    (died,) = effects
    assert isinstance(died, fx.WorkerDied)
    assert "99" in died.message


def test_silence_is_told_and_any_word_breaks_it() -> None:
    link, effects = run(WorkerSilent(15.0), start=at(Phase.WRITING))
    assert link.quiet
    assert effects == [fx.WorkerStuck(15.0)]
    link, effects = run(token(1), start=link)
    assert not link.quiet
    assert [type(effect) for effect in effects] == [fx.SilenceBroken, Token]


def test_a_stuck_main_thread_is_told_once_although_the_process_breathes() -> None:
    stuck = Heartbeat("decoding", STUCK_S, 1, 2)
    link, effects = run(stuck, stuck, start=at(Phase.WRITING))
    assert link.quiet
    assert [type(effect) for effect in effects] == [Heartbeat, fx.WorkerStuck, Heartbeat]
    link, effects = run(HEARTBEAT, start=link)
    assert not link.quiet
    assert isinstance(effects[0], fx.SilenceBroken)


def test_a_long_load_is_not_stuck() -> None:
    beat = Heartbeat("loading", 10 * STUCK_S, 1, 2)
    link, effects = run(beat, start=at(Phase.LOADING))
    assert not link.quiet
    assert effects == [beat]


def test_a_bad_line_is_the_workers_mistake_and_the_answer_goes_on() -> None:
    before = at(Phase.WRITING)
    link, effects = run(BadLine("not an event"), token(1), start=before)
    assert effects[0] == fx.WorkerMistake("not an event")
    assert link == before
    assert effects[1] == token(1)


def test_closing_cuts_off_and_then_nothing_matters() -> None:
    link, effects = run(Close(), token(1), WorkerExited(0, "", (), True), start=at(Phase.WRITING))
    assert link.phase is Phase.CLOSED
    assert effects == [fx.AnswerCutOff("r1", closing=True)]


def test_only_answering_is_busy_and_only_a_process_is_alive() -> None:
    busy = {phase for phase in Phase if at(phase).busy}
    assert busy == {Phase.READING, Phase.WRITING, Phase.STOPPING}
    assert {phase for phase in Phase if not at(phase).alive} == {Phase.DEAD, Phase.CLOSED}


def test_hello_type_is_the_only_first_word() -> None:
    legal = {kind for kind, (phases, _) in RULES.items() if Phase.STARTING in phases}
    events = legal - set(INTENTS)
    assert events == {Hello, Failed, Heartbeat, WorkerExited, WorkerSilent, BadLine}
