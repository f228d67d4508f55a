"""The worker process for real: started, spoken to, cancelled, killed, orphaned."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest

from core.errors import WorkerError
from core.events import (
    Cancel,
    CountTokens,
    Failed,
    Finished,
    Generate,
    Heartbeat,
    Hello,
    LoadModel,
    LoadProgress,
    Message,
    ModelLoaded,
    ModelUnloaded,
    PrefillProgress,
    Shutdown,
    Token,
    TokenCount,
    UnloadModel,
)
from core.events.codec import BadLine, WorkerEvent, WorkerExited, WorkerSilent
from core.settings import Settings, assign
from core.worker.client import WorkerClient
from tests import forks
from tests.processes import command_line

T = TypeVar("T")


class Conversation:
    """A client and what it heard so far."""

    def __init__(self, client: WorkerClient) -> None:
        self.client = client
        self.heard: list[WorkerEvent] = []
        self._events = client.events()

    async def until(self, kind: type[T], timeout_s: float = 60.0) -> T:
        """Listen until something of `kind` is heard."""

        async def listen() -> T:
            async for heard in self._events:
                self.heard.append(heard)
                if isinstance(heard, kind):
                    return heard
            raise AssertionError(f"the worker ended before {kind.__name__}: {self.heard[-3:]}")

        return await asyncio.wait_for(listen(), timeout_s)

    def of(self, kind: type[T]) -> list[T]:
        return [heard for heard in self.heard if isinstance(heard, kind)]


@asynccontextmanager
async def worker(model: Path | None = None, **options: Any) -> AsyncIterator[Conversation]:
    """A worker, with `model` loaded if there is one."""
    client = WorkerClient(**options)
    await client.start()
    talk = Conversation(client)
    try:
        if model is not None:
            await client.send(LoadModel(str(model)))
            await talk.until(ModelLoaded)
        yield talk
    finally:
        await client.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 120))


def ask(request: str, text: str = "hello", **values: object) -> Generate:
    settings = Settings()
    for key, value in {"sampling.max_tokens": 40, "ngram_simple.n_min": 1, **values}.items():
        settings = assign(settings, key, value)
    return Generate(request, (Message("user", text),), settings)


@pytest.mark.sweep
@pytest.mark.parametrize("executes", [True, False])
async def test_a_whole_life(toy_folder: Path, executes: bool) -> None:
    """As the program that the window starts, and as the fork that most tests use."""
    with forks.executing() if executes else nullcontext():
        async with worker() as talk:
            hello = await talk.until(Hello)
            assert hello.pid == talk.client.pid
            if Path("/proc/self").exists():
                assert ("forks" in command_line(hello.pid)) != executes
            await talk.client.send(LoadModel(str(toy_folder)))
            loaded = await talk.until(ModelLoaded)
            assert talk.of(LoadProgress)
            assert loaded.info.context_tokens == 512
            await talk.client.send(CountTokens("c", "four"))
            assert (await talk.until(TokenCount)).tokens == 4
            await talk.client.send(ask("r1"))
            finished = await talk.until(Finished)
            assert finished.request == "r1"
            assert finished.reason == "length"
            assert len(talk.of(Token)) == finished.stats.tokens == 40
            assert talk.of(PrefillProgress)
            await talk.client.send(UnloadModel())
            await talk.until(ModelUnloaded)
            await talk.client.send(ask("r2"))
            assert (await talk.until(Failed)).code == "no-model"
            assert (await talk.until(Heartbeat)).activity == "empty"
            await talk.client.stop(60)
            exited = await talk.until(WorkerExited)
            assert (exited.returncode, exited.expected) == (0, True)
            assert talk.of(BadLine) == []


async def test_cancel_acts_within_a_step(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        await talk.client.send(ask("long", **{"sampling.max_tokens": 480, "drafting.drafter": "off"}))
        await talk.until(Token)
        await talk.client.send(Cancel("other"))
        await talk.client.send(Cancel("long"))
        finished = await talk.until(Finished)
        assert finished.reason == "cancelled"
        assert len(talk.of(Token)) == finished.stats.tokens < 480
        await talk.client.send(ask("next"))
        assert (await talk.until(Finished)).reason == "length"


async def test_bad_lines_are_answered_and_survived(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        process = talk.client._process
        assert process is not None
        assert process.stdin is not None
        for line, code in (
            (b"nonsense\n", "bad-message"),
            (b"\xff\xfe\n", "bad-message"),
            (b'{"type":"generate","request":"x"}\n', "bad-message"),
            (
                b'{"type":"generate","request":"y","messages":[],"settings":{"ngram_simple":{"k":0}}}\n',
                "bad-setting",
            ),
            (
                b'{"type":"generate","request":"z","messages":[],"settings":{"drafting":{"drafter":"q"}}}\n',
                "bad-setting",
            ),
        ):
            process.stdin.write(line)
            failed = await talk.until(Failed)
            assert failed.code == code
            assert failed.message
        for request, text, code in (("e", "  ", "empty-prompt"), ("l", "x" * 600, "prompt-too-long")):
            await talk.client.send(ask(request, text))
            failed = await talk.until(Failed)
            assert (failed.request, failed.code, failed.kind) == (request, code, "request")
        await talk.client.send(ask("good"))
        assert (await talk.until(Finished)).request == "good"


async def test_killed_in_mid_answer(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        await talk.client.send(ask("r", **{"sampling.max_tokens": 480, "drafting.drafter": "off"}))
        await talk.until(Token)
        assert talk.client.pid is not None
        os.kill(talk.client.pid, signal.SIGKILL)
        exited = await talk.until(WorkerExited)
        assert (exited.signal_name, exited.expected) == ("SIGKILL", False)
        with pytest.raises(WorkerError, match="not running"):
            await talk.client.send(ask("r2"))


async def test_the_worker_ends_when_its_window_is_gone(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        await talk.client.send(ask("r", **{"sampling.max_tokens": 480}))
        await talk.until(Token)
        process = talk.client._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        exited = await talk.until(WorkerExited, 20)
        assert exited.returncode == 0


def _sleeper(first_s: float) -> list[str]:
    """A worker that sends one line after `first_s` seconds, and nothing more; SIGTERM does not end it."""
    code = (
        "import signal, time; signal.signal(15, signal.SIG_IGN);"
        f"time.sleep({first_s}); print('hi', flush=True); time.sleep(600)"
    )
    return [sys.executable, "-c", code]


async def test_a_worker_that_hangs_is_noticed_and_killed() -> None:
    async with worker(command=_sleeper(0), silence_s=0.3) as talk:
        assert (await talk.until(WorkerSilent)).seconds == 0.3
        await talk.client.stop(timeout_s=0.5)
        assert (await talk.until(WorkerExited)).signal_name == "SIGKILL"


async def test_a_start_may_take_longer_than_a_silence() -> None:
    """On a busy machine a worker imports its libraries for longer than a running one may be silent."""
    async with worker(command=_sleeper(1.0), silence_s=0.3, starting_s=600) as talk:
        assert (await talk.until(WorkerSilent)).seconds == 0.3
        assert len(talk.of(BadLine)) == 1, "silent before its first line"


async def test_a_start_that_hangs_is_noticed() -> None:
    async with worker(command=_sleeper(600), silence_s=0.2, starting_s=0.6) as talk:
        assert (await talk.until(WorkerSilent)).seconds == 0.6
        await talk.client.stop(timeout_s=0.5)


@pytest.mark.parametrize("niceness", [0, 3])
async def test_a_worker_runs_at_the_priority_of_its_owner(niceness: int) -> None:
    """Only the window's worker gives way to other processes."""
    told = [
        sys.executable,
        "-c",
        "import os, sys; sys.stdin.readline(); print(f'at {os.nice(0)}.', flush=True)",
    ]
    async with worker(command=told, niceness=niceness) as talk:
        talk.client.post(Shutdown())
        assert f"at {os.nice(0) + niceness}." in (await talk.until(BadLine)).message


async def test_foreign_output_is_a_bad_line_and_stderr_is_kept() -> None:
    noisy = [
        sys.executable,
        "-c",
        "import sys; print('hi'); print('trouble', file=sys.stderr); sys.exit(3)",
    ]
    async with worker(command=noisy) as talk:
        assert "hi" in (await talk.until(BadLine)).message
        exited = await talk.until(WorkerExited)
        assert exited.returncode == 3
        assert exited.log == ("trouble",)


async def test_a_worker_that_cannot_start() -> None:
    client = WorkerClient(["/no/such/program"])
    with pytest.raises(WorkerError, match="could not be started"):
        await client.start()
    await client.stop()


async def test_prints_of_libraries_do_not_reach_the_wire(toy_folder: Path) -> None:
    """Whatever writes to fd 1 inside the worker ends up on stderr."""
    code = (
        "import os, sys\n"
        "from core.worker.main import Channel\n"
        "from core.events import ModelUnloaded\n"
        "c = Channel()\n"
        "print('a print'); os.write(1, b'a write\\n'); os.system('echo a child')\n"
        "sys.stdout.flush(); c.send(ModelUnloaded())\n"
    )
    async with worker(command=[sys.executable, "-c", code]) as talk:
        await talk.until(WorkerExited)
        assert talk.of(BadLine) == []
        assert len(talk.of(ModelUnloaded)) == 1
        assert set(talk.client.log) == {"a print", "a write", "a child"}
