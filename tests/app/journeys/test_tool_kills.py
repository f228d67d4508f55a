"""The window is killed in every phase of a call: it ran at most once, and never waits again if it ran."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.app.journeys.test_tool_calls import allow, answer_of, asked, over, with_tools, written
from tests.app.stage import Stage, perform, until
from tests.core.tools.serving import noted

PHASES = ("waiting", "allowed", "running", "returned")


async def _calls(stage: Stage, folder: Path) -> None:
    """A call from its question to its answer; prints each phase as it begins."""
    window = await stage.ready(folder=folder / "chats")
    await with_tools(window, folder, "slow")
    (call,) = await asked(window, written("slow", seconds=0.3))
    assert window.controller.home.library.flush()
    print("waiting", flush=True)
    await asyncio.sleep(0.3)
    allow(window, call)
    print("allowed", flush=True)
    await until(lambda: noted(folder, "ran") == ["slow"])
    print("running", flush=True)
    await until(lambda: answer_of(window).calls[0].state == "done")
    print("returned", flush=True)
    await asyncio.sleep(60)


@pytest.mark.sweep
@pytest.mark.parametrize("delay_s", [0.0, 0.03, 0.4])
@pytest.mark.parametrize("phase", PHASES)
async def test_a_killed_window_never_repeats_a_call(
    stage: Stage, tmp_path: Path, phase: str, delay_s: float
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.app.journeys.test_tool_kills", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        for line in child.stdout:
            if line.strip() == phase:
                break
        time.sleep(delay_s)
        child.kill()
    child.wait()
    await asyncio.sleep(1.0)  # the tools' process reads the end of its stdin
    ran = noted(tmp_path, "ran")
    assert ran in ([], ["slow"])
    assert ran == ["slow"] or phase in ("waiting", "allowed")

    window = await stage.ready(folder=tmp_path / "chats")
    (listed,) = window.controller.chats.listed()
    window.controller.chat.listing.open_chat(listed.id)
    (call,) = answer_of(window).calls
    assert call.state in (("unknown", "done") if ran else ("waiting", "unknown"))
    await asyncio.sleep(1.0)
    assert noted(tmp_path, "ran") == ran
    if call.state == "waiting":
        assert answer_of(window).status == "calling"
        await until(lambda: window.controller.tool_servers.state("plain").phase == "ready")
        allow(window, call)
        assert (await over(window)).calls[0].state == "done"
    else:
        allow(window, call)
        assert answer_of(window).over
        await asyncio.sleep(0.5)
    assert noted(tmp_path, "ran") in (["slow"], ran)


if __name__ == "__main__":
    from PySide6.QtWidgets import QApplication

    perform(QApplication([]), lambda stage: _calls(stage, Path(sys.argv[1])))
