"""The Lab: the rows of its table, and its command line."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from app.controls.plot import above
from app.features.lab import KINDS, Plan, Sweep, rows_of
from core.events.sweep import SweepCell, SweepPair

SAME = SweepPair(2.0, 20.0, 10.0)
OTHER = SweepPair(1.5, 15.0, 10.0, difference=2)
UNKNOWN = SweepPair(0.0, 0.0, 0.0)


def cell(kind: str, drafter: str, *pairs: SweepPair, acceptance: float = 0.5) -> SweepCell:
    return SweepCell(kind, 0, drafter, 5, 6, acceptance, 2.0, (), pairs)


CELLS = (
    cell("code", "auto", SAME, SAME),
    cell("code", "ngram-simple", SAME, OTHER, OTHER),
    cell("code", "auto", OTHER, acceptance=0.8),
    cell("passage", "auto", UNKNOWN),
)
SWEEP = Sweep(
    "SmolLM2 135M",
    took_s=90.0,
    cells=tuple(
        cell(kind, drafter, SAME, OTHER)
        for kind in KINDS
        for drafter in ("auto", "ngram-simple", "ngram-mod")
    ),
)


def test_a_row_is_all_answers_of_a_drafter_on_a_class() -> None:
    auto, simple = rows_of(CELLS)
    assert (auto.title, auto.drafter) == ("Code", "Auto")
    assert (auto.ratio, auto.speed, auto.spread, auto.equal) == (2.0, "2.00×", "1.50 to 2.00", "2 of 3")
    assert (auto.accepted, auto.tokens_per_s) == ("65%", "20.0")
    assert (simple.speed, simple.equal) == ("1.50×", "1 of 3")
    assert rows_of(()) == []


def test_the_command_has_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy").mkdir()
    words = Plan("toy", Path("own"), ("auto", "mtp"), 3, 128, "exact", "toy").command(Path("out"))
    pairs = dict(pairwise(words))
    assert pairs["--out"] == str(tmp_path / "out")
    assert pairs["--model"] == pairs["--draft-model"] == str(tmp_path / "toy")
    assert pairs["--prompts"] == str(tmp_path / "own")
    assert (pairs["--drafters"], pairs["--exactness"], pairs["--pairs"]) == ("auto,mtp", "exact", "3")
    assert "--draft-model" not in Plan("starter", tmp_path, ("auto",), 1, 8, "fast").command(tmp_path)


@pytest.mark.parametrize(("value", "top"), [(0.5, 0.6), (3, 4), (4, 5), (7, 8), (412_306, 500_000), (10, 12)])
def test_the_scale_ends_on_a_round_figure(value: float, top: float) -> None:
    assert above(value) == pytest.approx(top)
