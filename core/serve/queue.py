"""The queue of requests and their answers: `AnswerQueue`, `WorkerGate`, `Answer`, `Answers`.

There is one worker, so one answer at a time, in the order of arrival; the window's chat takes tickets from
the same queue. `WorkerGate` knows whether the worker has a model and asks it. Queue and gate call an
`Answer`, which wakes the task in `next()`. Everything happens on the loop.

With `InstalledModels`, a request for another model waits like any other. When its turn comes, the model is
loaded, and its command is made for that model; so no answer is interrupted, and a request behind it that
names the previous model gets that one back.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import PurePath
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

from core.errors import DraftlightError, RequestError, WorkerError
from core.events import (
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
    api_id,
    failure,
)
from core.events.codec import WorkerEvent, WorkerExited
from core.serve.requests import ServedRequest, ServedRequests
from core.worker.client import CommandError

_RECENT = 16
_UNKNOWN_S = 10.0
_SOON_S = 1.0
_MOST_WAIT_S = 3600


class QueueFullError(RequestError):
    """The queue is full."""

    code = "queue-full"
    # Predicted time until a place is free (`Pace`); 0 if unknown.
    retry_after_s = 0

    def __init__(self, length: int) -> None:
        super().__init__(
            f"The queue is full (limit: {length} waiting).", "Try again later, or raise the limit."
        )


class Ticket:
    """A request's position in the queue. `who` is for display. `moved` is called when `position` changes."""

    def __init__(self, queue: AnswerQueue, who: str, moved: Callable[[], None]) -> None:
        self.who = who
        self.entered_s = time.monotonic()
        self._queue = queue
        self._moved = moved

    @property
    def position(self) -> int | None:
        """The number of tickets before it: 0 is its turn; None after `leave`."""
        return self._queue.position(self)

    def leave(self) -> None:
        """Leave the queue. Safe to call twice."""
        self._queue.leave(self)

    def tell(self) -> None:
        """Call `moved`: the position changed."""
        self._moved()

    def hand_over(self, moved: Callable[[], None]) -> None:
        """Call another `moved` from now on."""
        self._moved = moved


class Pace:
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


class AnswerQueue:
    """`length`: maximum number of waiting requests. `changed` is called when a ticket moves."""

    def __init__(self, length: int, changed: Callable[[], None] = lambda: None) -> None:
        self.length = length
        self._line: list[Ticket] = []
        self._changed = changed

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        """All tickets in order; the first is being answered."""
        return tuple(self._line)

    def enter(self, who: str, moved: Callable[[], None], *, always: bool = False) -> Ticket:
        """Returns a ticket at the end. `moved` is not called if it is its turn at once.

        Raises `QueueFullError`, except with `always`: the window's own chat may always wait.
        """
        if not always and len(self._line) > self.length:
            raise QueueFullError(self.length)
        ticket = Ticket(self, who, moved)
        self._line.append(ticket)
        self._changed()
        return ticket

    def position(self, ticket: Ticket) -> int | None:
        """See `Ticket.position`."""
        return next((place for place, one in enumerate(self._line) if one is ticket), None)

    def leave(self, ticket: Ticket) -> None:
        """See `Ticket.leave`."""
        place = self.position(ticket)
        if place is None:
            return
        del self._line[place]
        for one in self._line[place:]:
            one.tell()
        self._changed()


# `starting`: a model is being loaded; `empty`: none is.
GateState = Literal["starting", "ready", "empty"]
_Reply = TypeVar("_Reply")
_DIED = "The worker that was answering ended."
_DIED_HINT = "Try again: the worker is being restarted."


class Worker(Protocol):
    """The worker behind a gate, one process after another."""

    async def ask(self, command: Command, kind: type[_Reply], progress: Callable[[Any], None]) -> _Reply:
        """See `WorkerClient.ask`."""
        ...

    def cancel(self, request: str) -> None:
        """Stop the request within a step or a chunk; it ends with `Finished`."""
        ...

    def load(self, reference: str) -> None:
        """Load a model; what becomes of it is passed to `WorkerGate.handle`."""
        ...


class WorkerGate:
    """Listeners are called when the state or the model changes. `wanted` is called when a request waits for a
    model, so that the owner can start a worker on demand.
    """

    def __init__(self, worker: Worker, wanted: Callable[[], None] = lambda: None) -> None:
        self.worker = worker
        self.open = 0  # commands without a reply
        self._wanted = wanted
        self._listeners: list[Callable[[], None]] = []
        self.state: GateState = "starting"
        self.model: ModelInfo | None = None
        # The model was idle and left memory; the next request loads it again.
        self.released = False
        self._loads: asyncio.Future[Failed | None] | None = None
        # State and model to return to if another model cannot be loaded.
        self._before: tuple[GateState, ModelInfo | None] = ("empty", None)

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` on every change; returns a function that ends this."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def want(self) -> None:
        """A request waits for a model."""
        if self.state == "starting":
            self._wanted()

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
            return Failed("", "generate", "worker", "worker-failed", _DIED, _DIED_HINT)
        except DraftlightError as error:
            return failure(error, command="generate")
        finally:
            self.open -= 1

    @property
    def is_switching(self) -> bool:
        """Whether a model is being loaded for a request that names it."""
        return self._loads is not None

    async def load(self, reference: str) -> Failed | None:
        """Load another model, between two answers; returns why that failed, and then the previous one stays.

        It cannot be cancelled: others wait meanwhile.
        """
        self._before = self.state, self.model
        ends = self._loads = asyncio.get_running_loop().create_future()
        self._set("starting", None)
        self.worker.load(reference)
        return await asyncio.shield(ends)

    async def settled(self) -> None:
        """Wait while a model is being loaded, for `MODEL_WAIT_S` at most."""
        if self.state != "starting":
            return
        changed = asyncio.Event()
        stop_listening = self.listen(changed.set)
        self.want()
        try:
            async with asyncio.timeout(MODEL_WAIT_S):
                while self.state == "starting":
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            pass
        finally:
            stop_listening()

    # ---- for the owner of the worker

    def handle(self, event: WorkerEvent) -> None:
        """Handle an event about the worker or its model."""
        match event:
            case WorkerExited():
                self.lose()
            case ModelLoaded(info):
                self.released = False
                self._set("ready", info)
                self._end_load(None)
            case Failed(command="load_model") if self.is_switching:
                self._set(*self._before)
                self._end_load(event)
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
        """Set the state, where the owner knows it."""
        self.released = released
        self._set(state, model)

    def lose(self) -> None:
        """The worker exited. Its owner starts another one if it had a model."""
        self.released = False
        self._end_load(Failed("", "load_model", "worker", "worker-failed", _DIED, _DIED_HINT))
        self._set("empty" if self.state == "empty" else "starting", None)

    def give_up(self) -> None:
        """Refuse all requests: no worker can be started."""
        self._end_load(Failed("", "load_model", "worker", "worker-failed", _DIED, _DIED_HINT))
        self._set("empty", None)

    def _end_load(self, failed: Failed | None) -> None:
        loads, self._loads = self._loads, None
        if loads is not None and not loads.done():
            loads.set_result(failed)

    def _set(self, state: GateState, model: ModelInfo | None) -> None:
        if (state, model) == (self.state, self.model):
            return
        self.state, self.model = state, model
        for changed in tuple(self._listeners):
            changed()


# A worker restarts in seconds, but a model of many gigabytes takes longer to load.
MODEL_WAIT_S = 120.0
NO_MODEL = "No model is loaded."
NO_MODEL_HINT = "Load one in Draftlight, then try again."
_CANCELLED = "The request was cancelled while it waited."
_STOPPING = "The server is being stopped."


class ClientGoneError(Exception):
    """The client disconnected before its answer."""


class Waiting(Struct, frozen=True):
    """`position` requests are answered before. 0: it is next, but no model is loaded yet."""

    position: int


AnswerUpdate = Waiting | Event


class Answer:
    """Made by `Answers.begin()`. One task calls `next()` until it gave `Finished` or `Failed`."""

    def __init__(
        self,
        generate: Generate,
        gate: WorkerGate,
        requests: ServedRequests,
        pace: Pace,
        enter: Callable[[Callable[[], None]], Ticket],
    ) -> None:
        self.request = generate.request
        self._generate = generate
        self._gate = gate
        self._requests = requests
        self._pace = pace
        self._news = asyncio.Event()
        self._happened: deque[AnswerUpdate] = deque()
        self._sent = self._over = self._gone = False
        self._stop_listening: Callable[[], None] = lambda: None
        self._giving_up: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._ticket = enter(self._moved)

    def start(self) -> None:
        """Start: send the command, or wait."""
        self._moved()

    async def next(self, timeout_s: float) -> Sequence[AnswerUpdate]:
        """Returns the updates since the last call; empty after `timeout_s` without one.

        Raises `ClientGoneError` after the client disconnected.
        """
        if not self._happened and not self._gone:
            self._news.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
            except TimeoutError:
                return ()
        if self._gone:
            raise ClientGoneError(self.request)
        happened = tuple(self._happened)
        self._happened.clear()
        return happened

    def leave(self) -> None:
        """End the answer without a last event: the client disconnected. Safe to call at any time."""
        if not self._over:
            self._gone = True
            self.cancel()
        self._news.set()

    def cancel(self) -> None:
        """End the answer; the client gets the text that was written."""
        if self._over:
            return
        if self._sent:
            self._gate.worker.cancel(self.request)
            return
        self._end()
        self._requests.change(self.request, state="cancelled")
        self._happen(Failed(self.request, "generate", "request", "cancelled", _CANCELLED))

    def refuse(self, failed: Failed) -> None:
        """End the answer with `failed`."""
        if self._over:
            return
        sent = self._sent
        self._requests.hear(self.request, failed)
        self._happen(failed)
        if sent:
            # The ticket leaves the queue when the worker has ended the request.
            self._gate.worker.cancel(self.request)
        else:
            self._end()

    # ---- called by the queue and the gate

    def _moved(self) -> None:
        position = self._ticket.position
        if position is None or self._sent or self._over:
            return
        self._requests.change(self.request, position=position)
        if position:
            self._happen(Waiting(position))
            return
        if self._gate.state == "starting" and self._giving_up is None:
            self._stop_listening = self._gate.listen(self._try)
            self._giving_up = asyncio.get_running_loop().call_later(MODEL_WAIT_S, self._refuse)
            self._happen(Waiting(0))
            self._gate.want()
        self._try()

    def _try(self) -> None:
        """Send the command if a model is loaded: it is this request's turn."""
        if self._sent or self._over or self._gate.state == "starting":
            return
        if self._gate.state == "empty":
            self._refuse()
            return
        self._settle()
        self._sent = True
        self._pace.begin(time.monotonic())
        self._requests.change(
            self.request, waited_s=time.monotonic() - self._ticket.entered_s, state="reading"
        )
        self._asking = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        self._heard(await self._gate.ask(self._generate, Finished, self._heard))

    def _refuse(self) -> None:
        self._heard(Failed(self.request, "generate", "request", "no-model", NO_MODEL, NO_MODEL_HINT))

    def _heard(self, event: Event) -> None:
        if self._over:
            return
        if isinstance(event, Finished | Failed):
            self._end()
        self._requests.hear(self.request, event)
        self._happen(event)

    def _happen(self, happening: AnswerUpdate) -> None:
        if not self._gone:
            self._happened.append(happening)
            self._news.set()

    def _end(self) -> None:
        self._over = True
        self._settle()
        if self._sent:
            self._pace.end(time.monotonic())
        self._ticket.leave()

    def _settle(self) -> None:
        self._stop_listening()
        self._stop_listening = lambda: None
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None


class Answers:
    """The requests of the server to one worker."""

    def __init__(self, gate: WorkerGate, queue: AnswerQueue, requests: ServedRequests) -> None:
        self.gate = gate
        self.queue = queue
        self.requests = requests
        self._pace = Pace()
        self._running: dict[str, Answer] = {}
        self._turns: dict[str, Turn] = {}

    def enter(self, who: str, moved: Callable[[], None]) -> Ticket:
        """See `AnswerQueue.enter`. Raises `QueueFullError` with the time to wait."""
        try:
            return self.queue.enter(who, moved)
        except QueueFullError as error:
            error.retry_after_s = self._pace.room_in_s(time.monotonic())
            raise

    def begin(
        self, generate: Generate, *, path: str, client: str, streams: bool, ticket: Ticket | None = None
    ) -> Answer:
        """Queue a request, or take over its `ticket`. Raises `QueueFullError`.

        The caller calls `done()` at the end.
        """

        def enter(moved: Callable[[], None]) -> Ticket:
            if ticket is None:
                return self.enter(client, moved)
            ticket.hand_over(moved)
            return ticket

        answer = Answer(generate, self.gate, self.requests, self._pace, enter)
        model = self.gate.model
        waited = self.requests.of(generate.request)  # for its model
        came_s = waited.came_s if waited else time.time()
        record = ServedRequest(generate.request, path, client, model.name if model else "", came_s, streams)
        self.requests.add(record, generate)
        self._running[generate.request] = answer
        answer.start()
        return answer

    def done(self, answer: Answer) -> None:
        """Remove an answer that nothing reads any more, and end it if it still runs."""
        answer.leave()
        self._running.pop(answer.request, None)

    @contextmanager
    def turn(self, request: str, installed: InstalledModels, wanted: str, who: str) -> Iterator[Turn]:
        """The turn of a request of the client `who` for the model `wanted`. Raises `QueueFullError`."""
        turn = self._turns[request] = Turn(request, self, installed, wanted, who)
        try:
            yield turn
        finally:
            turn.close()
            del self._turns[request]

    def cancel(self, request: str) -> bool:
        """Cancel `request`; its client gets the text that was written. Returns whether it exists."""
        answer = self._running.get(request) or self._turns.get(request)
        if answer is None:
            return False
        answer.cancel()
        return True

    def end_all(self, why: Callable[[str], Failed] | None = None) -> None:
        """End all requests with `why(request)`; None: the server is being stopped.

        Requests that wait for a model of their own end only with the server.
        """
        ended: list[Answer | Turn] = [*self._running.values(), *(() if why else self._turns.values())]
        for answer in ended:
            ends = Failed(answer.request, "generate", "request", "server-ends", _STOPPING)
            answer.refuse(why(answer.request) if why is not None else ends)


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

    async def load(self, gate: WorkerGate, wanted: str) -> Failed | None:
        """Load the model `wanted`, unless it is loaded or not installed; it is the request's turn.

        Returns why that failed; the previous model, if any, answers again then.
        """
        await gate.settled()
        reference = await self._other(gate.model, wanted)
        loaded = gate.model
        if not reference or gate.state == "starting" or (loaded and loaded.reference == reference):
            return None
        if loaded is not None:
            self._known[loaded.reference] = loaded
        return await gate.load(reference)

    async def is_other(self, loaded: ModelInfo | None, wanted: str) -> bool:
        """Whether `wanted` names an installed model that is not the `loaded` one."""
        return await self._other(loaded, wanted) not in ("", loaded.reference if loaded else "")

    async def _other(self, loaded: ModelInfo | None, wanted: str) -> str:
        """The reference of the model that `wanted` names, if it is not the `loaded` one; else empty.

        The models are listed only for other names than the loaded one's, since a list takes time.
        """
        if wanted.strip().lower() in ANY_MODEL:
            return ""
        if loaded is not None and _rank(loaded, wanted) == 0:
            return ""
        models = [*([loaded] if loaded else ()), *self._known.values(), *(await self.by_id(None)).values()]
        ranks = [_rank(model, wanted) for model in models]
        best = min(ranks, default=_UNNAMED)
        return models[ranks.index(best)].reference if best < _UNNAMED else ""


class Turn:
    """The wait of a request for its turn, and then for the model that it names."""

    def __init__(
        self, request: str, answers: Answers, installed: InstalledModels, wanted: str, who: str
    ) -> None:
        self.request = request
        self._requests = answers.requests
        self._moved = asyncio.Event()
        self._ticket = answers.enter(who, self._move)
        self._requests.change(request, position=self._ticket.position)
        self._refused: Failed | None = None
        self._taken = False
        self._task = asyncio.ensure_future(self._reach(answers.gate, installed, wanted))

    @property
    def waiting(self) -> Waiting:
        """The requests before this one."""
        return Waiting(self._ticket.position or 0)

    async def ends(self, timeout_s: float) -> bool:
        """Whether it has ended, at the latest after `timeout_s`."""
        return bool((await asyncio.wait((self._task,), timeout=timeout_s))[0])

    def result(self) -> Ticket | Failed:
        """The ticket, first in the queue and the caller's from now on, or why the request cannot be answered.

        Raises `ClientGoneError`.
        """
        if self._refused is not None:
            return self._refused
        if self._task.cancelled():
            raise ClientGoneError(self.request)
        if failed := self._task.result():
            return failed
        self._taken = True
        return self._ticket

    def leave(self) -> None:
        """The client disconnected."""
        self._task.cancel()

    def cancel(self) -> None:
        """End the request."""
        self.refuse(Failed(self.request, "generate", "request", "cancelled", _CANCELLED))

    def refuse(self, failed: Failed) -> None:
        """End the request with `failed`."""
        self._refused = failed
        self._task.cancel()

    def close(self) -> None:
        """Leave the queue, unless the ticket was taken. A load that has begun continues."""
        self._task.cancel()
        if not self._taken:
            self._ticket.leave()

    def _move(self) -> None:
        self._requests.change(self.request, position=self._ticket.position or 0)
        self._moved.set()

    async def _reach(self, gate: WorkerGate, installed: InstalledModels, wanted: str) -> Failed | None:
        while self._ticket.position:
            self._moved.clear()
            await self._moved.wait()
        return await installed.load(gate, wanted)


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
