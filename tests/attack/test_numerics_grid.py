"""The grid of `numerics` resumes, shares its cells between processes, and counts each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.campaign import Outcome
from tests.attack.campaigns import numerics
from tests.attack.campaigns.numerics import GRID_FORMATS, Case, cells_of, grid, grid_table


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str, str]]:
    """The cells that were run, in order; one answer of each differs in `fast`."""
    tried: list[tuple[int, str, str]] = []

    def one(number: int, case: Case, seed: int) -> Outcome:
        tried.append((seed, case.model, case.format))
        counts = {f"{mode}_{name}": 1.0 for mode in numerics.MODES for name in ("runs", "drafted")}
        counts |= {f"{mode}_differed": float(mode == "fast") for mode in numerics.MODES}
        return Outcome(number, "", counts, {"noise": 0.5})

    monkeypatch.setattr(numerics, "_try", one)
    return tried


def test_parts_share_the_grid_and_a_second_run_does_nothing(
    tmp_path: Path, tried: list[tuple[int, str, str]]
) -> None:
    grid(tmp_path, range(7, 9), (0, 2), 4)
    cells = grid(tmp_path, range(7, 9), (1, 2), 4)
    assert len(cells) == len(tried) == len(set(tried)) == 2 * 6 * len(GRID_FORMATS)
    grid(tmp_path, range(7, 9), (0, 2), 4)
    assert len(tried) == len(cells)


def test_a_half_written_cell_is_run_again(tmp_path: Path, tried: list[tuple[int, str, str]]) -> None:
    grid(tmp_path, [7], (0, 1), 4)
    path = tmp_path / "cells-0.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert len(cells_of(tmp_path)) == 23
    assert len(grid(tmp_path, [7], (0, 1), 4)) == 24
    assert len(tried) == 25


def test_the_table_adds_seeds_up(tmp_path: Path, tried: list[tuple[int, str, str]]) -> None:
    rows = grid_table(grid(tmp_path, range(3), (0, 1), 4)).splitlines()
    assert rows[0].startswith("| | cells | fast | exact |")
    assert rows[2] == "| llama | 12 | 12 of 12 | 0 of 12 | 12 | 0.5 |"
    assert rows[8] == "| bfloat16 | 18 | 18 of 18 | 0 of 18 | 18 | 0.5 |"
    assert rows[-1] == "| all | 72 | 72 of 72 | 0 of 72 | 72 | 0.5 |"
