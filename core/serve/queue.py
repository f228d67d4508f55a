"""The server's requests to one worker: `WorkerGate`, `Answers`, `ServedAnswer`, and models by their names.

The worker has the queue (`core/worker/queue.py`): a request is sent as soon as a model is loaded, in the
order of arrival, and waits there. Its command is made for the model that is loaded then. With
`InstalledModels`, a request that names another one takes a turn first: the worker loads that model when the
turn has come, and only then is the command made. A request whose worker ended before its turn is sent to the
next one.

`WorkerGate` tracks whether the worker has a model and sends it commands. Everything happens on the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import ceil
from pathlib import Path, PurePath
from typing import Any, Generic, Literal, Protocol, TypeVar

from msgspec.structs import replace

from core.errors import DraftlightError, NoModelError, RequestError, WorkerError
from core.events import (
    Cancel,
    Command,
    Event,
    Failed,
    Finished,
    Generate,
    LoadProgress,
    ModelEntry,
    ModelInfo,
    ModelLoaded,
    ModelReleased,
    ModelUnloaded,
    Queued,
    TakeTurn,
    TurnTaken,
    api_id,
    failure,
)
from core.events.codec import WorkerEvent, WorkerExited
from core.serve.images import ServedImages
from core.serve.served_requests import ServedRequest, ServedRequests
from core.worker.client import CommandError

_RECENT = 16
_UNKNOWN_S = 10.0
_SOON_S = 1.0
_MOST_WAIT_S = 3600


class QueueFullError(RequestError):
    """The queue is full."""

    code = "queue-full"
    # Predicted time until a place is free (`QueuePace`); 0 if unknown.
    retry_after_s = 0

    def __init__(self, length: int) -> None:
        super().__init__(
            f"The queue is full (limit: {length} waiting).", "Try again later, or raise the limit."
        )


class QueuePace:
    """Predicts when a full queue has room, from the durations of recent answers. Times are in seconds."""

    def __init__(self) -> None:
        self._durations_s: deque[float] = deque(maxlen=_RECENT)
        self._began_s: float | None = None
        self._promised_s = 0.0

    def begin(self, now_s: float) -> None:
        """The worker begins an answer."""
        self._began_s = now_s

    def end(self, now_s: float) -> None:
        """That answer has ended."""
        if self._began_s is not None:
            self._durations_s.append(now_s - self._began_s)
            self._began_s = None

    def room_in_s(self, now_s: float) -> int:
        """Seconds until the queue has room. Each call reserves it, so the next call returns a later time."""
        durations = self._durations_s
        mean_s = sum(durations) / len(durations) if durations else _UNKNOWN_S
        elapsed_s = now_s - self._began_s if self._began_s is not None else 0.0
        free_s = now_s + max(mean_s - elapsed_s, _SOON_S)
        if self._promised_s > now_s:
            free_s = max(free_s, self._promised_s + mean_s)
        self._promised_s = free_s
        return min(_MOST_WAIT_S, max(1, ceil(free_s - now_s)))


# `starting`: a model is being loaded; `empty`: none is.
GateState = Literal["starting", "ready", "empty"]
_Reply = TypeVar("_Reply")
_WORKER_FAILED = "worker-failed"
_DIED = "The worker that was answering ended."
_DIED_HINT = "Try again: the worker is being restarted."


class Worker(Protocol):
    """The worker behind a gate, one process after another."""

    async def ask(self, command: Command, kind: type[_Reply], progress: Callable[[Any], None]) -> _Reply:
        """See `WorkerClient.ask`."""
        ...

    def post(self, command: Command) -> None:
        """Send a command without a reply. `Cancel` stops a request within a step or a chunk."""
        ...


class WorkerGate:
    """The worker, and whether it has a model. `wanted` is called when a request waits for one, so that the
    owner can start a worker on demand.
    """

    def __init__(self, worker: Worker, wanted: Callable[[], None] = lambda: None) -> None:
        self.worker = worker
        self.open = 0  # commands without a reply
        self._wanted = wanted
        self._waits: list[asyncio.Event] = []
        self.state: GateState = "starting"
        self.model: ModelInfo | None = None
        # The model was idle and left memory; the next request loads it again.
        self.released = False

    @property
    def is_awaited(self) -> bool:
        """Whether a request waits for a model."""
        return bool(self._waits)

    async def ask(
        self, command: Command, kind: type[_Reply], progress: Callable[[Any], None] = lambda event: None
    ) -> _Reply | Failed:
        """The worker's reply to `command`, or why there is none. `progress` gets the events before it."""
        self.open += 1
        try:
            return await self.worker.ask(command, kind, progress)
        except CommandError as error:
            return error.failed
        except WorkerError:
            return Failed("", "generate", "worker", _WORKER_FAILED, _DIED, _DIED_HINT)
        except DraftlightError as error:
            return failure(error, command="generate")
        finally:
            self.open -= 1

    async def settled(self) -> None:
        """Wait while a model is being loaded, without a limit."""
        if self.state != "starting":
            return
        changed = asyncio.Event()
        self._waits.append(changed)
        self._wanted()
        try:
            while self.state == "starting":
                changed.clear()
                await changed.wait()
        finally:
            self._waits.remove(changed)

    # ---- for the owner of the worker

    def handle(self, event: WorkerEvent) -> None:
        """Handle an event about the worker or its model."""
        match event:
            case WorkerExited():
                self.lose()
            case ModelLoaded(info):
                self.released = False
                self._set("ready", info)
            case ModelReleased():
                self.released = True
            case ModelUnloaded():
                self._set("empty", None)
            case LoadProgress() if self.model is None:
                self._set("starting", None)
            case Failed(request, command="load_model") if not request and self.model is None:
                self._set("empty", None)
            case _:
                pass

    def follow(self, state: GateState, model: ModelInfo | None, *, released: bool = False) -> None:
        """Set the state, if the owner has it."""
        self.released = released
        self._set(state, model)

    def lose(self) -> None:
        """The worker exited. Its owner starts another one if it had a model."""
        self.released = False
        self._set("empty" if self.state == "empty" else "starting", None)

    def _set(self, state: GateState, model: ModelInfo | None) -> None:
        if (state, model) == (self.state, self.model):
            return
        self.state, self.model = state, model
        for changed in self._waits:
            changed.set()


# A worker restarts in seconds, but a model of many gigabytes takes longer to load.
MODEL_WAIT_S = 120.0
NO_MODEL = "No model is loaded."
NO_MODEL_HINT = "Load one in Draftlight, then try again."
_CANCELLED = "The request was cancelled while it waited."
_STOPPING = "The server is being stopped."
# The end of a worker is noticed by its commands before its owner reports it.
_EXIT_S = 0.05
# Gives the reference of the model that a request names, if it is not the loaded one; else empty.
Other = Callable[[ModelInfo | None], Awaitable[str]]


class ClientGoneError(Exception):
    """The client disconnected before its answer."""


# The worker has no command of a request; has one, which waits; has begun; the request has ended.
AnswerState = Literal["unsent", "sent", "begun", "over"]
_Writer = TypeVar("_Writer")
# Makes the command of a request to a model, and the writer of its answer.
CommandOf = Callable[[ModelInfo], tuple[Generate, _Writer]]


class ServedAnswer(Generic[_Writer]):
    """One request, from its arrival to its end. Made by `Answers.answering`.

    One task calls `next()` until it gave `Finished` or `Failed`, or raised. `other` and `command` are called
    when the request is sent. `writer` is there while the worker has the command, before any event of the
    answer itself; a turn in which another model is loaded has none yet.
    """

    def __init__(
        self,
        answers: Answers,
        record: ServedRequest,
        other: Other,
        command: CommandOf[_Writer],
    ) -> None:
        self.request = record.id
        self._answers = answers
        self._requests = answers.requests
        self._record = record
        self._other = other
        self._command = command
        self._news = asyncio.Event()
        self._happened: deque[Event] = deque()
        self._error: Exception | None = None  # why no more events follow
        self._state: AnswerState = "unsent"
        self.writer: _Writer | None = None
        self._task = asyncio.ensure_future(self._run())

    async def next(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Returns the events since the last call; empty after `timeout_s` without one, if it is given.

        Raises `ClientGoneError` after the client disconnected, or why the request was not sent.
        """
        if not (self._happened or self._error):
            self._news.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
            except TimeoutError:
                return ()
        if self._error is not None:
            raise self._error
        happened = tuple(self._happened)
        self._happened.clear()
        return happened

    def leave(self) -> None:
        """End the answer without a last event: the client disconnected. Safe to call at any time."""
        self._error = ClientGoneError(self.request)
        self.cancel()
        self._news.set()

    def cancel(self) -> None:
        """End the answer; the client gets the text that was written."""
        if self._state == "begun" and self.writer is not None:
            self._answers.gate.worker.post(Cancel(self.request))
        else:
            self.refuse(self._cancelled())

    def refuse(self, failed: Failed) -> None:
        """End the answer with `failed`."""
        if self._state == "unsent":
            self._task.cancel()
        elif self._state != "over":
            self._answers.gate.worker.post(Cancel(self.request))
        self._hear(failed)

    # ---- its task

    async def _run(self) -> None:
        try:
            self._hear(await self._reply())
        except Exception as error:
            self._error = self._error or error
            self._end()
            self._news.set()
        finally:
            self._answers.close(self.request)

    async def _reply(self) -> Finished | Failed:
        while True:
            async with self._answers.turn(self.request, self._other, self._take, self._hear) as found:
                failed = found if isinstance(found, Failed) else None
                reply = failed or await self._ask(found)  # type: ignore[arg-type]
            if isinstance(reply, Finished):
                return reply if self._state == "begun" or reply.reason != "cancelled" else self._cancelled()
            if self._state != "sent" or reply.code != _WORKER_FAILED:
                return reply
            self._state = "unsent"
            await asyncio.sleep(_EXIT_S)

    async def _ask(self, model: ModelInfo) -> Finished | Failed:
        if self._state == "over":
            return self._cancelled()
        generate, writer = self._command(model)
        self._record = replace(self._record, model=model.name)
        self._take(generate, writer)
        return await self._answers.gate.ask(generate, Finished, self._hear)

    def _take(self, generate: Generate | None = None, writer: _Writer | None = None) -> None:
        """Record the request, which is sent now. Raises `QueueFullError`."""
        self._answers.enter(self.request)
        self._requests.add(self._record, generate)
        self.writer = writer
        if self._state == "unsent":
            self._state = "sent"

    def _hear(self, event: Event) -> None:
        if self._state == "over":
            return
        waits = isinstance(event, Queued) and event.ahead > 0
        if self._state != "begun" and not (waits or isinstance(event, Failed)):
            self._state = "begun"
            self._answers.pace.begin(time.monotonic())
            self._requests.change(self.request, waited_s=time.time() - self._record.came_s)
            self._answers.changed()
        if isinstance(event, Failed) and event.code == "cancelled":
            self._requests.change(self.request, state="cancelled")
        if isinstance(event, Queued):
            self._requests.change(self.request, position=event.ahead)
        else:
            self._requests.hear(self.request, event)
        if isinstance(event, Finished | Failed):
            self._end()
        self._happened.append(event)
        self._news.set()

    def _end(self) -> None:
        if self._state == "begun":
            self._answers.pace.end(time.monotonic())
        self._state = "over"

    def _cancelled(self) -> Failed:
        return Failed(self.request, "generate", "request", "cancelled", _CANCELLED)


class Answers:
    """The requests of the server to one worker.

    `length`: how many may wait for the one that is answered. `changed` is called when one is sent, begins or
    ends.
    """

    def __init__(
        self,
        gate: WorkerGate,
        requests: ServedRequests,
        length: int,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.gate = gate
        self.requests = requests
        self.length = length
        self.changed = changed
        self.pace = QueuePace()
        self.images = ServedImages()
        self.sent: dict[str, None] = {}  # what the worker has not ended yet, in order
        self._running: dict[str, ServedAnswer[Any]] = {}
        self._door = asyncio.Lock()  # first come, first sent

    @contextmanager
    def answering(
        self, record: ServedRequest, other: Other, command: CommandOf[_Writer]
    ) -> Iterator[ServedAnswer[_Writer]]:
        """The answer to the request `record`, which ends inside. See `ServedAnswer`."""
        answer = self._running[record.id] = ServedAnswer(self, record, other, command)
        try:
            yield answer
        finally:
            answer.leave()
            del self._running[record.id]

    @asynccontextmanager
    async def turn(
        self,
        request: str,
        other: Other,
        take: Callable[[], None] = lambda: None,
        hear: Callable[[Any], None] = lambda event: None,
    ) -> AsyncIterator[ModelInfo | Failed]:
        """The model that answers `request`, or the reason why there is none.

        One that is not loaded yet is loaded in the turn of the request, which lasts until the end of the
        context or of the answer; `take` is called when the command is sent, `hear` with its events. Raises
        `NoModelError`.
        """
        reference = ""
        try:
            async with asyncio.timeout(MODEL_WAIT_S), self._door:
                await self.gate.settled()
                reference = await other(self.gate.model)
        except TimeoutError:
            pass
        # Nothing is awaited from here until the command is sent, so that the order stays.
        if not reference:
            if self.gate.model is None:
                raise NoModelError(NO_MODEL, NO_MODEL_HINT)
            yield self.gate.model
            return
        take()
        taken = await self.gate.ask(TakeTurn(request, reference), TurnTaken, hear)
        if isinstance(taken, Failed):
            yield taken
            return
        try:
            yield taken.info
        finally:
            self.gate.worker.post(Cancel(request))

    def cancel(self, request: str) -> bool:
        """Cancel `request`; its client gets the text that was written. Returns whether it exists."""
        answer = self._running.get(request)
        if answer is not None:
            answer.cancel()
        return answer is not None

    def end_all(self, why: Callable[[str], Failed] | None = None) -> None:
        """End all requests, as the server is being stopped; with `why`, those made for the loaded model."""
        for answer in tuple(self._running.values()):
            if why is None:
                ends = Failed(answer.request, "generate", "request", "server-ends", _STOPPING)
                answer.refuse(ends)
            elif answer.writer is not None:
                answer.refuse(why(answer.request))

    # ---- for `ServedAnswer`

    def enter(self, request: str) -> None:
        """Record that the request is sent. Raises `QueueFullError` with the time to wait."""
        if request not in self.sent and len(self.sent) > self.length:
            error = QueueFullError(self.length)
            error.retry_after_s = self.pace.room_in_s(time.monotonic())
            raise error
        self.sent[request] = None
        self.changed()

    def close(self, request: str) -> None:
        """The worker has ended the request."""
        self.sent.pop(request, None)
        self.changed()


# ---- models that requests name

# Names that clients send where they do not mean a certain model.
ANY_MODEL = ("", "draftlight", "default")


class InstalledModels:
    """`listed` returns the models on this machine; it is awaited on the loop."""

    def __init__(self, listed: Callable[[], Awaitable[Sequence[ModelEntry]]]) -> None:
        self._listed = listed
        # Models that were loaded from folders that are not listed.
        self._known: dict[str, ModelInfo] = {}

    async def by_id(self, loaded: ModelInfo | None) -> dict[str, ModelInfo | ModelEntry]:
        """The models that can be loaded, by their ids: the `loaded` one first.

        Models whose folders have one name have the ids “owner/name”.
        """
        models: dict[str, ModelInfo | ModelEntry] = {loaded.path: loaded} if loaded else {}
        for entry in await self._listed():
            if not entry.problem:
                models.setdefault(entry.path, entry)
        ids = Counter(api_id(model).lower() for model in models.values())
        return {
            api_id(model) if ids[api_id(model).lower()] == 1 else _long_id(model): model
            for model in models.values()
        }

    async def other(self, wanted: str, loaded: ModelInfo | None) -> str:
        """The reference of the model that `wanted` names, if it is installed and not `loaded`; else empty."""
        if loaded is not None:
            self._known[loaded.reference] = loaded
        reference = await self._other(loaded, wanted)
        return "" if loaded is not None and loaded.reference == reference else reference

    async def _other(self, loaded: ModelInfo | None, wanted: str) -> str:
        """The reference of the model that `wanted` names, if it is not the `loaded` one; else empty.

        The models are listed only for other names than the loaded one's, since a list takes time.
        """
        if wanted.strip().lower() in ANY_MODEL:
            return ""
        if loaded is not None and _rank(loaded, wanted) == 0:
            return ""
        known = [model for model in self._known.values() if Path(model.path).exists()]
        models = [*([loaded] if loaded else ()), *known, *(await self.by_id(None)).values()]
        ranks = [_rank(model, wanted) for model in models]
        best = min(ranks, default=_UNNAMED)
        return models[ranks.index(best)].reference if best < _UNNAMED else ""


_UNNAMED = 3


def is_called(model: ModelInfo | ModelEntry, wanted: str) -> bool:
    """Whether a request that names `wanted` means `model`.

    By its id, its name, or as it was loaded (`starter`, the name on the hub), with or without an owner before
    it: clients put a provider there.
    """
    return wanted.strip().lower() in ANY_MODEL or _rank(model, wanted) < _UNNAMED


def _rank(model: ModelInfo | ModelEntry, wanted: str) -> int:
    """How well `wanted` names `model`: 0 best; `_UNNAMED` if it does not."""
    name = wanted.strip().lower()
    last = name.rpartition("/")[2]
    if name in (model.reference.lower(), _long_id(model).lower(), api_id(model).lower()):
        return 0
    if last == api_id(model).lower():
        return 1
    names = (PurePath(model.reference).name, model.name, "-".join(model.name.split()))
    return 2 if last and last in [each.lower() for each in names] else _UNNAMED


def _long_id(model: ModelInfo | ModelEntry) -> str:
    """The owner, or the folder's folder, and the name."""
    return "-".join("/".join(PurePath(model.reference).parts[-2:]).split())
