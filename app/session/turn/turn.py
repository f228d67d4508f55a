"""The link to the worker and the turn that runs over it, as one pure state machine.

Theory of operation. A window has one worker, and a worker answers one request at a time, so
both lives fit into one `Phase`:

    starting ─hello→ loading ─model_loaded→ ready ─submit→ reading ─token→ writing
                        │                     ↑               │  stop         │ stop
                        └─failed→ no_model    │               └──→ stopping ←─┘
                                              └── finished | failed ──┘
    any of them ─exited→ dead ─restart→ starting           any ─close→ closed

After two deaths in a row while a model is loading, `starting` leads to `no_model`. A model can be chosen in
every phase: a running answer is stopped first, and a worker that is loading is replaced.

The worker has the queue: while it answers requests of the local server, a question is `reading` with others
`ahead`. It may load another model for such a request in any phase; the question names the model that was
loaded when it was sent, which is loaded again for it.

`advance(link, input)` receives an event of the worker (including `WorkerExited`, `WorkerSilent` and
`BadLine`) or an intent of the user and returns the next state with the effects to carry out, in order.
It performs nothing itself: no Qt, clock, thread or I/O.

`RULES` maps the type of an input to the phases that accept it. An input that is not accepted changes
nothing. Its sender is at fault: `WindowMistake` for an intent (our bug), `WorkerMistake` for an event
(the worker's bug). The worker's death is accepted in every phase, and the text written so far is kept.

Chats, widgets and the texts shown are handled elsewhere; `app/session/trouble.py` has the texts of problems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from msgspec.structs import replace

from app.session import strings
from app.session.turn.effects import (
    AnswerBegun,
    AnswerCutOff,
    AnswerEvent,
    AnswerFailed,
    Effect,
    LoadFailed,
    LoadStarted,
    ModelGone,
    ModelReady,
    RestartWorker,
    Send,
    SilenceBroken,
    TroubleHeard,
    WindowMistake,
    WorkerDied,
    WorkerMistake,
    WorkerReady,
    WorkerStuck,
)
from app.session.turn.intents import (
    INTENTS,
    Close,
    Intent,
    Load,
    Restart,
    Served,
    SpawnFailed,
    Stop,
    Unload,
)
from app.session.turn.link_state import Link, Phase, Transition
from core.events import (
    PROTOCOL,
    Cancel,
    DownloadProgress,
    Event,
    Failed,
    Finished,
    Gauges,
    Generate,
    Heartbeat,
    Hello,
    LoadModel,
    LoadProgress,
    ModelList,
    ModelLoaded,
    ModelReleased,
    ModelUnloaded,
    PrefillProgress,
    Queued,
    ReadAheadProgress,
    ReadingMap,
    SavedChatsListed,
    TableStatus,
    Token,
    UnloadModel,
)
from core.events.codec import BadLine, WorkerEvent, WorkerExited, WorkerSilent

# A chunk of prefill on a slow machine takes seconds, loading is not counted: a main thread
# that has not moved for a minute while it should be answering is stuck.
STUCK_S = 60.0
MOST_LOAD_DEATHS = 2


Input = WorkerEvent | Intent


# Each rule takes the type of input that it is filed under in RULES.
Rule = Callable[[Link, Any], Transition]


def advance(link: Link, given: Input) -> Transition:
    """Returns the next state and the effects of `given`. Never raises, whatever the worker sent."""
    if link.phase is Phase.CLOSED and not isinstance(given, INTENTS):
        return Transition(link)  # a late event from a worker that is being stopped
    phases, rule = RULES.get(type(given), (_NEVER, _out_of_band))
    if link.phase not in phases:
        return _refuse(link, given, f"does not belong into the phase “{link.phase.value}”")
    if link.quiet and not isinstance(given, INTENTS) and _is_sign_of_life(given):
        step = rule(replace(link, quiet=False), given)
        return Transition(step.link, (SilenceBroken(), *step.effects))
    return rule(link, given)


# ---- rules, one an input


def _hello(link: Link, given: Hello) -> Transition:
    if given.protocol != PROTOCOL:
        why = f"It speaks version {given.protocol} of the protocol, this window version {PROTOCOL}."
        return _dead(link, WorkerDied(None, link.phase.value, why))
    if link.load_deaths >= MOST_LOAD_DEATHS:
        failed = Failed("", "load_model", "worker", "worker-failed", strings.LOAD_DEATHS, strings.OTHER_MODEL)
        no_model = replace(link, phase=Phase.NO_MODEL)
        return Transition(no_model, (WorkerReady(), LoadFailed(failed, "", link.model)))
    loading = replace(link, phase=Phase.LOADING)
    started = LoadStarted(link.model, "", None)
    return Transition(loading, (WorkerReady(), started, Send(LoadModel(link.model))))


def _load_progress(link: Link, given: LoadProgress) -> Transition:
    if not link.loading or given.model != link.model:
        return Transition(link)  # for a request
    return Transition(link, (LoadStarted(given.model, given.stage, given.fraction),))


def _model_loaded(link: Link, given: ModelLoaded) -> Transition:
    info = given.info
    if link.loading and info.reference in ("", link.model):
        after = replace(link, phase=_unless_busy(link, Phase.READY), info=info, released=False, load_deaths=0)
        return Transition(_settled(after), (ModelReady(info),))
    if link.loading:  # for a request, before the one that is to be loaded
        return Transition(replace(link, info=info))
    # For a request; its files may have changed if it had been released.
    phase = Phase.READY if link.phase is Phase.NO_MODEL else link.phase
    after = replace(link, phase=phase, info=info, model=info.reference or link.model, released=False)
    return Transition(after, (ModelReady(info),) if info != link.info else ())


def _model_unloaded(link: Link, given: ModelUnloaded) -> Transition:
    # A request sent before continues: an answer, for which the model is loaded again, or a load.
    phase = Phase.LOADING if link.phase is Phase.LOADING else _unless_busy(link, Phase.NO_MODEL)
    return Transition(replace(link, phase=phase, info=None, released=False), (ModelGone(),))


def _model_released(link: Link, given: ModelReleased) -> Transition:
    return Transition(replace(link, released=True))


def _reading(link: Link, given: PrefillProgress | ReadingMap) -> Transition:
    return _of_running(link, given, given.request) or Transition(
        _begun(link), () if link.phase is Phase.STOPPING else (given,)
    )


def _queued(link: Link, given: Queued) -> Transition:
    return _of_running(link, given, given.request) or Transition(replace(link, ahead=given.ahead))


def _token(link: Link, given: Token) -> Transition:
    if refused := _of_running(link, given, given.request):
        return refused
    # Only the first token changes the link.
    after = replace(link, phase=Phase.WRITING) if link.phase is Phase.READING else link
    return Transition(_begun(after), (given,))


def _gauges(link: Link, given: Gauges) -> Transition:
    return _of_running(link, given, given.request) or Transition(link, (given,))


def _finished(link: Link, given: Finished) -> Transition:
    return _of_running(link, given, given.request) or Transition(_idle(link), (given,))


def _failed(link: Link, given: Failed) -> Transition:
    if given.command == "load_model":
        if not link.loading:
            return _refuse(link, given, "answers no load")
        phase = Phase.READY if link.info else Phase.NO_MODEL
        after = replace(link, phase=_unless_busy(link, phase))
        if link.before:
            after = replace(after, model=link.before)
        kept = link.info.name if link.info else ""
        return Transition(_settled(after), (LoadFailed(given, kept, link.model),))
    # A generate command that could not be decoded fails without its id.
    own = given.request or (link.request if given.command in ("", "generate") else "")
    if link.busy and own == link.request:
        return Transition(_idle(link), (AnswerFailed(replace(given, request=own)),))
    if not given.request:
        return Transition(replace(link, complaint=_sentence(given)), (TroubleHeard(given),))
    return _refuse(link, given, f"answers no command that is open: {given.message}")


def _out_of_band(link: Link, given: Event) -> Transition:
    return Transition(link, (given,))


def _heartbeat(link: Link, given: Heartbeat) -> Transition:
    loads = given.activity == "loading" and not link.loading
    if loads != link.loads:
        link = replace(link, loads=loads)
    if _is_stuck(given) and not link.quiet:
        return Transition(replace(link, quiet=True), (given, WorkerStuck(given.stalled_s)))
    return Transition(link, (given,))


def _exited(link: Link, given: WorkerExited) -> Transition:
    return _dead(link, WorkerDied(given, link.phase.value, link.complaint))


def _spawn_failed(link: Link, given: SpawnFailed) -> Transition:
    return _dead(link, WorkerDied(None, link.phase.value, _sentence(given)))


def _silent(link: Link, given: WorkerSilent) -> Transition:
    return Transition(replace(link, quiet=True), (WorkerStuck(given.seconds),))


def _bad_line(link: Link, given: BadLine) -> Transition:
    return Transition(link, (WorkerMistake(given.message),))


def _submit(link: Link, given: Generate) -> Transition:
    asked = replace(given, model=link.info.reference if link.info else "")
    reading = replace(link, phase=Phase.READING, request=given.request)
    return Transition(reading, (AnswerBegun(given.request), Send(asked)))


def _served(link: Link, given: Served) -> Transition:
    return Transition(replace(link, served=given.requests))


def _stop(link: Link, given: Stop) -> Transition:
    if link.phase is Phase.STOPPING:
        return Transition(link)
    return Transition(replace(link, phase=Phase.STOPPING), (Send(Cancel(link.request)),))


def _restart(link: Link, given: Restart) -> Transition:
    effects = (*_cut_off(link), RestartWorker())
    return Transition(Link(link.model, load_deaths=link.load_deaths), effects)


def _load(link: Link, given: Load) -> Transition:
    deaths = link.load_deaths if given.model == link.model else 0
    if link.phase is Phase.STARTING:
        return Transition(replace(link, model=given.model, load_deaths=deaths))
    if link.loading and given.model == link.model:
        return Transition(link)
    if link.loading or link.phase is Phase.DEAD:  # a load cannot be interrupted
        effects = (*_cut_off(link), RestartWorker())
        return Transition(Link(given.model, load_deaths=deaths), effects)
    phase = Phase.LOADING
    stop: tuple[Effect, ...] = ()
    if link.phase in _ANSWERING:
        stop = () if link.phase is Phase.STOPPING else (Send(Cancel(link.request)),)
        phase = Phase.STOPPING
    return Transition(
        replace(
            link,
            phase=phase,
            model=given.model,
            before=link.model if link.info else "",
            load_deaths=deaths,
        ),
        (*stop, LoadStarted(given.model, "", None), Send(LoadModel(given.model))),
    )


def _unload(link: Link, given: Unload) -> Transition:
    return Transition(link, (Send(UnloadModel()),))


def _close(link: Link, given: Close) -> Transition:
    closed = Link(link.model, Phase.CLOSED, link.info, load_deaths=link.load_deaths)
    return Transition(closed, _cut_off(link, closing=True))


# ---- shared pieces


def _idle(link: Link) -> Link:
    phase = Phase.READY if link.info else Phase.NO_MODEL
    return replace(link, phase=Phase.LOADING if link.before else phase, request="", ahead=0)


def _begun(link: Link) -> Link:
    """The turn of the request has come."""
    return replace(link, ahead=0) if link.ahead else link


def _unless_busy(link: Link, phase: Phase) -> Phase:
    """`phase`, unless an answer is still being stopped."""
    return link.phase if link.busy else phase


def _settled(link: Link) -> Link:
    """Clear the state of a load that has ended."""
    return replace(link, before="")


def _dead(link: Link, died: WorkerDied) -> Transition:
    # A model that cannot be loaded without the worker's death is not loaded again; the start's is, once.
    deaths = link.load_deaths + 1 if link.phase is Phase.LOADING and not link.before else 0
    if link.phase is Phase.STARTING:
        deaths = link.load_deaths
    dead = Link(link.before or link.model, Phase.DEAD, link.info, load_deaths=deaths)
    return Transition(dead, (*_cut_off(link), died))


def _cut_off(link: Link, *, closing: bool = False) -> tuple[Effect, ...]:
    return (AnswerCutOff(link.request, closing),) if link.busy else ()


def _sentence(failed: Failed | SpawnFailed) -> str:
    return f"{failed.message} {failed.hint}".strip()


def _of_running(link: Link, given: Input, request: str) -> Transition | None:
    """Returns None if `request` is the running one, else the refusal."""
    if link.busy and request == link.request:
        return None
    return _refuse(link, given, f"belongs to the request “{request}”, which is not running")


def _is_sign_of_life(given: Input) -> bool:
    """Whether the event shows that the main thread responds. A heartbeat from a stuck one does not."""
    if isinstance(given, WorkerExited | WorkerSilent):
        return False
    return not (isinstance(given, Heartbeat) and _is_stuck(given))


def _is_stuck(beat: Heartbeat) -> bool:
    """Whether an answer has not moved for long. A load may take long."""
    return beat.activity in ("prefilling", "decoding") and beat.stalled_s >= STUCK_S


def _refuse(link: Link, given: Input, why: str) -> Transition:
    name = type(given).__name__
    if isinstance(given, INTENTS):
        return Transition(link, (WindowMistake(f"{name} {why}."),))
    return Transition(link, (WorkerMistake(f"{name} {why}."),))


# ---- what may happen when

_ALIVE = frozenset(Phase) - {Phase.DEAD, Phase.CLOSED}
_SPOKEN = _ALIVE - {Phase.STARTING}
_NEVER: frozenset[Phase] = frozenset()
_ANSWERING = frozenset({Phase.READING, Phase.WRITING, Phase.STOPPING})

_OF_THE_TURN: dict[type, tuple[frozenset[Phase], Rule]] = {
    Hello: (frozenset({Phase.STARTING}), _hello),
    LoadProgress: (_SPOKEN, _load_progress),
    ModelLoaded: (_SPOKEN, _model_loaded),
    ModelUnloaded: (_SPOKEN, _model_unloaded),
    ModelReleased: (_SPOKEN, _model_released),
    Queued: (_ANSWERING, _queued),
    PrefillProgress: (frozenset({Phase.READING, Phase.STOPPING}), _reading),
    ReadingMap: (frozenset({Phase.READING, Phase.STOPPING}), _reading),
    Token: (_ANSWERING, _token),
    Gauges: (_ANSWERING, _gauges),
    Finished: (_ANSWERING, _finished),
    Failed: (_ALIVE, _failed),
    Heartbeat: (_ALIVE, _heartbeat),
    WorkerExited: (_ALIVE, _exited),
    WorkerSilent: (_ALIVE, _silent),
    BadLine: (_ALIVE, _bad_line),
    Generate: (frozenset({Phase.READY}), _submit),
    Stop: (_ANSWERING, _stop),
    Served: (frozenset(Phase), _served),
    Restart: (frozenset(Phase) - {Phase.CLOSED}, _restart),
    Load: (frozenset(Phase) - {Phase.CLOSED}, _load),
    Unload: (frozenset({Phase.READY}), _unload),
    SpawnFailed: (frozenset({Phase.STARTING}), _spawn_failed),
    Close: (frozenset(Phase), _close),
}
# Events that do not concern the turn: the window shows them.
OUT_OF_BAND = (DownloadProgress, ModelList, ReadAheadProgress, SavedChatsListed, TableStatus)
EFFECTS = set(get_args(Effect)) - set(get_args(Event)) | {*get_args(AnswerEvent), Heartbeat, *OUT_OF_BAND}
RULES: dict[type, tuple[frozenset[Phase], Rule]] = _OF_THE_TURN | dict.fromkeys(
    OUT_OF_BAND, (_SPOKEN, _out_of_band)
)
