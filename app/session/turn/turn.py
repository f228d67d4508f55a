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

While requests of the local server are ahead, submit leads to `waiting`, and from there, once none is, to
reading. A model that such a request names is loaded in `ready`, `no_model` or `waiting`; the question waits
for that too, and then for the model that it was asked of.

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
    Ahead,
    Close,
    Intent,
    Load,
    Restart,
    SpawnFailed,
    Stop,
    Unload,
)
from app.session.turn.link_state import Link, Phase, Transition
from core.events import (
    PROTOCOL,
    Cancel,
    DownloadProgress,
    Effective,
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
    ReadAheadProgress,
    ReadingMap,
    SavedChatsListed,
    Stats,
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
    if isinstance(given, LoadProgress | ModelLoaded) and link.phase is not Phase.LOADING:
        if link.before:
            phases = _SPOKEN
        elif link.released:
            phases, rule = _SPOKEN, _reloads
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
    return Transition(link, (LoadStarted(given.model, given.stage, given.fraction),))


def _model_loaded(link: Link, given: ModelLoaded) -> Transition:
    phase = Phase.WAITING if link.pending else Phase.READY
    after = replace(link, phase=phase, info=given.info, released=False, load_deaths=0)
    return Transition(_settled(after), (ModelReady(given.info),))


def _model_unloaded(link: Link, given: ModelUnloaded) -> Transition:
    return Transition(replace(link, phase=Phase.NO_MODEL, info=None, released=False), (ModelGone(),))


def _model_released(link: Link, given: ModelReleased) -> Transition:
    return Transition(replace(link, released=True))


def _reloads(link: Link, given: LoadProgress | ModelLoaded) -> Transition:
    """A request loads the released model again; the turn goes on as if it had been loaded all the time."""
    if isinstance(given, LoadProgress):
        return Transition(link)
    ready = (ModelReady(given.info),) if given.info != link.info else ()  # its files were changed meanwhile
    return Transition(replace(link, info=given.info, released=False), ready)


def _reading(link: Link, given: PrefillProgress | ReadingMap) -> Transition:
    return _of_running(link, given, given.request) or Transition(
        link, () if link.phase is Phase.STOPPING else (given,)
    )


def _token(link: Link, given: Token) -> Transition:
    if refused := _of_running(link, given, given.request):
        return refused
    # Only the first token changes the link.
    after = replace(link, phase=Phase.WRITING) if link.phase is Phase.READING else link
    return Transition(after, (given,))


def _gauges(link: Link, given: Gauges) -> Transition:
    return _of_running(link, given, given.request) or Transition(link, (given,))


def _finished(link: Link, given: Finished) -> Transition:
    return _of_running(link, given, given.request) or Transition(_idle(link), (given,))


def _failed(link: Link, given: Failed) -> Transition:
    if given.command == "load_model":
        if not link.loading:
            return _refuse(link, given, "answers no load")
        phase = Phase.READY if link.info else Phase.NO_MODEL
        after = replace(link, phase=Phase.WAITING if link.pending else phase)
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
    begun = AnswerBegun(given.request)
    if link.ahead:
        waiting = replace(
            link, phase=Phase.WAITING, request=given.request, pending=given, asked_of=link.model
        )
        return Transition(waiting, (begun,))
    return Transition(replace(link, phase=Phase.READING, request=given.request), (begun, Send(given)))


def _ahead(link: Link, given: Ahead) -> Transition:
    if link.pending is None or given.requests:
        return Transition(replace(link, ahead=given.requests))
    if link.before:
        return Transition(link)  # a model is still being loaded; `ahead` stays, so that this is called again
    asked_of = link.asked_of
    if asked_of and asked_of != link.model:
        return _load(replace(link, asked_of=""), Load(asked_of))
    after = replace(link, phase=Phase.READING, pending=None, asked_of="", ahead=0)
    return Transition(after, (Send(link.pending),))


def _stop(link: Link, given: Stop) -> Transition:
    if link.phase is Phase.STOPPING:
        return Transition(link)
    if link.pending is not None:
        # Sent by the window itself, since the worker never received the command.
        asked, info = link.pending, link.info
        name, dtype = (info.name, info.dtype) if info else ("", "")
        effective = Effective(name, dtype, asked.settings.drafting.drafter, asked.settings)
        return Transition(_idle(link), (Finished(link.request, "cancelled", Stats(), effective),))
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
    phase = Phase.WAITING if link.pending else Phase.LOADING
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
    phase = Phase.LOADING if link.before else Phase.READY
    return replace(link, phase=phase, request="", pending=None, asked_of="", ahead=0)


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
_LOADING = frozenset({Phase.LOADING})
_NEVER: frozenset[Phase] = frozenset()
_ANSWERING = frozenset({Phase.READING, Phase.WRITING, Phase.STOPPING})

_OF_THE_TURN: dict[type, tuple[frozenset[Phase], Rule]] = {
    Hello: (frozenset({Phase.STARTING}), _hello),
    LoadProgress: (_LOADING, _load_progress),
    ModelLoaded: (_LOADING, _model_loaded),
    ModelUnloaded: (frozenset({Phase.READY, Phase.NO_MODEL}), _model_unloaded),
    ModelReleased: (_SPOKEN, _model_released),
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
    Stop: (_ANSWERING | {Phase.WAITING}, _stop),
    Ahead: (frozenset(Phase), _ahead),
    Restart: (frozenset(Phase) - {Phase.CLOSED}, _restart),
    Load: (frozenset(Phase) - {Phase.CLOSED}, _load),
    Unload: (frozenset({Phase.READY}), _unload),
    SpawnFailed: (frozenset({Phase.STARTING}), _spawn_failed),
    Close: (frozenset(Phase), _close),
}
# Events that do not concern the turn: the window shows them.
OUT_OF_BAND = (DownloadProgress, ModelList, ReadAheadProgress, SavedChatsListed, TableStatus)
EFFECTS = set(get_args(Effect)) - set(get_args(Event)) | {
    PrefillProgress,
    ReadingMap,
    Token,
    Gauges,
    Finished,
    Heartbeat,
    *OUT_OF_BAND,
}
RULES: dict[type, tuple[frozenset[Phase], Rule]] = _OF_THE_TURN | dict.fromkeys(
    OUT_OF_BAND, (_SPOKEN, _out_of_band)
)
