"""Effects of the state machine: frozen records that the window carries out in order.

Names in the past tense are facts to show; `Send` and `RestartWorker` are actions. An event that is only to be
shown is its own effect.
"""

from __future__ import annotations

from msgspec import Struct

from core.events import (
    Command,
    Event,
    Failed,
    Finished,
    Gauges,
    ModelInfo,
    PrefillProgress,
    ReadingMap,
    Token,
)
from core.events.codec import WorkerExited


class Send(Struct, frozen=True):
    """Write `command` to the worker."""

    command: Command


class RestartWorker(Struct, frozen=True):
    """End the process, if any, and start another."""


class LoadStarted(Struct, frozen=True):
    """A model is being loaded; `stage` is empty until the worker names one."""

    model: str
    stage: str
    fraction: float | None


class ModelReady(Struct, frozen=True):
    """Questions can be sent."""

    info: ModelInfo


class ModelGone(Struct, frozen=True):
    """The model was unloaded on request."""


class LoadFailed(Struct, frozen=True):
    """`model` could not be loaded; `kept` is the name of the previous model, which stays loaded."""

    failed: Failed
    kept: str = ""
    model: str = ""


class AnswerBegun(Struct, frozen=True):
    """The worker accepted the request."""

    request: str


class AnswerFailed(Struct, frozen=True):
    """The worker refused or abandoned the request."""

    failed: Failed


class TroubleHeard(Struct, frozen=True):
    """The worker reports a failure that belongs to no request of the window."""

    failed: Failed


class AnswerCutOff(Struct, frozen=True):
    """The worker exited during an answer; the received tokens stay."""

    request: str
    closing: bool = False  # the window is closing; else the worker exited


class WorkerReady(Struct, frozen=True):
    """A new worker accepts commands."""


class WorkerDied(Struct, frozen=True):
    """The process ended unexpectedly in the phase `phase`, or never started (`exited` is None).

    `message` is the reason in words, if known.
    """

    exited: WorkerExited | None
    phase: str
    message: str = ""


class WorkerStuck(Struct, frozen=True):
    """The process is alive but has not responded for `seconds`."""

    seconds: float


class SilenceBroken(Struct, frozen=True):
    """The stuck worker responds again."""


class WindowMistake(Struct, frozen=True):
    """The window sent an intent in the wrong phase: our bug."""

    message: str


class WorkerMistake(Struct, frozen=True):
    """The worker sent an event that is not allowed now: a bug in the worker, or a broken pipe."""

    message: str


# Events of the running answer, in order; the last three end it.
AnswerEvent = (
    AnswerBegun | PrefillProgress | ReadingMap | Token | Gauges | Finished | AnswerFailed | AnswerCutOff
)
Effect = (
    Send
    | RestartWorker
    | LoadStarted
    | ModelReady
    | ModelGone
    | LoadFailed
    | AnswerBegun
    | AnswerFailed
    | AnswerCutOff
    | TroubleHeard
    | WorkerReady
    | WorkerDied
    | WorkerStuck
    | SilenceBroken
    | WindowMistake
    | WorkerMistake
    | Event
)
