"""The Lab in the whole window: a real sweep in its own process, paused, stopped, kept, opened, exported."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.controllers.link import WorkerLink
from app.features.lab import strings
from app.features.lab.board import DifferenceWindow
from app.features.lab.window import LabWindow
from app.launch.scenario import ask
from app.session.lab import LabStage
from app.shell.window import MainWindow
from core.events import Command, ModelEntry, ModelList, PositionStat, StandStill
from core.events.sweep import SweepCell, SweepPair, SweepReading, SweepResults, SweepTurn
from tests.app.stage import click, gone, play, press, ready, until

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
SAME = SweepPair(2.0, 20.0, 10.0)
OTHER = SweepPair(1.5, 15.0, 10.0, 0.1, 0.1, 2, 0.01, True, "one two three", "one two four")
RESULTS = SweepResults(
    "sweep",
    "Toy 1M",
    "here",
    ("auto", "frequency"),
    "fast",
    2,
    32,
    1_760_000_000.0,
    took_s=90.0,
    answers=8,
    ended=True,
    cells=(
        SweepCell("code", 0, "auto", 5, 6, 0.5, 2.0, (PositionStat(4, 3),), (SAME, SAME)),
        SweepCell("code", 0, "frequency", 5, 6, 0.5, 2.0, (PositionStat(4, 1),), (SAME, OTHER)),
    ),
    turns=(SweepTurn("talk", "auto", 1, 5, 20.0, 10.0, True),),
    readings=(SweepReading("lexical", 20.0, 100, 20, 1.0, 3.0),),
)


def test_mtp_is_measured_where_the_model_has_a_head(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        lab = await opened(window)
        box = lab.choices.drafters["mtp"]
        for head_bytes in (1_000, 0):
            entry = ModelEntry("starter", "Fake 1M", "starter", "fake", head_bytes=head_bytes)
            window.controller.handle(ModelList("", "", (entry,), (), 1, 1))
            assert box.isEnabled() == bool(head_bytes)
            assert bool(box.toolTip()) != bool(head_bytes)
            box.setChecked(True)
            assert ("mtp" in lab.choices.plan.drafters) == bool(head_bytes)
        window.lab.offer_model(Path("another"))  # of which nothing is known yet
        assert box.isEnabled()

    play(qapp, scene)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    lines = [
        {"class": "list", "prompt": "one two one two one two"},
        {"class": "tale", "prompt": "once upon a time"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


async def opened(window: MainWindow) -> LabWindow:
    await ready(window)
    await press(window, Qt.Key.Key_L, CTRL | SHIFT)
    lab = window.lab.window
    assert lab
    assert lab.isVisible()
    return lab


def choose(window: MainWindow, lab: LabWindow, model: Path, prompts: Path, tokens: int) -> None:
    """Two drafters on the classes of `prompts`, once each."""
    choices = lab.choices
    window.lab.offer_model(model)
    window.lab.add_prompts(prompts)
    for kind, box in choices.kinds.items():
        box.setChecked(kind in ("list", "tale"))
    for name, box in choices.drafters.items():
        box.setChecked(name in ("ngram-simple", "frequency"))
    choices.repeats.set_value(1)
    choices.most_tokens.set_value(tokens)


def test_a_sweep(qapp: QApplication, toy_folder: Path, prompts: Path, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        lab = await opened(window)
        assert lab.speed.accessibleDescription() == strings.EMPTY
        choose(window, lab, toy_folder, prompts, 12)
        assert lab.choices.about.text().startswith("8 answers.")
        await click(lab.choices.run_button)
        assert lab.choices.stop_button.hasFocus()
        await until(
            lambda: bool(window.lab.lab.results and window.lab.lab.results.cells), 60, "nothing measured"
        )
        assert "list" in lab.speed.accessibleDescription().lower()  # it fills while it runs
        await until(lambda: window.lab.lab.stage is LabStage.IDLE, 60, "does not end")
        results = window.lab.lab.results
        assert results
        assert results.ended
        assert window.lab.lab.trouble == ""
        assert [(cell.kind, cell.drafter) for cell in results.cells] == [
            ("list", "ngram-simple"),
            ("list", "frequency"),
            ("tale", "ngram-simple"),
            ("tale", "frequency"),
        ]
        assert lab.choices.run_button.hasFocus()  # it had it before it became Stop
        assert lab.differ.text() == strings.differ(0, 0)
        assert "4 of 4 answers are identical" in lab.parity.accessibleDescription()
        assert "N-gram simple on Tale" in lab.speed.accessibleDescription()
        # The next one is estimated by it.
        await until(lambda: "8 answers, about" in lab.choices.about.text())
        assert len(list((tmp_path / "home" / "lab").glob("*/results.json"))) == 1
        written = window.lab.export(tmp_path)
        assert [path.name for path in written] == ["report.md", "results.json", "charts.png"]
        assert all(path.stat().st_size > 0 for path in written)

    play(qapp, scene, folder=tmp_path / "home")


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


def test_it_stands_still_while_the_chat_is_answered_and_stops_at_once(
    qapp: QApplication, toy_folder: Path, prompts: Path, told: list[bool]
) -> None:
    def state(pid: int) -> str:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]

    async def scene(window: MainWindow) -> None:
        lab = await opened(window)
        choose(window, lab, toy_folder, prompts, 1000)
        lab.choices.repeats.set_value(9)
        await click(lab.choices.run_button)
        await until(lambda: window.lab.lab.total > 0, 60, "never began")
        pid = window.lab.process.pid
        assert pid
        assert told == [True]  # its idle work would be measured, too
        ask(window, "Please write 30 words slowly")
        assert window.lab.lab.paused
        assert lab.choices.about.text() == strings.PAUSED
        if os.path.isdir("/proc"):
            await until(lambda: state(pid) == "T", what="does not stand still")
        await ready(window)
        assert not window.lab.lab.paused
        if os.path.isdir("/proc"):
            await until(lambda: state(pid) != "T", what="does not go on")
        await click(lab.choices.stop_button)
        assert lab.choices.about.text() == strings.STOPPING
        await until(lambda: window.lab.lab.stage is LabStage.IDLE, what="does not stop")
        assert gone(pid)
        assert told == [True, True, False]
        assert window.lab.lab.trouble == ""
        assert window.lab.lab.results

    play(qapp, scene)


def test_closing_the_chat_window_ends_a_sweep(qapp: QApplication, toy_folder: Path, prompts: Path) -> None:
    pids: list[int] = []

    async def scene(window: MainWindow) -> None:
        lab = await opened(window)
        choose(window, lab, toy_folder, prompts, 1000)
        lab.choices.repeats.set_value(9)
        await click(lab.choices.run_button)
        await until(lambda: window.lab.lab.total > 0, 60, "never began")
        assert window.lab.process.pid
        pids.append(window.lab.process.pid)

    play(qapp, scene)
    assert gone(pids[0])


async def test_what_goes_wrong_is_said(window: MainWindow, prompts: Path, tmp_path: Path) -> None:
    lab = await opened(window)
    choose(window, lab, tmp_path / "nothing-here", prompts, 12)
    await click(lab.choices.run_button)
    await until(lambda: window.lab.lab.stage is LabStage.IDLE, 60, "does not end")
    assert "nothing-here" in lab.choices.about.text()
    for box in lab.choices.drafters.values():
        box.setChecked(False)
    assert not lab.choices.run_button.isEnabled()
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    window.lab.open_results([broken])
    assert "broken.json" in lab.choices.about.text()


def test_opened_results_and_where_texts_part(qapp: QApplication, tmp_path: Path) -> None:
    file = tmp_path / "home" / "lab" / "2026-01-02 10-00-00" / "results.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(msgspec.json.encode(RESULTS))

    async def scene(window: MainWindow) -> None:
        lab = await opened(window)
        await until(lambda: lab.past.findData(str(file)) >= 0)
        lab.past.set_value(str(file))
        assert "Toy 1M" in lab.titles.says
        assert "Frequency on Code: 1.75 times plain, 1.50 to 2.00" in lab.speed.accessibleDescription()
        assert "Auto: 1 75%" in lab.places.accessibleDescription()
        assert "Plain: 1 10.0" in lab.turns.accessibleDescription()
        assert "20%: 1.00 s" in lab.keeps.accessibleDescription()
        assert lab.differ.text() == "1 differs after a close call."
        place = lab.parity.differing[0]
        QTest.mouseClick(lab.parity, Qt.MouseButton.LeftButton, pos=place.box.center().toPoint())
        shown = lab.findChild(DifferenceWindow)
        assert isinstance(shown, DifferenceWindow)
        assert shown.plain.toPlainText() == "one two three"
        assert shown.drafted.toPlainText() == "one two four"
        # Marked is what comes after “one two t” and “one two f” began alike.
        assert shown.plain.extraSelections()[0].cursor.selectedText() == "three"
        assert "From token 3 on." in shown.says.text()
        shown.close()

    play(qapp, scene, folder=tmp_path / "home")


def test_the_board_by_keyboard(qapp: QApplication, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_bytes(msgspec.json.encode(RESULTS))

    async def scene(window: MainWindow) -> None:
        lab = await opened(window)
        window.lab.open_results([file])
        opened_marks: list[int] = []
        lab.parity.mark_opened.connect(opened_marks.append)
        lab.parity.mark_opened.disconnect(lab.open_difference)
        for _ in range(4):
            QTest.keyClick(lab.parity, Qt.Key.Key_Right)
        assert "Code 1, Frequency, run 2" in lab.parity.accessibleDescription()
        QTest.keyClick(lab.parity, Qt.Key.Key_Return)
        assert opened_marks == [0]
        QTest.keyClick(lab.parity, Qt.Key.Key_Left)
        QTest.keyClick(lab.parity, Qt.Key.Key_Return)  # the same text: nothing to open
        assert opened_marks == [0]

    play(qapp, scene)
