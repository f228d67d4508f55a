"""A worker that is stopped and goes on, as when the machine sleeps: no figure knows of it, and no watch."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from core.events import Finished, Heartbeat, Token
from core.events.codec import WorkerSilent
from core.system.clock import MOST_S
from tests.core.worker.test_worker import ask, worker

_PAUSE_S = 2.0
pytestmark = pytest.mark.quiet


async def test_a_pause_in_mid_answer_is_in_no_figure(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        began_s = time.perf_counter()
        await talk.client.send(ask("r", **{"sampling.max_tokens": 240, "drafting.drafter": "off"}))
        await talk.until(Token)
        pid = talk.client.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(_PAUSE_S)
        os.kill(pid, signal.SIGCONT)
        stats = (await talk.until(Finished)).stats
        took_s = time.perf_counter() - began_s
        assert stats.tokens == 240
        assert stats.total_s < took_s - _PAUSE_S + MOST_S + 0.2
        assert stats.tokens_per_s > 240 / took_s
        assert stats.decode_s <= stats.total_s
        await talk.until(Heartbeat)
        assert all(beat.stalled_s < _PAUSE_S for beat in talk.of(Heartbeat))
        assert talk.of(WorkerSilent) == []
