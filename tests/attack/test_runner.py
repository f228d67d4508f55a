"""What the runner does with outcomes: sums, the table, the exit status, a process that dies."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.attack import registry
from tests.attack.__main__ import main
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.tally import read_outcomes, table, tally


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    for case in cases:
        yield Outcome(case, "it fell" if case == 2 else "", {"kills": 1.0}, {"wait_s": case / 10})


FALLS = Campaign("falls", "it stands", 1, 4, _run)


def test_outcomes_are_added_up_and_faults_are_told() -> None:
    total = tally(FALLS, 4, _run(1, range(4)), 1.0, "", 7)
    assert (total.cases, total.counts, total.peaks) == (4, {"kills": 4.0}, {"wait_s": 0.3})
    assert not total.passed
    text = table([total])
    assert "| falls | 4 | 1 | 1 | kills 4, at most wait_s 0.3 | it stands |" in text
    assert "falls, case 2: it fell\n    python -m tests.attack falls --seed 7 --case 2" in text


def test_fewer_cases_than_asked_is_not_passed() -> None:
    total = tally(FALLS, 4, _run(1, range(2)), 1.0, "its process ended with -9", 7)
    assert not total.passed
    assert "2 of 4" in table([total])


def test_a_half_line_is_no_outcome(tmp_path: Path) -> None:
    path = tmp_path / "falls.jsonl"
    path.write_bytes(b'{"case":0}\n{"ca')
    assert read_outcomes(path) == [Outcome(0)]


def test_a_case_is_the_same_whenever_it_is_run() -> None:
    first, again = case_random("falls", 1, 7), case_random("falls", 1, 7)
    assert first.random() == again.random()
    assert case_random("falls", 2, 7).random() != again.random()


@pytest.mark.sweep
def test_each_run_has_a_new_seed_and_reports_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = set()
    for _ in range(3):
        assert main(["preferences", "--count", "1", "--out", str(tmp_path)]) == 0
        first = (tmp_path / "attack.md").read_text().splitlines()[0]
        assert f"seed {first[5:-1]}" in capsys.readouterr().err
        seeds.add(first)
    assert len(seeds) > 1
    assert main(["preferences", "--seed", "41", "--count", "1", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "attack.md").read_text().startswith("Seed 41.")


def test_quick_cases_of_a_fixed_list_change_with_the_seed() -> None:
    listed = Campaign("falls", "it stands", 3, 100, _run, listed=True)
    chosen = [listed.quick_cases(seed) for seed in range(20)]
    assert all(len(set(cases)) == 3 and set(cases) <= set(range(100)) for cases in chosen)
    assert len({tuple(cases) for cases in chosen}) > 10
    assert FALLS.quick_cases(5) == [0]


def test_a_campaign_whose_process_dies_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "NAMES", ("falls",))
    monkeypatch.setattr("tests.attack.__main__.NAMES", ("falls",))
    monkeypatch.setattr("tests.attack.__main__.campaign", lambda name: FALLS)
    monkeypatch.setattr(sys, "executable", "false")
    assert main(["falls", "--out", str(tmp_path)]) == 1
    assert "its process ended with 1" in (tmp_path / "attack.md").read_text()
