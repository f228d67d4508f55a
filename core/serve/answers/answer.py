"""Answer: one request from its place in the queue to its last event.

No task of its own: the queue and the gate call it, and it wakes whoever is in `next()`. A client that went
away calls `leave()`; the worker is told at once, and the ticket is given back when the worker has ended it,
so that nobody's turn comes while the worker is still busy.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct

from core.events import Event, Failed, Finished, Generate
from core.serve.answers.gate import WorkerGate
from core.serve.answers.queue import AnswerQueue, Pace, QueueFullError, Ticket
from core.serve.answers.requests import ServedRequest, ServedRequests

# A worker that died is there again in seconds; a model of many gigabytes takes longer to load.
MODEL_WAIT_S = 120.0
NO_MODEL = "No model is loaded."
NO_MODEL_HINT = "Load one in Draftlight, then ask again."
_CANCELLED = "It was cancelled while it waited."
_ENDS = "The server is being stopped."


class ClientGoneError(Exception):
    """Whoever asked went away; there is nobody to answer."""


class Waiting(Struct, frozen=True):
    """Others are answered before: `position` of them. 0: its turn, but no model is loaded yet."""

    position: int


Happening = Waiting | Event


class Answer:
    """Made by `Answers.begin()`. One task calls `next()` until it gave `Finished` or `Failed`."""

    def __init__(
        self,
        generate: Generate,
        gate: WorkerGate,
        queue: AnswerQueue,
        requests: ServedRequests,
        pace: Pace,
        who: str,
    ) -> None:
        self.request = generate.request
        self._generate = generate
        self._gate = gate
        self._requests = requests
        self._pace = pace
        self._news = asyncio.Event()
        self._happened: deque[Happening] = deque()
        self._sent = self._over = self._gone = False
        self._began_s = time.monotonic()
        self._stop_listening: Callable[[], None] = lambda: None
        self._giving_up: asyncio.TimerHandle | None = None
        self._ticket: Ticket = queue.enter(who, self._moved)

    def start(self) -> None:
        """Begin to wait, or to be answered."""
        self._moved()

    async def next(self, timeout_s: float) -> Sequence[Happening]:
        """All that happened since the last call; nothing if that is nothing for `timeout_s`.

        Raises `ClientGoneError` once the client went away.
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
        """The client went away, or somebody else cancels: end it. Safe to call at any time."""
        if not self._over:
            self._gone = True
            self.cancel()
        self._news.set()

    def cancel(self) -> None:
        """End it; whoever asked is told, with what there is so far."""
        if self._over:
            return
        if self._sent:
            self._gate.cancel(self.request)
            return
        self._end()
        self._requests.change(self.request, state="cancelled")
        self._happen(Failed(self.request, "generate", "request", "cancelled", _CANCELLED))

    def refuse(self, failed: Failed) -> None:
        """End it, and tell whoever asked that."""
        if self._over:
            return
        sent = self._sent
        self._requests.hear(self.request, failed)
        self._happen(failed)
        if sent:
            # The ticket goes back when the worker has ended it.
            self._gate.cancel(self.request)
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
        """It is its turn: ask, if somebody can be asked."""
        if self._sent or self._over or self._gate.state == "starting":
            return
        if self._gate.state == "empty":
            self._refuse()
            return
        self._settle()
        self._sent = True
        self._pace.begin(time.monotonic())
        self._requests.change(self.request, waited_s=time.monotonic() - self._began_s, state="reading")
        self._gate.ask(self._generate, self._heard)

    def _refuse(self) -> None:
        self._heard(Failed(self.request, "generate", "request", "no-model", NO_MODEL, NO_MODEL_HINT))

    def _heard(self, event: Event) -> None:
        if self._over:
            return
        if isinstance(event, Finished | Failed):
            self._end()
        self._requests.hear(self.request, event)
        self._happen(event)

    def _happen(self, happening: Happening) -> None:
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
    """All that is asked of one worker through the server."""

    def __init__(self, gate: WorkerGate, queue: AnswerQueue, requests: ServedRequests) -> None:
        self.gate = gate
        self.queue = queue
        self.requests = requests
        self._pace = Pace()
        self._running: dict[str, Answer] = {}

    def begin(self, generate: Generate, *, path: str, client: str, streams: bool) -> Answer:
        """Put it in the queue. Raises `QueueFullError`. Whoever begins calls `done()` at the end."""
        try:
            answer = Answer(generate, self.gate, self.queue, self.requests, self._pace, client)
        except QueueFullError as error:
            error.retry_after_s = self._pace.room_in_s(time.monotonic())
            raise
        model = self.gate.model
        record = ServedRequest(
            generate.request, path, client, model.name if model else "", time.time(), streams
        )
        self.requests.add(record, generate)
        self._running[generate.request] = answer
        answer.start()
        return answer

    def done(self, answer: Answer) -> None:
        """Nobody listens to it any more; if it is not over, nobody wants it."""
        answer.leave()
        self._running.pop(answer.request, None)

    def cancel(self, request: str) -> bool:
        """End `request`, and tell whoever asked. Returns whether there was one."""
        answer = self._running.get(request)
        if answer is None:
            return False
        answer.cancel()
        return True

    def end_all(self, why: Callable[[str], Failed] | None = None) -> None:
        """Whoever waits or is answered is told `why`, given the request; None: the server ends."""
        for answer in tuple(self._running.values()):
            ends = Failed(answer.request, "generate", "request", "server-ends", _ENDS)
            answer.refuse(why(answer.request) if why is not None else ends)
