"""Bench neighbours: a loop that comes and goes, ratios the right way round, refused where nothing adapts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.bench.harness import Environment, PieceProgress
from core.models import blas
from tests.processes import children, command_line
from tests.tuning.__main__ import main
from tests.tuning.neighbours import NeighbourPair, NeighbourResults, _company, busy_loop, write_report

_HERE = Environment(
    "Linux", "x86_64", "Some", 2, "3.11", "0.1", "0.32", "0.32", "OpenBLAS, 2 threads", "c0ffee"
)


def _pair(held: float, adapting: float) -> NeighbourPair:
    return NeighbourPair(1, 0, "code", held, adapting, 2.0, 1.0, "2 of 2: held", "1 of 2: others", True)


def test_ratios_are_medians_and_more_is_better() -> None:
    company = _company(1, [_pair(10.0, 20.0), _pair(10.0, 18.0), _pair(10.0, 90.0)])
    assert company.speed_ratio == pytest.approx(2.0)
    assert company.ttft_ratio == pytest.approx(2.0)
    results = NeighbourResults(
        "neighbours", _HERE, "toy", "p.jsonl", "auto", 200, 48, (company,), PieceProgress(3, 3)
    )
    report = write_report(results)
    assert "Beside one busy loop: 2.00 times the speed, TTFT 2.00 times as quick" in report
    assert "| code | 10.0 | 18.0 | 2.00 | 1.00 | 1 of 2: others | equal |" in report


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_the_loop_works_inside_the_block_and_is_gone_after_it() -> None:
    def loops() -> list[int]:
        return [pid for pid in children(os.getpid()) if "while True" in command_line(pid)]

    assert not loops()

    def until(done: Callable[[], bool]) -> None:
        ends_at = time.monotonic() + 60
        while not done():
            assert time.monotonic() < ends_at
            time.sleep(0.01)

    with busy_loop():
        # Before it runs the loop, the new process still has the command line of its parent.
        until(lambda: len(loops()) == 1)
        (pid,) = loops()
        used = lambda: int(Path(f"/proc/{pid}/stat").read_text().split()[13])  # noqa: E731
        before = used()
        until(lambda: used() > before)
    assert not loops()


def test_it_is_refused_where_the_number_of_threads_is_fixed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(blas, "why_threads_are_fixed", lambda: "OMP_NUM_THREADS is set")
    assert main(["neighbours", "--model", "starter", "--out", str(tmp_path)]) == 1
    assert "OMP_NUM_THREADS is set" in capsys.readouterr().err
