"""ProcessorUse: the load of other programs without that of this process."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from core.models.blas import ProcessorSample, ProcessorUse, busy_ticks, read_use

LINES = [
    "cpu  500 500 500 500 0 0 0 0 0 0",
    "cpu0 100 1000 20 5000 7 1 2 3 0 0",
    "cpu1 10 2000 2 5000 7 0 0 0 0 0",
    "intr 12 0 0",
]


def test_only_the_cores_of_this_process_count_and_no_lower_priority() -> None:
    assert busy_ticks(LINES, {0}, counts_nice=False) == 126
    assert busy_ticks(LINES, {0, 1}, counts_nice=False) == 138
    assert busy_ticks(LINES, {1}, counts_nice=True) == 2012


def test_others_are_all_work_but_this_process_s_own() -> None:
    readings = iter(
        [ProcessorSample(10.0, 50.0, 5.0), ProcessorSample(12.0, 53.0, 6.5), ProcessorSample(13.0, 53.5, 7.5)]
    )
    use = ProcessorUse(lambda: next(readings))
    assert use.others() == pytest.approx(0.75)
    assert use.others() == 0.0, "counts of ticks may lag behind, and nobody works less than nothing"


def test_nothing_is_known_where_the_kernel_does_not_say() -> None:
    use = ProcessorUse(lambda: None)
    assert use.others() is None
    assert use.age_s == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_busy_program_is_seen_and_own_work_is_not() -> None:
    """On whatever else this machine does: the loop's whole share is on top of that."""

    def busy_s() -> float:
        first = read_use()
        until = time.process_time() + 0.3  # processor time, which a busy machine gives out slowly
        while time.process_time() < until:
            pass
        last = read_use()
        assert first
        assert last
        assert last.own_s - first.own_s > 0.05
        return (last.busy_s - first.busy_s) - (last.own_s - first.own_s)

    loop = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    try:
        time.sleep(0.1)
        assert busy_s() > 0.1
    finally:
        loop.kill()
        loop.wait()
