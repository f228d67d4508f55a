"""The report: within its time, with what it has, and with names for what it has not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.cli import doctor
from core.cli.command_line import parser
from core.cli.doctor import Finding
from core.cli.report import Report, Section, sections
from core.machine.buffers import CANDIDATES, BufferTimes, best, run_child, try_limits
from core.system import buffer_limits
from core.system.buffer_limits import BufferLimits, load_limits, save_limits, use_limits_of


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def shell(*words: str) -> list[str]:
    return ["/bin/sh", "-c", *words]


def test_the_report_has_what_commands_print_and_names_what_is_wrong(tmp_path: Path) -> None:
    said: list[str] = []
    report = Report(tmp_path / "mac.md", 600.0, said.append, "Model x.")
    table = "echo '# Window'; echo '| Opening | 9 ms | kept |'; echo '| A frame | 30 ms | missed |'"
    chosen = [
        Section("First", ("echo $HOME/x",)),
        Section("Table", (table,), doubtful=("| missed |",), is_markdown=True),
        Section("Broken", ("echo begun; echo no such thing >&2; exit 3",)),
    ]
    report.run(chosen, shell)
    assert said == ["First", "Table", "Broken"]
    assert report.skipped == []
    failed = "Broken failed with status 3: no such thing"
    assert report.anomalies == [
        "Table: A frame | 30 ms | missed",
        "Broken failed with status 3: no such thing",
    ]
    text = (tmp_path / "mac.md").read_text("utf-8")
    assert "```\n~/x\n```" in text
    assert "\n### Window\n| Opening" in text
    assert "```\nbegun\n```" in text
    head = text.split("## First")[0]
    assert "Model x." in head
    assert f"- {failed}" in head


def test_a_command_that_takes_too_long_is_interrupted_and_keeps_its_lines(tmp_path: Path) -> None:
    loops = "trap 'echo the table so far; exit 130' INT; echo begun; while :; do sleep 0.05; done"
    report = Report(tmp_path / "mac.md", 600.0)
    report.run([Section("Long", (loops,), share=2.0 / 600.0)], shell)
    assert report.skipped == ["the rest of Long"]
    assert report.anomalies == []
    text = (tmp_path / "mac.md").read_text("utf-8")
    assert "```\nbegun\nthe table so far\n```" in text
    assert "Skipped for lack of time: the rest of Long." in text


def test_a_section_that_cannot_end_in_time_does_not_begin(tmp_path: Path) -> None:
    clock = Clock()
    report = Report(tmp_path / "mac.md", 25.0, clock=clock)
    clock.now_s += 10.0
    report.run([Section("Window", ("echo seen",), least_s=20.0), Section("Memory", ("echo 7 GB",))], shell)
    assert report.skipped == ["Window"]
    assert "7 GB" in (tmp_path / "mac.md").read_text("utf-8")


def test_a_report_that_cannot_be_written_measures_nothing(tmp_path: Path) -> None:
    began = tmp_path / "began"
    with pytest.raises(OSError, match="no-such-folder"):
        Report(tmp_path / "no-such-folder" / "mac.md", 25.0).run([Section("A", (f"touch {began}",))], shell)
    assert not began.exists()


def test_the_commands_of_all_sections_exist(tmp_path: Path) -> None:
    for section in sections("starter", tmp_path / "mac.png", tmp_path):
        options = parser().parse_args(section.words)
        assert callable(options.run), section.title


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
    assert len(list(try_limits("starter", lambda model, limits: times[limits]))) == 4
    assert load_limits() == CANDIDATES[chosen]
    save_limits("gemma3", BufferLimits(7, 7))
    use_limits_of("qwen3")  # was never tried
    assert load_limits() == BufferLimits(7, 7)
    use_limits_of("llama")
    assert load_limits() == CANDIDATES[chosen]
    monkeypatch.setattr(buffer_limits, "system_build", lambda: "25B78")
    assert load_limits() == BufferLimits(), "of another macOS"


@pytest.mark.parametrize(
    ("program", "fault"),
    [("raise SystemExit('x\\nNo memory.')", "No memory."), ("import os; os.abort()", "-6"), ("", "with 0")],
)
def test_a_child_without_figures_says_why(monkeypatch: pytest.MonkeyPatch, program: str, fault: str) -> None:
    monkeypatch.setattr("core.machine.buffers.child_command", lambda *_: [sys.executable, "-c", program])
    assert fault in run_child("starter", CANDIDATES[0]).fault


def test_an_unfinished_trial_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    failed = BufferTimes(fault="TimeoutExpired")
    assert list(try_limits("starter", lambda model, limits: failed)) == [(CANDIDATES[0], failed)]
    assert not list(tmp_path.rglob("metal-buffers-*.json"))
