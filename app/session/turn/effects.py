"""What the state machine asks for: frozen records, carried out in order by the window.

Names in the past tense are facts to show; `Send` and `RestartWorker` are things to do.
"""

from __future__ import annotations

from msgspec import Struct

from core.events import (
    ClusterEnded,
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
    """End the process if there is one and start another."""


class LoadStarted(Struct, frozen=True):
    """The model is on its way; `stage` is empty until the worker names one."""

    model: str
    stage: str
    fraction: float | None


class Missing(Struct, frozen=True):
    """A machine over which a model was to run and does not, and why."""

    name: str
    problem: str


class ModelReady(Struct, frozen=True):
    """Questions can be asked. `missing` are machines that the model was to run over, too."""

    info: ModelInfo
    missing: tuple[Missing, ...] = ()


class ModelGone(Struct, frozen=True):
    """No model is loaded any more, because that was wanted."""


class LoadFailed(Struct, frozen=True):
    """`model` could not be loaded; `kept` is the name of the one that was loaded before and still is.

    `missing` are the machines that were left out before.
    """

    failed: Failed
    kept: str = ""
    model: str = ""
    missing: tuple[Missing, ...] = ()


class AnswerBegun(Struct, frozen=True):
    """The request was accepted and is on its way."""

    request: str


class ReadingHeard(Struct, frozen=True):
    """The prompt is being read."""

    progress: PrefillProgress


class MapHeard(Struct, frozen=True):
    """What of the prompt will be read, and what will be skipped."""

    map: ReadingMap


class TokenHeard(Struct, frozen=True):
    """One token of the running answer."""

    token: Token


class GaugesHeard(Struct, frozen=True):
    """Live figures of the running answer."""

    gauges: Gauges


class AnswerFinished(Struct, frozen=True):
    """The answer ended as the worker meant it to (end of text, length, or a stop)."""

    finished: Finished


class AnswerFailed(Struct, frozen=True):
    """The worker refused or gave up on the request."""

    failed: Failed


class TroubleHeard(Struct, frozen=True):
    """The worker says that something failed which no request of ours was waiting for."""

    failed: Failed


class AnswerCutOff(Struct, frozen=True):
    """The worker is gone in mid-answer; the tokens that arrived stay."""

    request: str
    closing: bool = False  # the person closes the window; else the worker is gone


class ServedHeard(Struct, frozen=True):
    """An event of a request of the local server."""

    event: Event


class ServedCutOff(Struct, frozen=True):
    """The worker is gone while it answered the local server."""


class Counted(Struct, frozen=True):
    """Answer to a count; `tokens` is None if the worker could not count.

    `dense_s`: how long reading all of them takes; None if that is not known.
    """

    request: str
    tokens: int | None
    dense_s: float | None = None


class OutOfBand(Struct, frozen=True):
    """Something that the turn does not depend on, asked for or not."""

    event: Event


class TablesFailed(Struct, frozen=True):
    """The worker refused or gave up on a command about the tables."""

    failed: Failed


class ModelsFailed(Struct, frozen=True):
    """The worker refused or gave up on a command about the models on the disk."""

    failed: Failed


class MemoryHeard(Struct, frozen=True):
    """The worker's memory, and the most it may use."""

    used_bytes: int
    limit_bytes: int


class WorkerDied(Struct, frozen=True):
    """The process ended on its own, in phase `phase`, or (`exited` None) never started.

    `message` is a reason in words, where one is known; `ended`: a machine was the reason.
    """

    exited: WorkerExited | None
    phase: str
    message: str = ""
    ended: ClusterEnded | None = None


class WorkerStuck(Struct, frozen=True):
    """The process lives and has not moved for `seconds`."""

    seconds: float


class SilenceBroken(Struct, frozen=True):
    """The stuck worker moves again."""


class WindowMistake(Struct, frozen=True):
    """The window asked for something at the wrong time. Our bug."""

    message: str


class WorkerMistake(Struct, frozen=True):
    """The worker said something that it may not say now. Its bug, or a broken wire."""

    message: str


Effect = (
    Send
    | RestartWorker
    | LoadStarted
    | ModelReady
    | ModelGone
    | LoadFailed
    | AnswerBegun
    | ReadingHeard
    | MapHeard
    | TokenHeard
    | GaugesHeard
    | AnswerFinished
    | AnswerFailed
    | TroubleHeard
    | AnswerCutOff
    | ServedHeard
    | ServedCutOff
    | Counted
    | OutOfBand
    | TablesFailed
    | ModelsFailed
    | MemoryHeard
    | WorkerDied
    | WorkerStuck
    | SilenceBroken
    | WindowMistake
    | WorkerMistake
)
