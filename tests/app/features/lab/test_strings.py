"""The Lab's words: what is one figure stays on one line."""

from __future__ import annotations

import pytest

from app.features.lab.strings import duration, head, plan, progress


@pytest.mark.parametrize(
    ("length_s", "words"),
    [(0.4, "0 s"), (89.4, "89 s"), (90, "1 min 30 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")],
)
def test_a_time_is_not_broken_between_figure_and_unit(length_s: float, words: str) -> None:
    said = duration(length_s)
    assert said == words.replace(" ", "\u00a0")
    assert said in plan(8, 2, length_s)
    assert said in progress(1, 8, length_s)


def test_a_sweep_under_way_has_not_failed_to_end() -> None:
    assert head("starter", 3, 5.0, False, 0.0, runs=True).endswith(", running")
    assert head("starter", 3, 5.0, False, 0.0).endswith(", not ended")
