"""The Lab: the rows of its table, and its command line."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from app.features.lab import KINDS, Measurement, Plan, rows_of
from core.events import Stats
from core.events.bench import Difference, Pair, Record
from core.settings import Settings, assign_all


def pair(speed: float, difference: Difference | None = None, accepted: int = 5) -> Pair:
    stats = Stats(tokens_per_s=speed, tested=10, accepted=accepted)
    return Pair(stats, 6, 1.0, 10.0, 1, 1, difference=difference)


SAME, OTHER = pair(20.0), pair(15.0, Difference(2, "a", "b"))
RECORDS = (
    Record("1", "code", "auto decoding.exactness=exact", 1, (SAME,), 1.0),
    Record("1", "code", "ngram-simple", 1, (OTHER,), 1.0),
    Record("1", "code", "auto decoding.exactness=exact", 2, (pair(15.0, Difference(2, "a", "b"), 8),), 1.0),
    Record("2", "passage", "auto decoding.exactness=exact", 1, (pair(0.0),), 1.0),
)
# All classes with three drafters, for pictures of the whole window.
MEASURED = Measurement(
    "SmolLM2 135M",
    took_s=90.0,
    records=tuple(
        Record(kind, kind, drafter, repeat, (pair,), 1.0)
        for kind in KINDS
        for drafter in ("auto", "ngram-simple", "ngram-mod")
        for repeat, pair in enumerate((SAME, OTHER), 1)
    ),
)


def test_a_row_is_all_answers_of_a_drafter_on_a_class() -> None:
    auto, simple = rows_of(RECORDS)
    assert (auto.title, auto.drafter, auto.accepted, auto.tokens_per_s) == ("Code", "Auto", "65%", "17.5")
    assert (auto.ratio, auto.speed, auto.spread, auto.equal) == (1.75, "1.75×", "1.50 to 2.00", "1 of 2")
    assert {auto.most, simple.most} == {1.75}
    assert (simple.speed, simple.equal) == ("1.50×", "0 of 1")


def test_the_command_has_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy").mkdir()
    exact = assign_all(Settings(), [("decoding.exactness", "exact"), ("draft_model.model", "toy")])
    pairs = dict(pairwise(Plan("toy", "three-class", ("auto", "mtp"), 3, 8, exact).command(Path("out"))))
    assert (pairs["--out"], pairs["--model"]) == (str(tmp_path / "out"), str(tmp_path / "toy"))
    assert pairs["--draft-model"] == pairs["--model"]
    assert (pairs["--drafters"], pairs["--set"]) == ("auto,mtp", "decoding.exactness=exact")
    assert (pairs["--cases"], pairs["--pairs"]) == ("three-class", "3")
    plain = Plan("x", "y", ("auto",), 1, 8, Settings())
    assert {"--draft-model", "--set"}.isdisjoint(plain.command(tmp_path))
