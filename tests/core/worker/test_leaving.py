"""The worker's end, asked for or because its window is gone: what is being saved is saved."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from pathlib import Path

import pytest

from core.errors import WorkerError
from core.events import Finished, Heartbeat, LoadModel, ModelLoaded
from core.events.codec import WorkerExited
from core.worker import client
from tests.core.worker.test_worker import Conversation, ask, worker
from tests.processes import set_home
from tests.thinned import thinned

# A disk that takes some seconds for each file, in a worker that waits half a second for a forward.
_SLOW = (
    "import os, sys, time\n"
    "sync = os.fsync\n"
    "os.fsync = lambda file: (time.sleep({0}), sync(file))[1]\n"
    "import core.worker.main as worker\n"
    "worker._ORPHAN_GRACE_S = 0.5\n"
    "sys.exit(worker.main())\n"
)


# A worker that says that it saves, `{0}` times, and never ends.
_SAVES_ON = (
    "import signal, time\n"
    "from core.events import Heartbeat, encode\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "for _ in range({0}):\n"
    "    print(encode(Heartbeat('saving', 0.0, 1, 2)).decode(), end='', flush=True)\n"
    "    time.sleep(0.1)\n"
    "time.sleep(60)\n"
)


def _python(code: str, value: object) -> list[str]:
    return [sys.executable, "-c", code.format(value)]


async def _learn(talk: Conversation, toy_folder: Path) -> None:
    await talk.client.send(LoadModel(str(toy_folder)))
    await talk.until(ModelLoaded)
    await talk.client.send(ask("r", **{"drafting.drafter": "ngram-mod"}))
    await talk.until(Finished)


def _check_saved(home: Path) -> None:
    files = sorted(file.name for file in (home / "data" / "tables").iterdir())
    assert any("-n" in name and name.endswith(".safetensors") for name in files), files
    assert not [name for name in files if name.endswith(".tmp")]


@pytest.mark.sweep
@pytest.mark.parametrize("closed", thinned([("stdin",), ("stdout",), ("stdin", "stdout")], keep=[("stdin",)]))
async def test_a_save_under_way_is_finished(
    closed: tuple[str, ...], tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_home(monkeypatch, tmp_path)
    async with worker(command=_python(_SLOW, 0.8)) as talk:
        await _learn(talk, toy_folder)
        process = talk.client._process
        assert process is not None
        assert process.stdin is not None
        if "stdin" in closed:
            process.stdin.close()
        if "stdout" in closed:
            process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        assert await asyncio.wait_for(process.wait(), 30) == 0
    _check_saved(tmp_path)


@pytest.mark.sweep
async def test_stop_waits_for_a_save(
    tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_home(monkeypatch, tmp_path)
    async with worker(command=_python(_SLOW, 3.0)) as talk:
        await _learn(talk, toy_folder)
        await talk.client.stop(timeout_s=2.0)
        exited = await talk.until(WorkerExited)
        assert (exited.returncode, exited.expected) == (0, True)
    _check_saved(tmp_path)


@pytest.mark.parametrize(("beats", "least_s"), [(600, 2.0), (1, 0.5)])
async def test_no_save_keeps_a_worker_for_ever(
    beats: int, least_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_SAVING_LIMIT_S", 2.0)
    monkeypatch.setattr(client, "_SAVING_HEARD_S", 0.5)
    async with worker(command=_python(_SAVES_ON, beats)) as talk:
        await talk.until(Heartbeat)
        started = time.monotonic()
        await talk.client.stop(timeout_s=0.1)
        assert time.monotonic() - started > least_s * 0.9
        assert (await talk.until(WorkerExited)).signal_name == "SIGKILL"


async def test_a_worker_that_reads_nothing_is_stopped() -> None:
    async with worker(command=_python("import time; time.sleep({0})", 60)) as talk:
        sending = asyncio.ensure_future(talk.client.send(ask("r", "a long text " * 100_000)))
        await asyncio.sleep(0.1)
        assert not sending.done()
        await asyncio.wait_for(talk.client.stop(timeout_s=0.2), 10)
        with contextlib.suppress(WorkerError):
            await sending
