"""The link over a real process: order, death, replacement, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.controllers.link import WorkerLink
from core.events import Failed, Generate, Heartbeat, Hello, LoadModel, Message, ModelLoaded, Token
from core.events.codec import LINE_LIMIT_BYTES, WorkerExited, WorkerSilent
from core.worker.client import WorkerClient
from tests.app.stage import FAKE, Stage, gone, until


class Heard(list[Any]):
    """What the link tells, heartbeats too."""

    def of(self, kind: type) -> list[Any]:
        return [one for one in self if isinstance(one, kind)]

    async def has(self, kind: type, count: int = 1) -> None:
        await until(lambda: len(self.of(kind)) >= count, what=f"no {kind.__name__}: {self}")

    @property
    def words(self) -> list[Any]:
        return [one for one in self if not isinstance(one, Heartbeat)]


@asynccontextmanager
async def linked(
    command: Sequence[str] = FAKE, *, start: bool = True, **more: Any
) -> AsyncIterator[tuple[WorkerLink, Heard]]:
    heard = Heard()
    link = WorkerLink(list(command), **more)
    link.hear = heard.append
    if start:
        link.start()
    try:
        yield link, heard
    finally:
        pid = link.pid
        await link.close()
    assert pid is None or gone(pid)


def question(text: str) -> Generate:
    return Generate("r1", (Message("user", text),))


async def test_commands_arrive_in_order_and_all_is_heard(stage: Stage) -> None:
    async with linked() as (link, heard):
        await heard.has(Hello)
        link.send(LoadModel("starter"))
        link.send(question("x" * LINE_LIMIT_BYTES))  # fails, and the next ones are still written
        link.send(question("write 7"))
        await heard.has(Token, 7)
    assert [one.request for one in heard.of(Failed)] == ["r1"]
    assert isinstance(heard[0], Hello)
    assert [one.position for one in heard.of(Token)] == list(range(7))
    assert heard.of(ModelLoaded)
    # It was closed by us: muted, so its end is not heard.
    assert not heard.of(WorkerExited)


async def test_a_worker_that_was_begun_is_taken_once_or_ended(stage: Stage) -> None:
    for taken in (True, False):
        started = WorkerClient(FAKE)
        await started.start()
        async with linked(started=started, start=taken) as (link, heard):
            if taken:
                await heard.has(Hello)
                assert link.pid == started.pid
                link.start()
                await heard.has(Hello, 2)
                assert link.pid != started.pid
        assert started.pid is not None
        assert gone(started.pid)


async def test_a_killed_worker_is_heard_with_its_signal_and_log(stage: Stage) -> None:
    async with linked() as (link, heard):
        await heard.has(Hello)
        link.send(question("die 4"))
        await heard.has(WorkerExited)
        assert link.pid is None
    last = heard.words[-1]
    assert (last.signal_name, last.log, last.expected) == ("SIGKILL", ("about to be killed",), False)


async def test_restart_replaces_a_living_worker_and_mutes_it(stage: Stage) -> None:
    async with linked() as (link, heard):
        await heard.has(Hello)
        old = link.pid
        link.send(question("write 100000 slowly"))
        await heard.has(Token)
        link.start()
        await heard.has(Hello, 2)
        assert gone(old)
        assert link.pid != old
        count = len(heard.of(Token))
        await asyncio.sleep(0.2)
        assert len(heard.of(Token)) == count
    assert not heard.of(WorkerExited)


async def test_nothing_of_a_worker_is_heard_after_its_restart_was_asked_for(stage: Stage) -> None:
    async with linked() as (link, heard):
        await heard.has(Hello)

        def hear(event: Any) -> None:
            heard.append(event)
            if isinstance(event, Token) and event.position == 3:
                link.start()  # what follows is read already

        link.hear = hear
        link.send(LoadModel("starter"))
        link.send(question("write 50"))
        await heard.has(Hello, 2)
    at = next(i for i, event in enumerate(heard) if isinstance(event, Token) and event.position == 3)
    assert isinstance(heard[at + 1], Hello)


async def test_two_restarts_at_once_leave_one_worker(stage: Stage) -> None:
    async with linked() as (link, heard):
        link.start()
        link.start()
        await heard.has(Hello)
        await asyncio.sleep(0.2)
    assert len(heard.of(Hello)) == 1


async def test_closing_before_anything_began(stage: Stage) -> None:
    async with linked() as (link, heard):
        pass
    assert heard == []
    async with linked(start=False) as (link, heard):
        link.send(LoadModel("starter"))
    assert heard == []


async def test_a_command_that_is_no_program_or_ends_before_hello(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with linked(["/nowhere/draftlight-worker"]) as (_, heard):
        await until(lambda: bool(heard))
    (said,) = heard
    assert "could not be started" in said.message
    monkeypatch.setenv("FAKE_START", "exit")
    async with linked() as (_, heard):
        await heard.has(WorkerExited)
    (last,) = heard
    assert (last.returncode, last.log) == (3, ("cannot begin",))


async def test_silence_is_heard_and_a_hung_worker_is_replaced(stage: Stage) -> None:
    async with linked(silence_s=0.6) as (link, heard):
        # On a busy machine it may be silent before its first word, too.
        await until(lambda: bool(heard) and isinstance(heard[-1], Hello | Heartbeat))
        os.kill(link.pid or 0, signal.SIGSTOP)
        await until(lambda: isinstance(heard[-1], WorkerSilent))
        link.start()
        await heard.has(Hello, 2)


@pytest.mark.skipif(sys.platform == "darwin", reason="threads have a quality of service there")
async def test_the_worker_gives_way_to_the_window(stage: Stage) -> None:
    async with linked() as (link, heard):
        await heard.has(Hello)
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, link.pid or 0) > min(18, own)


async def test_a_listener_or_a_command_that_fails_is_reported_and_keeps_nothing_back(stage: Stage) -> None:
    reported: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(str(context["exception"])))

    async def fail() -> None:
        raise KeyError("the chat is gone")

    async with linked() as (link, heard):

        def hear(one: object) -> None:
            heard.append(one)
            if isinstance(one, Hello):
                raise ValueError("a bug in the window")

        link.hear = hear
        await heard.has(Heartbeat)
        assert reported == ["a bug in the window"]
        link.send(LoadModel("starter"), fail)
        link.send(object())  # it cannot be encoded
        link.send(question("write 7"))
        await heard.has(Token, 7)
        assert heard.of(ModelLoaded)
    assert len(reported) == 3
    assert "the chat is gone" in reported[1]
