"""The Lab in the whole window: a real bench in its own process, paused, stopped, ended with the window."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.controllers.link import WorkerLink
from app.features import lab as words
from app.features.lab import LabWindow
from app.launch.scenario import ask
from app.session.turn.intents import Load
from app.shell.window import MainWindow
from core.events import Command, StandStill
from tests.app.stage import Stage, click, gone, press, ready, until

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


async def opened(window: MainWindow, model: Path, tokens: int, repeats: int = 1) -> LabWindow:
    """With two drafters and a model that the fake worker only names."""
    await ready(window)
    window.controller.handle(Load(str(model)))
    await ready(window)
    await press(window, Qt.Key.Key_L, CTRL | SHIFT)
    lab = window.lab.window
    assert lab.isVisible()
    for name, box in lab.boxes.items():
        box.setChecked(name in ("ngram-simple", "frequency"))
    window.lab.cases = str(prompts := model.with_name("prompts.jsonl"))
    lines = [{"class": kind, "prompt": f"one two {kind} one two one two"} for kind in words.KINDS]
    prompts.write_text("\n".join(map(json.dumps, lines)))
    lab.repeats.set_value(repeats)
    lab.most_tokens.set_value(tokens)
    return lab


async def test_a_measurement_fills_the_table(stage: Stage, toy_folder: Path, tmp_path: Path) -> None:
    window = await stage.open(folder=tmp_path / "home")
    lab = await opened(window, toy_folder, 8)
    assert lab.status.text() == words.EMPTY_HINT
    lab.run_button.setFocus()
    await click(lab.run_button)
    assert lab.status.text() == words.STARTING
    assert lab.stop_button.hasFocus()
    assert not lab.repeats.isEnabled()
    await until(lambda: bool(lab.list.rows), what="nothing is shown while it runs")
    await until(lambda: not window.lab.measurement.running, what="does not end")
    assert window.lab.measurement.trouble == ""
    assert {row.id for row in lab.list.rows} == {
        f"{kind}/{drafter}" for kind in words.KINDS for drafter in ("ngram-simple", "frequency")
    }
    for row in lab.list.rows:
        same, _, of = row.equal.split()
        assert int(same) == int(of) > 0
    assert ", measured in " in lab.status.text()
    assert lab.run_button.hasFocus()  # it had it before it became Stop
    assert lab.repeats.isEnabled()
    assert len(list((tmp_path / "home" / "lab").glob("*/bench.jsonl"))) == 1


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the chat's worker was to stand still, each time that it was told."""
    found: list[bool] = []
    send = WorkerLink.send

    def heard(link: WorkerLink, command: Command, after: Callable[[], Awaitable[None]] | None = None) -> None:
        if isinstance(command, StandStill):
            found.append(command.wanted)
        send(link, command, after)

    monkeypatch.setattr(WorkerLink, "send", heard)
    return found


@pytest.mark.sweep
async def test_it_stands_still_while_the_chat_is_answered_and_ends_at_once(
    stage: Stage, toy_folder: Path, told: list[bool]
) -> None:
    def state(pid: int) -> str:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]

    window = await stage.open()
    lab = await opened(window, toy_folder, 1000, repeats=9)
    await click(lab.run_button)
    await until(lambda: window.lab.measurement.total > 0, what="never began")
    pid = window.lab.pid
    assert pid
    assert told == [True]  # its idle work would be measured, too
    ask(window, "Please write 30 words slowly")
    assert lab.status.text() == words.PAUSED
    if os.path.isdir("/proc"):
        await until(lambda: state(pid) == "T", what="does not stand still")
    await ready(window)
    assert lab.status.text() != words.PAUSED
    if os.path.isdir("/proc"):
        await until(lambda: state(pid) != "T", what="does not go on")
    await click(lab.stop_button)
    assert lab.status.text() == words.STOPPING
    await until(lambda: not window.lab.measurement.running, what="does not stop")
    assert gone(pid)
    assert told == [True, True, False]
    assert window.lab.measurement.trouble == ""
    # Closing the window ends one, too.
    await click(lab.run_button)
    await until(lambda: window.lab.measurement.total > 0, what="never began again")
    pid = window.lab.pid
    await stage.close()
    assert gone(pid)


async def test_what_goes_wrong_is_said(window: MainWindow, tmp_path: Path) -> None:
    lab = await opened(window, tmp_path / "nothing-here", 12)
    await click(lab.run_button)
    await until(lambda: not window.lab.measurement.running, what="does not end")
    assert "nothing-here" in lab.status.text()
    for box in lab.boxes.values():
        box.setChecked(False)
    assert not lab.run_button.isEnabled()
