"""The link over a real process: order, death, replacement, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import warnings
from collections.abc import Awaitable, Callable

import pytest

from app.controllers.link import WorkerLink
from app.session.turn.intents import SpawnFailed
from core.events import Generate, Heartbeat, Hello, LoadModel, Message, ModelLoaded, Token
from core.events.codec import WorkerEvent, WorkerExited, WorkerSilent
from core.worker.client import WorkerClient

FAKE = [sys.executable, "-m", "tests.app.fake_worker"]
Scene = Callable[[WorkerLink, list[WorkerEvent | SpawnFailed]], Awaitable[None]]


def play(
    scene: Scene, command: list[str] | None = None, silence_s: float = 15.0
) -> list[WorkerEvent | SpawnFailed]:
    """Run `scene` on a loop of its own; afterwards no task and no warning may be left."""
    heard: list[WorkerEvent | SpawnFailed] = []

    async def whole() -> None:
        link = WorkerLink(command or FAKE, silence_s=silence_s)
        link.hear = heard.append
        try:
            await scene(link, heard)
        finally:
            await link.close()
        await asyncio.sleep(0.02)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(whole())
    return [one for one in heard if not isinstance(one, Heartbeat)]


async def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "nothing happened"
        await asyncio.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_commands_arrive_in_order_and_all_is_heard() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        await until(lambda: any(isinstance(one, Hello) for one in heard))
        link.send(LoadModel("starter"))
        link.send(Generate("r1", (Message("user", "write 7"),)))
        await until(lambda: sum(isinstance(one, Token) for one in heard) == 7)

    heard = play(scene)
    assert isinstance(heard[0], Hello)
    assert [one.position for one in heard if isinstance(one, Token)] == list(range(7))
    assert any(isinstance(one, ModelLoaded) for one in heard)
    # It was closed by us: muted, so its end is not heard.
    assert not any(isinstance(one, WorkerExited) for one in heard)


def test_a_worker_that_was_begun_is_taken_once() -> None:
    async def whole() -> None:
        heard: list[WorkerEvent | SpawnFailed] = []
        started = WorkerClient(FAKE)
        await started.start()
        link = WorkerLink(FAKE, started=started)
        link.hear = heard.append
        link.start()
        await until(lambda: any(isinstance(one, Hello) for one in heard))
        assert link.pid == started.pid
        link.restart()
        await until(lambda: sum(isinstance(one, Hello) for one in heard) == 2)
        assert link.pid != started.pid
        await link.close()
        assert started.pid is not None
        assert gone(started.pid)

    asyncio.run(whole())


def test_a_worker_that_was_begun_and_never_taken_is_ended() -> None:
    async def whole() -> None:
        started = WorkerClient(FAKE)
        await started.start()
        await WorkerLink(FAKE, started=started).close()
        assert started.pid is not None
        assert gone(started.pid)

    asyncio.run(whole())


def test_closing_ends_the_process() -> None:
    pids: list[int] = []

    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        await until(lambda: bool(heard))
        assert link.pid
        pids.append(link.pid)

    play(scene)
    assert gone(pids[0])


def test_a_killed_worker_is_heard_with_its_signal_and_log() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        await until(lambda: bool(heard))
        link.send(Generate("r1", (Message("user", "die 4"),)))
        await until(lambda: isinstance(heard[-1], WorkerExited))
        assert link.pid is None

    last = play(scene)[-1]
    assert isinstance(last, WorkerExited)
    assert (last.signal_name, last.log, last.expected) == ("SIGKILL", ("about to be killed",), False)


def test_restart_replaces_a_living_worker_and_mutes_it() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        await until(lambda: bool(heard))
        old = link.pid
        link.send(Generate("r1", (Message("user", "write 100000 slowly"),)))
        await until(lambda: any(isinstance(one, Token) for one in heard))
        link.restart()
        await until(lambda: sum(isinstance(one, Hello) for one in heard) == 2)
        assert old
        assert gone(old)
        assert link.pid != old
        count = len(heard)
        await asyncio.sleep(0.2)
        assert not any(isinstance(one, Token) for one in heard[count:])

    heard = play(scene)
    assert not any(isinstance(one, WorkerExited) for one in heard)


def test_two_restarts_at_once_leave_one_worker() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        link.restart()
        link.restart()
        await until(lambda: any(isinstance(one, Hello) for one in heard))
        await asyncio.sleep(0.2)

    heard = play(scene)
    assert sum(isinstance(one, Hello) for one in heard) == 1


def test_closing_before_anything_began() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()

    assert play(scene) == []


def test_closing_a_worker_that_never_was() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.send(LoadModel("starter"))

    assert play(scene) == []


def test_a_command_that_is_no_program() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        await until(lambda: bool(heard))

    (said,) = play(scene, ["/nowhere/draftlight-worker"])
    assert isinstance(said, SpawnFailed)
    assert "could not be started" in said.message


def test_silence_is_heard_and_a_hung_worker_is_replaced() -> None:
    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        # On a busy machine it may be silent before its first word, too.
        await until(lambda: isinstance(heard[-1], Hello | Heartbeat) if heard else False)
        assert link.pid
        os.kill(link.pid, signal.SIGSTOP)
        await until(lambda: isinstance(heard[-1], WorkerSilent))
        link.restart()
        await until(lambda: sum(isinstance(one, Hello) for one in heard) == 2)

    play(scene, silence_s=0.6)


def test_a_listener_that_fails_is_reported_and_keeps_listening() -> None:
    heard: list[object] = []
    reported: list[str] = []

    def hear(one: object) -> None:
        heard.append(one)
        if isinstance(one, Hello):
            raise ValueError("a bug in the window")

    async def whole() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reported.append(str(context["exception"]))
        )
        link = WorkerLink(FAKE)
        link.hear = hear
        link.start()
        await until(lambda: any(isinstance(one, Heartbeat) for one in heard))
        await link.close()

    asyncio.run(whole())
    assert reported == ["a bug in the window"]


@pytest.mark.parametrize("start", ["exit"])
def test_a_worker_that_ends_before_hello(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_START", start)

    async def scene(link: WorkerLink, heard: list[WorkerEvent | SpawnFailed]) -> None:
        link.start()
        await until(lambda: bool(heard))

    (last,) = play(scene)
    assert isinstance(last, WorkerExited)
    assert (last.returncode, last.log) == (3, ("cannot begin",))


def test_a_command_that_fails_on_its_way_keeps_no_later_one_and_no_process() -> None:
    heard: list[object] = []
    reported: list[str] = []
    pids: list[int] = []

    async def fail() -> None:
        raise KeyError("the chat is gone")

    async def whole() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reported.append(str(context["exception"]))
        )
        link = WorkerLink(FAKE)
        link.hear = heard.append
        link.start()
        await until(lambda: any(isinstance(one, Hello) for one in heard))
        assert link.pid
        pids.append(link.pid)
        link.send(LoadModel("starter"), fail)
        link.send(object())  # type: ignore[arg-type]  # it cannot be encoded
        link.send(Generate("r1", (Message("user", "write 7"),)))
        await until(lambda: sum(isinstance(one, Token) for one in heard) == 7)
        await link.close()

    asyncio.run(whole())
    assert any(isinstance(one, ModelLoaded) for one in heard)
    assert len(reported) == 2
    assert "the chat is gone" in reported[0]
    assert gone(pids[0])
