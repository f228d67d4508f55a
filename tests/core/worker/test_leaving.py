"""The worker's end when its window is gone: what is being saved is saved."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from core.events import Finished, LoadModel, ModelLoaded
from core.worker.client import WorkerExited
from tests.core.worker.test_worker import ask, worker

# A disk that takes two seconds for each file, in a worker that waits half a second for a forward.
_SLOW = (
    "import os, sys, time\n"
    "sync = os.fsync\n"
    "os.fsync = lambda file: (time.sleep(2), sync(file))[1]\n"
    "import core.worker.main as worker\n"
    "worker._ORPHAN_GRACE_S = 0.5\n"
    "sys.exit(worker.main())\n"
)


def test_a_save_under_way_is_finished(
    tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))

    async def life() -> None:
        async with worker(command=[sys.executable, "-c", _SLOW]) as talk:
            await talk.client.send(LoadModel(str(toy_folder)))
            await talk.until(ModelLoaded)
            await talk.client.send(ask("r", **{"drafting.drafter": "ngram-mod"}))
            await talk.until(Finished)
            process = talk.client._process
            assert process is not None
            assert process.stdin is not None
            process.stdin.close()
            assert (await talk.until(WorkerExited, 30)).returncode == 0

    asyncio.run(asyncio.wait_for(life(), 60))
    files = sorted(file.name for file in (tmp_path / "data" / "tables").iterdir())
    assert any("-n" in name and name.endswith(".safetensors") for name in files), files
    assert not [name for name in files if name.endswith(".tmp")]
