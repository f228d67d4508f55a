"""Results are on disk at once, a stopped run continues, conditions never mix; statistics by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from msgspec import Struct

from core.bench.runner import (
    Bench,
    BenchPiece,
    Journal,
    PieceProgress,
    compare,
    describe,
    file_label,
    read_input,
    run_bench,
    sign_test,
    table,
)
from core.errors import RequestError


class Entry(Struct, frozen=True):
    name: str
    value: float = 0.0

    @property
    def key(self) -> tuple[str]:
        return (self.name,)


ONE, TWO = Entry("one", 1.0), Entry("two", 2.0)


def test_what_was_written_is_held_and_half_a_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trials.jsonl"
    first = Journal(path, "a", Entry)
    first.add(ONE)
    first.add(TWO)
    assert Journal(path, "a", Entry).all == (ONE, TWO)
    path.write_bytes(path.read_bytes()[:-5])
    again = Journal(path, "a", Entry)
    assert again.all == (ONE,)
    assert again.has("one")
    assert not again.has("two")
    again.add(TWO)
    assert Journal(path, "a", Entry).all == (ONE, TWO)
    for kept in (9, 0):
        path.write_bytes(path.read_bytes()[:kept])
        Journal(path, "a", Entry).add(TWO)
        assert Journal(path, "a", Entry).all == (TWO,)


@pytest.mark.parametrize("content", ["not json\n", '{"conditions": "b"}\n', '{"conditions": "a"}\n{}\n'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(content)
    with pytest.raises(RequestError, match=r"trials\.jsonl holds (no results|results of other conditions)"):
        Journal(path, "a", Entry)
    assert path.read_text() == content


def bench(out: Path | None) -> Bench[Entry]:
    return Bench("trials", "Trials", describe(), ("toy",), Entry, out)


def test_a_run_measures_what_is_missing_and_reports_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[Entry] = []

    def make(entry: Entry) -> Entry:
        measured.append(entry)
        return entry

    def run(*entries: Entry) -> tuple[tuple[Entry, ...], PieceProgress]:
        pieces = [BenchPiece(each.key, partial(make, each)) for each in entries]
        return run_bench(
            bench(tmp_path), pieces, str, lambda found: [each.name for each in found], quiet=True
        )

    three = Entry("three")
    run(ONE, TWO)
    assert run(three, ONE) == ((three, ONE), PieceProgress(2, 2))
    assert measured == [ONE, TWO, three]
    assert (tmp_path / "trials.md").read_text().endswith("\n\nthree\none\n")
    assert capsys.readouterr().out.endswith("\n\nthree\none\n")


def test_an_interrupted_run_reports_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> Entry:
        raise KeyboardInterrupt

    pieces = [BenchPiece(ONE.key, lambda: ONE), BenchPiece(TWO.key, stopped)]
    entries, progress = run_bench(bench(None), pieces, str, lambda found: [], quiet=True)
    assert (entries, progress) == ((ONE,), PieceProgress(1, 2))
    assert (progress.status(True), PieceProgress(2, 2).status(True), PieceProgress(2, 2).status(False)) == (
        *(130, 0, 1),
    )
    assert "Stopped after 1 of 2" in capsys.readouterr().out


@pytest.mark.parametrize("read", [read_input, file_label, lambda path: Journal(path, "", Entry)])
def test_files_without_an_end_are_refused(read: object, tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(RequestError, match="the most that is read"):
        read(tmp_path / "zero")  # type: ignore[operator]
    with pytest.raises(RequestError, match="cannot be read"):
        read_input(tmp_path / "nowhere")


def test_tables_are_aligned() -> None:
    assert table("a | b", ["1 | 2"], right_from=1) == ["| a | b |", "|---|---:|", "| 1 | 2 |"]
    assert table("a | b | c", []) == ["| a | b | c |", "|---|---|---|"]


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (5, 0, 2 / 32), (0, 5, 2 / 32), (3, 3, 1.0), (9, 1, 22 / 1024)]
)
def test_sign_test(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(p)


def test_pairs_are_compared_without_ties() -> None:
    assert compare([1.0, 2.0, 3.0], [2.0, 2.0, 1.0]) == (1, 1)
    with pytest.raises(ValueError, match="longer"):
        compare([1.0], [1.0, 2.0])
