"""A worker that leads: it answers over two machines, and ends when one is lost, saying which."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.events import (
    CheckMachines,
    ClusterEnded,
    Failed,
    Finished,
    Generate,
    LoadModel,
    MachineFigures,
    MachinesChecked,
    Message,
    ModelLoaded,
    Rehearse,
    Token,
)
from core.events.codec import WorkerExited
from core.settings import Settings, assign_all
from tests.core.cluster.machines import DEADLINE_S, followed, use_all_cores, with_new_ports
from tests.core.toy import write_toy_model
from tests.core.worker.test_worker import run, worker

_ANSWER = assign_all(Settings(), [("sampling.max_tokens", 400), ("sampling.temperature", 0.0)])


@pytest.fixture(autouse=True)
def _cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    use_all_cores()
    yield
    if before is not None:
        os.sched_setaffinity(0, before)


@pytest.mark.cluster
def test_a_machine_that_is_killed_ends_the_cluster_and_another_one_can_begin(tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    write_toy_model(folder)

    async def lead() -> None:
        with followed(tmp_path, 1) as (cluster, (follow,)):
            async with worker() as first:
                await first.client.send(CheckMachines("k", cluster, str(folder)))
                checked = await first.until(MachinesChecked)
                assert checked.runs, checked
                assert [each.name for each in checked.machines][1:] == ["machine 1"]
                await first.client.send(LoadModel(str(folder), cluster))
                info = (await first.until(ModelLoaded)).info
                assert info.machines[1:] == ("machine 1",)
                await first.client.send(Rehearse("r", True))
                assert "does not support rehearsal" in (await first.until(Failed)).message
                figures = await first.until(MachineFigures)
                assert [each.name for each in figures.machines] == list(info.machines)
                await first.client.send(Generate("a", (Message("user", "Tell me."),), _ANSWER))
                await first.until(Token)
                # The process that was only looked at has ended, or ends now.
                while len(follow.at_work) > 1:
                    await asyncio.sleep(0.05)
                (at_work,) = follow.at_work
                os.kill(at_work, signal.SIGKILL)
                started = time.monotonic()
                ended = await first.until(ClusterEnded)
                assert (ended.machine, ended.end) == ("machine 1", "lost")
                assert "machine 1 was lost" in ended.message
                exited = await first.until(WorkerExited)
                assert exited.returncode == 69
                assert time.monotonic() - started < DEADLINE_S
            # The same `draftlight follow` takes the next leader, whose answer is whole.
            async with worker() as second:
                await second.client.send(LoadModel(str(folder), with_new_ports(cluster)))
                await second.until(ModelLoaded)
                await second.client.send(Generate("b", (Message("user", "Tell me."),), _ANSWER))
                assert (await second.until(Finished)).stats.tokens > 0
            for _ in range(100):
                if not follow.at_work:
                    break
                await asyncio.sleep(0.1)
            assert follow.at_work == []

    run(lead)


def test_a_machine_that_cannot_be_reached_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    write_toy_model(folder)

    async def lead() -> None:
        with followed(tmp_path, 1) as (cluster, _):
            pass
        async with worker() as one:
            await one.client.send(LoadModel(str(folder)))
            await one.until(ModelLoaded)
            await one.client.send(LoadModel(str(folder), replace(cluster, deadline_s=2.0)))
            failed = await one.until(Failed)
            assert "machine 1" in failed.message
            assert failed.code == "bad-cluster"
            await one.client.send(Generate("a", (Message("user", "Tell me."),), _ANSWER))
            assert (await one.until(Finished)).stats.tokens > 0

    run(lead)
