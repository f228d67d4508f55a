"""The Lab's child process: what it writes is heard, whatever it is."""

from __future__ import annotations

import asyncio
import sys

from app.features.lab.controller import SweepProcess
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
