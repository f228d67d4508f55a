"""The parity bench compares every run with every run, and explains a divergence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.decoding import loop
from core.drafting.draft import Draft


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text(json.dumps({"class": "list", "prompt": "one two one two one two one two"}))
    return path


def bench(toy_folder: Path, prompts: Path, out: Path) -> int:
    return main(
        [
            *("bench", "parity", "--model", str(toy_folder), "--prompts", str(prompts), "--out", str(out)),
            *("--lengths", "12,24", "--k", "2,5", "--n-min", "1,2", "--runs", "2", "--max-tokens", "24"),
        ]
    )


def test_every_cell_passes(toy_folder: Path, prompts: Path, tmp_path: Path) -> None:
    assert bench(toy_folder, prompts, tmp_path / "out") == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert len(results["cells"]) == 2 * 2 * 2
    assert all(cell["equal"] == cell["comparisons"] == 4 for cell in results["cells"])
    assert all(cell["divergence"] is None for cell in results["cells"])
    assert any(cell["positions"] for cell in results["cells"])
    assert "8 of 8 cells pass" in (tmp_path / "out" / "report.md").read_text()


def test_a_divergence_is_shown_with_both_margins(
    toy_folder: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = loop.walk

    def gullible(draft: Draft, choices: list[int], *rest: object) -> object:
        """Accepts every draft, so the first wrong one shows."""
        return honest(draft, [*draft.tokens, choices[-1]])

    monkeypatch.setattr(loop, "walk", gullible)
    assert bench(toy_folder, prompts, tmp_path / "out") == 1
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    shown = [cell["divergence"] for cell in results["cells"] if cell["divergence"]]
    assert shown
    # The plain loop's token really wins at both widths: a bug, not noise, and the report says so.
    assert all(d["margin_width_1"] > 0 and d["margin_width_w"] > 0 for d in shown)
    assert not any(d["predicted"] for d in shown)
    report = (tmp_path / "out" / "report.md").read_text()
    assert "**fail**" in report
    assert "NOT predicted" in report


def test_drafters_exactness_and_lengths_that_are_met(toy_folder: Path, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status = main(
        [
            *("bench", "parity", "--model", str(toy_folder), "--prompts", str(prompts), "--out", str(out)),
            *("--lengths", "6,40", "--drafters", "ngram-mod,auto", "--exactness", "fast,exact"),
            *("--runs", "1", "--max-tokens", "12", "--grid", "ngram_mod.k=2,4", "--set", "ngram_mod.n=2"),
        ]
    )
    assert status == 0
    cells = json.loads((out / "results.json").read_text())["cells"]
    # auto asks ngram-mod's table, but drafts as many as it likes: the grid is tried with it, too.
    assert len(cells) == 2 * (4 + 4)
    assert {cell["prompt_tokens"] for cell in cells} == {6, 40}
    assert all((cell["padded_tokens"] > 0) == (cell["prompt_tokens"] == 40) for cell in cells)
    assert {cell["given"]["decoding.exactness"] for cell in cells} == {"fast", "exact"}
