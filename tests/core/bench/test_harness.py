"""Results are on disk at once, a stopped run goes on, and conditions never mix."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from core.bench.harness import BenchPiece, Journal, PieceProgress, measure, table
from core.bench.quality import Trial
from core.errors import RequestError

ONE = Trial("task", "needle-10", 1, "dense", 100, 100, 0.5, 0.0, 1.0, True, 1, "x")
TWO = Trial("document", "code", 2, "random", 100, 30, 1.5, 0.2, 0.5)


def test_what_was_written_is_held(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trials.jsonl"
    first = Journal(path, "a", Trial)
    first.add(ONE)
    first.add(TWO)
    again = Journal(path, "a", Trial)
    assert again.all == (ONE, TWO)
    assert again.has(*ONE.key)
    assert not again.has("task", "needle-10", 2, "dense")


def test_half_a_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    trials = Journal(path, "a", Trial)
    trials.add(ONE)
    trials.add(TWO)
    path.write_bytes(path.read_bytes()[:-20])
    again = Journal(path, "a", Trial)
    assert again.all == (ONE,)
    again.add(TWO)
    assert Journal(path, "a", Trial).all == (ONE, TWO)


@pytest.mark.parametrize("content", ["", "not json\n", '{"conditions": "b"}\n', '{"conditions": "a"}\n{}\n'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(content)
    with pytest.raises(RequestError, match=r"trials\.jsonl holds (no results|results of other conditions)"):
        Journal(path, "a", Trial)
    assert path.read_text() == content


def test_a_run_measures_what_is_missing_and_returns_its_own_entries(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "trials.jsonl", "a", Trial)
    journal.add(ONE)
    journal.add(TWO)  # of another run
    three = Trial("task", "needle-10", 3, "dense", 100, 100, 0.5, 0.0, 1.0, True, 1, "x")
    measured: list[Trial] = []

    def make(trial: Trial) -> Trial:
        measured.append(trial)
        return trial

    pieces = [BenchPiece(each.key, partial(make, each)) for each in (three, ONE)]
    assert measure(journal, pieces, lambda trial: [], quiet=True) == ((three, ONE), PieceProgress(2, 2))
    assert measured == [three]


def test_an_interrupted_run_returns_what_it_has(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "trials.jsonl", "a", Trial)

    def stopped() -> Trial:
        raise KeyboardInterrupt

    pieces = [BenchPiece(ONE.key, lambda: ONE), BenchPiece(TWO.key, stopped)]
    entries, progress = measure(journal, pieces, lambda trial: [], quiet=True)
    assert (entries, progress) == ((ONE,), PieceProgress(1, 2))
    assert progress.status(True) == 130


def test_tables_are_aligned() -> None:
    assert table("a | b", ["1 | 2"], right_from=1) == ["| a | b |", "|---|---:|", "| 1 | 2 |"]
    assert table("a | b | c", []) == ["| a | b | c |", "|---|---|---|"]
