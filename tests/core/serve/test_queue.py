"""Requests to one worker: drawn clients that ask, cancel and go, over a worker that dies; a full queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.errors import WorkerError
from core.events import (
    Cancel,
    Effective,
    Failed,
    Finished,
    Generate,
    Message,
    ModelInfo,
    ModelLoaded,
    Stats,
    TakeTurn,
    TurnTaken,
)
from core.serve import queue
from core.serve.queue import Answers, ClientGoneError, InstalledModels, QueueFullError, QueuePace, WorkerGate
from core.serve.served_requests import ServedRequest, ServedRequests
from core.settings import Settings
from core.worker.client import CommandError
from core.worker.queue import CommandQueue, Entry

INFO = ModelInfo("One", "one", "f", "F", "a", "float32", "", 1, 1, 99, 9, 1, True, reference="one")
MODELS = {name: replace(INFO, name=name.title(), path="/", reference=name) for name in ("one", "two")}


class Worker:
    """A worker that does one step when it is told to. `begun` are the answers that it began, in order."""

    def __init__(self) -> None:
        self.gate = WorkerGate(self)
        self.begun: list[str] = []
        self.ended: set[str] = set()  # cancelled, so none of them may begin
        self.lost: set[str] = set()  # their turn had come when the worker died
        self._start()

    def _start(self) -> None:
        self._queue = CommandQueue(lambda event: self._asked[event.request][1](event))
        self._asked: dict[str, tuple[asyncio.Future[Any], Callable[[Any], None]]] = {}
        self._running: Entry | None = None
        self._turn = ""  # whose turn came last
        self.alive = False

    async def ask(self, command: Any, kind: type, progress: Callable[[Any], None]) -> Any:
        if not self.alive:
            raise WorkerError("It is not running.")
        reply = asyncio.get_running_loop().create_future()
        self._asked[command.request] = (reply, progress)
        self._queue.put(command, 0.0)
        return await reply

    def post(self, command: Any) -> None:
        assert isinstance(command, Cancel)
        request = command.request
        found = self._queue.cancel(request)
        if isinstance(found, Entry):
            if isinstance(found.command, Generate):
                self._reply(Finished(request, "cancelled", Stats(), Effective("", "", "", Settings())))
            else:
                self._reply(CommandError(Failed(request, "take_turn", "request", "cancelled", "Cancelled.")))

    def _reply(self, reply: Any) -> None:
        future, _ = self._asked.pop(
            reply.failed.request if isinstance(reply, CommandError) else reply.request
        )
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def step(self) -> bool:
        """End what runs, or begin the next; whether there was something."""
        if not self.alive:
            self.alive = True
            self.gate.handle(ModelLoaded(MODELS["one"]))
            return True
        entry, self._running = self._running, None
        if entry is not None:
            reason = "cancelled" if self._queue.is_cancelled(entry.request) else "stop"
            self._reply(Finished(entry.request, reason, Stats(), Effective("", "", "", Settings())))
            self._queue.done(entry)
            return True
        entry = self._queue.next(0.0)
        if entry is None:
            return False
        assert isinstance(entry.command, Generate | TakeTurn)
        assert entry.request not in self.ended
        self._turn = entry.request
        if self.gate.model != MODELS[entry.command.model]:
            self.gate.handle(ModelLoaded(MODELS[entry.command.model]))
        if isinstance(entry.command, TakeTurn):
            assert self._queue.hold(entry.request)
            self._reply(TurnTaken(entry.request, MODELS[entry.command.model]))
            self._queue.done(entry)
        else:
            self.begun.append(entry.request)
            self._running = entry
        return True

    def die(self) -> None:
        if self.alive:
            asked = self._asked
            self.lost.add(self._turn)
            self._start()
            self.gate.lose()
            for reply, _ in asked.values():
                reply.set_exception(WorkerError("It ended."))


class Client:
    """One request; `heard` has its last event or error."""

    def __init__(self, answers: Answers, number: int, wanted: str) -> None:
        self.request = f"r{number}"
        self.wanted = wanted
        self.heard: list[Any] = []
        self.gone = False
        record = ServedRequest(self.request, "/v1", "client", wanted, 0.0, True)
        self.task = asyncio.ensure_future(self._read(answers, record))

    async def _read(self, answers: Answers, record: ServedRequest) -> None:
        installed = InstalledModels(partial(asyncio.sleep, 0, ()))
        for model in MODELS.values():
            await installed.other("", model)
        other = partial(installed.other, self.wanted)
        with answers.answering(record, other, self.command) as self.answer:
            try:
                while not self.heard:
                    events = await self.answer.next(30.0)
                    self.heard += [each for each in events if isinstance(each, Finished | Failed)]
            except (ClientGoneError, QueueFullError) as error:
                self.heard.append(error)

    def command(self, model: ModelInfo) -> tuple[Generate, str]:
        assert self.wanted in ("", model.reference)
        return Generate(self.request, (Message("user", "Hello"),), model=model.reference), "writer"

    def leave(self) -> None:
        self.gone = True
        self.answer.leave()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(("", "one", "two"))),
        st.tuples(st.sampled_from(("leave", "cancel")), st.integers(0, 7)),
        st.tuples(st.just("step"), st.just(0)),
        st.tuples(st.just("step"), st.just(0)),
        st.tuples(st.just("die"), st.just(0)),
    ),
    max_size=40,
)


async def _settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


async def _play(steps: list[tuple[str, Any]], waiting: int) -> None:
    worker = Worker()
    answers = Answers(worker.gate, ServedRequests(1000), waiting)
    clients: list[Client] = []
    for name, value in steps:
        if name == "ask":
            clients.append(Client(answers, len(clients), value))
        elif name == "step":
            worker.step()
        elif name == "die":
            worker.die()
        elif value < len(clients):
            client = clients[value]
            worker.ended.add(client.request)
            if name == "leave":
                client.leave()
            else:
                answers.cancel(client.request)
        await _settle()
        running = [each.request for each in clients if not each.heard]
        assert set(answers.sent) <= set(running) | worker.ended
    for _ in range(8 * len(clients) + 8):
        worker.step()
        await _settle()
    await asyncio.wait_for(asyncio.gather(*(client.task for client in clients)), 5)
    for client in clients:
        (end,) = client.heard
        assert not (client.gone and isinstance(end, Failed)) or end.code in ("cancelled", "worker-failed")
        assert worker.begun.count(client.request) <= 1
        record = answers.requests.of(client.request)
        assert record is None or record.is_over
        if client.request not in worker.ended | worker.lost:
            assert isinstance(end, Finished | QueueFullError), "one whose turn had not come is asked again"
    if "die" not in [name for name, _ in steps]:
        assert worker.begun == sorted(worker.begun, key=lambda request: int(request[1:]))
    assert not answers.sent
    assert worker.gate.open == 0


@pytest.mark.sweep
@given(steps=STEPS, waiting=st.sampled_from((1, 3, 16)))
@settings(max_examples=150, deadline=None)
def test_every_request_ends_once_in_its_order_and_none_after_its_cancel(
    steps: list[tuple[str, Any]], waiting: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue, "_EXIT_S", 0.0)
        asyncio.run(_play(steps, waiting))


def test_who_is_refused_is_told_when_there_is_room() -> None:
    pace = QueuePace()
    for at in (0.0, 20.0, 40.0):
        pace.begin(at)
        pace.end(at + 20)
    pace.begin(60.0)
    # The answer that is being written takes 15 s more, each of the others 20 s.
    assert [pace.room_in_s(65.0) for _ in range(3)] == [15, 35, 55]
    # One that takes longer than the others ends soon, as far as anybody knows.
    assert QueuePace().room_in_s(0.0) == 10
    pace.end(150.0)
    pace.begin(150.0)
    assert pace.room_in_s(1000.0) == 1


def test_a_model_whose_folder_is_gone_is_not_installed(tmp_path: Path) -> None:
    installed = InstalledModels(partial(asyncio.sleep, 0, ()))
    (tmp_path / "one").mkdir()
    asyncio.run(installed.other("", replace(MODELS["one"], path=str(tmp_path / "one"))))
    assert asyncio.run(installed.other("one", MODELS["two"])) == "one"
    (tmp_path / "one").rmdir()
    assert asyncio.run(installed.other("one", MODELS["two"])) == ""
