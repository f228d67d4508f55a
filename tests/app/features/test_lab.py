"""The Lab: its child process, whose every output is heard, and its words."""

from __future__ import annotations

import asyncio
import sys

import pytest

from app.features.lab.controller import SweepProcess
from app.features.lab.strings import duration, head, plan, progress
from app.session.lab import Given, Gone, ResultLost

LONG_LINES = """
import sys
for stream in (sys.stdout, sys.stderr):
    stream.write("x" * (17 * 1024 * 1024) + "\\n")
    stream.flush()
sys.exit(3)
"""


def test_a_line_that_is_too_long_is_told_and_the_end_is_heard() -> None:
    heard: list[Given] = []

    async def live() -> None:
        process = SweepProcess(heard.append)
        process.start([sys.executable, "-c", LONG_LINES])
        async with asyncio.timeout(30):
            while not any(isinstance(given, Gone) for given in heard):
                await asyncio.sleep(0.01)
        await process.close()

    asyncio.run(live())
    lost, gone = heard
    assert isinstance(lost, ResultLost)
    assert "not shown" in lost.reason
    assert isinstance(gone, Gone)
    assert "status 3" in gone.reason
    assert len(gone.reason) < 500


@pytest.mark.parametrize(
    ("length_s", "words"),
    [(0.4, "0 s"), (89.4, "89 s"), (90, "1 min 30 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")],
)
def test_a_time_is_not_broken_between_figure_and_unit(length_s: float, words: str) -> None:
    said = duration(length_s)
    assert said == words.replace(" ", "\u00a0")
    assert said in plan(8, 2, length_s)
    assert said in progress(1, 8, length_s)


def test_a_sweep_under_way_has_not_failed_to_end() -> None:
    assert head("starter", 3, 5.0, False, 0.0, runs=True).endswith(", running")
    assert head("starter", 3, 5.0, False, 0.0).endswith(", not ended")
