"""The report: within its time, with what it has, and with names for what it has not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.cli import doctor
from core.cli.doctor import Finding
from core.cli.report import Budget, Lines, OutOfTime, Report, Section, _Measurements
from core.engine.engine import Engine
from core.machine.buffers import CANDIDATES, BufferTimes, best, try_limits
from core.machine.width_cost import WIDTHS, ContextCost, CostProfile
from core.system import buffer_limits
from core.system.buffer_limits import BufferLimits, load_limits, save_limits, use_limits_of


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def section(clock: Clock, steps: int, *, seconds: float = 10.0) -> Section:
    """`steps` steps of `seconds` each, and a summary."""

    def lines() -> Lines:
        done = 0
        with suppress(OutOfTime):
            for _ in range(steps):
                clock.now_s += seconds
                done += 1
                yield ""
        yield f"{done} of {steps} steps"
        yield "end"

    return lines


def test_the_report_stops_at_its_time_and_names_what_it_skipped(tmp_path: Path, clock: Clock) -> None:
    def late() -> Lines:
        yield "a child"
        raise OutOfTime  # as of a child process that did not end in its time

    def broken() -> Lines:
        yield f"begun in {Path.home()}/x"
        raise ValueError("no such thing")

    report = Report(tmp_path / "mac.md", Budget(600.0, clock), about="Model x.")
    report.run(
        [
            ("First", section(clock, 5)),
            ("Late", late),
            ("Broken", broken),
            ("Decoding", section(clock, 50)),  # a fifth of the budget
            ("Long", section(clock, 1000)),
            ("Window", section(clock, 1)),
            ("Last", section(clock, 1)),
        ]
    )
    assert clock.now_s == 100.0 + 600.0
    skipped = ["the rest of Late", "the rest of Decoding", "the rest of Long", "Window", "Last"]
    assert report.skipped == skipped
    assert report.anomalies == ["Broken failed: no such thing."]
    text = (tmp_path / "mac.md").read_text("utf-8")
    for part in (
        "5 of 5 steps\nend",
        "begun in ~/x\nFailed: no such thing",
        "Model x.",
        "12 of 50 steps",
        "43 of 1000 steps",
    ):
        assert part in text
    assert f"Skipped for lack of time: {', '.join(skipped)}." in text
    assert "- Broken failed: no such thing." in text.split("## First")[0]


@pytest.fixture
def measured(tmp_path: Path, clock: Clock) -> _Measurements:
    budget = Budget(600.0, clock)
    report = Report(tmp_path / "mac.md", budget)
    return _Measurements(report, budget, "starter", (), tmp_path / "mac.png")


def test_a_missed_budget_of_the_window_is_an_anomaly(measured: _Measurements) -> None:
    rows = ("# Window", "| Opening | 9 ms | ≤ 400 ms | kept |", "| A frame | 30 ms | ≤ 20 ms | missed |")
    measured._child = lambda *words: "\n".join(rows)  # type: ignore[method-assign]
    measured._report.run([("Window", measured._window)])
    assert measured._report.anomalies == ["Window, A frame: 30 ms, not ≤ 20 ms."]


def test_the_costs_of_a_context_survive_the_end_of_the_time(
    measured: _Measurements, clock: Clock, toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed(model: object, cache: object, info: object, contexts: tuple[int], trees: bool) -> Any:
        while contexts == (1024,):
            clock.now_s += 10.0
            yield
        seconds = {width: 0.01 * width for width in WIDTHS}
        return CostProfile("k", (ContextCost(256, seconds, seconds),))

    monkeypatch.setattr("core.machine.width_cost.measure", timed)
    measured._held, report = toy_engine, measured._report
    report.run([("Costs of blocks", measured._costs)])
    assert report.skipped == ["the rest of Costs of blocks"]
    assert "| 256 | trees | 10.0 | 1.00 | 2.00 |" in "\n".join(report._text)


def test_a_section_that_cannot_end_in_time_does_not_begin(tmp_path: Path, clock: Clock) -> None:
    report = Report(tmp_path / "mac.md", Budget(25.0, clock))
    report.run([("Window", section(clock, 1)), ("Memory", section(clock, 1))])
    assert report.skipped == ["Window"]
    assert clock.now_s == 110.0


def test_a_variable_that_makes_mlx_hang_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_matmul_gflops", lambda: 400.0)

    def notes() -> list[Finding]:
        return [each for each in doctor._compute() if "FAST_SYNCH" in each.text]

    monkeypatch.setenv("MLX_METAL_FAST_SYNCH", "1")
    assert [each.health for each in notes()] == ["note"]
    monkeypatch.setenv("MLX_METAL_FAST_SYNCH", "0")
    assert not notes()


@pytest.mark.parametrize(
    ("steps", "reads", "chosen"),
    [
        ((10, 9, 8, 12), (5, 5, 5, 5), 2),
        ((10, 9.9, 10, 10), (5, 5, 5, 5), 0),  # noise
        ((10, 9, 8, 12), (5, 5, 7, 5), 1),  # reads slower
        ((10, 9, 0, 12), (5, 5, 0, 5), 1),  # failed
    ],
)
def test_the_fastest_buffer_limits_are_kept_for_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[float], reads: list[float], chosen: int
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    times = {
        limits: BufferTimes(read, step, "" if step else "TimeoutExpired", "llama")
        for limits, step, read in zip(CANDIDATES, steps, reads, strict=True)
    }
    assert best(times) == CANDIDATES[chosen]
    assert len(list(try_limits("starter", lambda: 60.0, lambda model, limits, left_s: times[limits]))) == 4
    assert load_limits() == CANDIDATES[chosen]
    save_limits("gemma3", BufferLimits(7, 7))
    use_limits_of("qwen3")  # was never tried
    assert load_limits() == BufferLimits(7, 7)
    use_limits_of("llama")
    assert load_limits() == CANDIDATES[chosen]
    monkeypatch.setattr(buffer_limits, "system_build", lambda: "25B78")
    assert load_limits() == BufferLimits(), "of another macOS"


def test_an_unfinished_trial_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    left = iter((60.0, 0.0, 0.0))
    trial = try_limits("starter", lambda: next(left), lambda model, limits, left_s: BufferTimes(5.0, 1.0))
    assert [limits for limits, _ in trial] == [CANDIDATES[0]]
    assert not list(tmp_path.rglob("metal-buffers-*.json"))
