"""The window's bench: a chat that is always the same, a small run of every scene, the report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QApplication

from app.bench import window as window_bench
from app.bench.measures import (
    Cost,
    CostRun,
    Scenes,
    Times,
    WindowResults,
    measure,
    play,
    report,
    times_of,
)
from app.bench.sample_chat import sample_tokens, sample_turns
from app.shell.window import MainWindow
from core.worker.client import worker_command
from tests.app import stage


def test_the_sample_is_the_same_each_time_and_of_all_kinds() -> None:
    one, two = sample_turns(4, 300), sample_turns(4, 300)
    assert one == two
    assert sample_turns(4, 300, seed=8) != one
    for turn in one:
        assert len(turn.answer.tokens) == 300
        stats = turn.answer.finished.stats if turn.answer.finished else None
        assert stats.tokens == stats.accepted + stats.bonus + stats.normal == 300
        assert stats.steps == stats.bonus + stats.normal == turn.answer.tokens[-1].step
    source = "".join(turn.answer.text for turn in sample_turns(20, 300))
    for mark in ("**", "\n1. ", "```python", "|:--|", "\n> ", "\\("):
        assert mark in source
    assert "\n" not in "".join(token.text for token in sample_tokens(500, paragraph=True))


def test_figures() -> None:
    assert times_of([0.001] * 98 + [0.005, 0.009]) == Times(100, 1.0, 9.0, 9.0)


@pytest.mark.sweep
def test_every_scene_plays_in_the_window(qapp: QApplication) -> None:
    heard: list[Scenes] = []

    async def scene(window: MainWindow) -> None:
        heard.append(
            await stage.outside_of_tasks(lambda: play(window, turns=8, answer_tokens=200, frames=20))
        )
        assert window.views.transcript.answer_text("bench-new")

    stage.play(qapp, scene)
    (scenes,) = heard
    assert (scenes.messages, scenes.scroll.count, scenes.open.count) == (16, 20, 10)
    assert (scenes.scroll_images.count, scenes.open_images.count) == (20, 10)
    assert scenes.tokens > 1600
    assert scenes.rss_bytes > 10_000_000
    assert scenes.flush.count == 600


def test_the_report_says_what_was_kept() -> None:
    fast, slow = Times(9, 1.0, 2.0, 3.0), Times(9, 30.0, 900.0, 900.0)
    scenes = Scenes(200, 60000, fast, slow, slow, fast, (fast, slow), 200_000_000, fast, slow)
    cost = Cost(
        (CostRun(100, 2.0, 0.1), CostRun(100, 2.0, 0.1)), (CostRun(100, 2.02, 0.2), CostRun(100, 2.04, 0.2))
    )
    assert cost.added == pytest.approx((0.01, 0.02))
    assert cost.busy == pytest.approx(0.1 / 2.03, rel=0.01)
    text = report(WindowResults((0.8, 0.9, 2.0), (3.0, 4.1, 4.2), scenes, cost))
    kept = {line.split("|")[1].strip(): line.split("|")[4].strip() for line in text.splitlines()[2:]}
    assert kept["Window up"] == "kept"
    assert kept["Worker ready"] == "missed"
    assert kept["A frame while scrolling"] == "missed"
    assert kept["A jump of the scroll bar"] == ""
    assert kept["Opening a chat of 20 images"] == "kept"
    assert kept["A frame while scrolling it"] == "missed"
    assert kept["… into one paragraph, from token 1,000 on"] == "missed"
    assert kept["Decode time the window adds"] == "kept"
    assert kept["One core's time for the window"] == ""
    found = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in text.splitlines()[2:]}
    assert found["Window up"] == "0.90 s (longest 2.00)"
    assert found["Decode time the window adds"] == "+1.5% (2 pairs, +1.0% to +2.0%)"
    assert found["One core's time for the window"] == "4.9%"


@pytest.mark.sweep
def test_the_command_writes_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert window_bench.main(["--out", str(tmp_path / "out"), "--parts", "start"]) == 0
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=WindowResults)
    assert len(results.starts_s) == 5
    assert 0.05 < min(results.starts_s) < 60
    assert "Window up" in (tmp_path / "out" / "report.md").read_text()
    assert "Window up" in capsys.readouterr().out


@pytest.mark.sweep
def test_what_the_window_adds_is_measured_with_one_worker(qapp: QApplication, toy_folder: Path) -> None:
    heard: list[Cost] = []

    async def scene(window: MainWindow) -> None:
        heard.append(await measure(window, 2, 24))
        # The window goes on as before: it never heard of the runs past it.
        await stage.ready(window)
        assert window.views.banner.trouble is None
        assert len(window.controller.chats.listed()) == 3

    stage.play(qapp, scene, command=worker_command(), model=str(toy_folder))
    (cost,) = heard
    assert len(cost.alone) == len(cost.in_window) == 2
    assert {run.tokens for run in (*cost.alone, *cost.in_window)} == {24}
    assert all(run.decode_s > 0 and run.window_s > 0 for run in (*cost.alone, *cost.in_window))
