"""The window with a worker that leads and a follower, both real: killed in mid-answer, a click goes on."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.features.machines import strings
from app.features.machines.window import MachinesWindow
from app.launch.scenario import ask
from app.session.strings import MACHINE
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.stage import click, last, play, ready, shown, until
from tests.core.cluster.machines import followed, use_all_cores
from tests.core.toy import write_toy_model

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
_S = 60.0


@pytest.mark.sweep  # tests/core/cluster/test_worker.py kills one in `make test`
def test_a_follower_killed_in_mid_answer(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, home = tmp_path / "toy", tmp_path / "home"
    write_toy_model(folder)
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(home))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")

    async def scene(window: MainWindow) -> None:
        await ready(window, _S)
        with followed(tmp_path, 1) as (cluster, (follow,)):
            window.controller.home.preferences.change(cluster=cluster)
            beside = window.windows.show("machines")
            assert isinstance(beside, MachinesWindow)
            window.controller.models.take_folder(str(folder))
            await until(lambda: any(row.id == str(folder) for row in beside.models.rows), _S)
            beside.models.select(str(folder))
            await click(beside.check)
            await until(lambda: "toy runs over these 2 machines" in beside.finding, _S)
            assert [row.state for row in beside.machines.rows] == [strings.LEADS, strings.READY]
            await click(beside.run)
            await until(lambda: bool(window.views.strip.machines.machines), _S)
            await ready(window, _S)
            assert "toy on 2 machines" in window.views.header.subtitle
            values = [("sampling.max_tokens", 4_000), ("sampling.temperature", 0.0)]
            window.views.inspector.set_settings(assign_all(Settings(), values))
            ask(window, "go on")
            await until(lambda: len(last(window).tokens) > 5, _S)
            # The process that was only looked at has ended, or ends now.
            await until(lambda: len(follow.at_work) == 1, _S)
            (at_work,) = follow.at_work
            os.kill(at_work, signal.SIGKILL)
            await until(lambda: window.controller.link.phase is Phase.DEAD, _S)
        trouble = window.views.banner.trouble
        assert trouble
        assert trouble.title == "machine 1 was lost."
        assert "machine 1 was lost" in trouble.text
        partial = last(window)
        assert partial.status == "cut_off"
        assert shown(window) == partial.text
        assert f"{len(partial.tokens):,} tokens written so far" in trouble.text
        # Nobody follows there any more.
        await click(window.views.banner.remedy_button)
        await ready(window, _S)
        trouble = window.views.banner.trouble
        assert trouble
        assert trouble.title == f"toy runs on {MACHINE} alone now, without machine 1."
        assert "cannot be reached" in trouble.text
        window.views.inspector.set_settings(assign_all(Settings(), [("sampling.max_tokens", 8)]))
        ask(window, "Are you there?")
        await ready(window, _S)
        assert last(window).status == "finished"
        assert window.controller.chats.open.turns[0].answer.text == partial.text
        assert [row.state for row in beside.machines.rows] == [strings.LEADS, strings.NOT_REACHED]

    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    use_all_cores()
    try:
        play(qapp, scene, command=worker_command(), model=str(folder))
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)
