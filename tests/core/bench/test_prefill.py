"""The prefill bench measures pairs, sets them beside the model, and fails where nothing was skipped."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from core.bench.prefill import PrefillCell, PrefillPair
from core.cli import main
from core.settings.prefill import TAIL_TOKENS
from tests.core.toy import write_toy_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "long-toy"
    write_toy_model(folder, max_position_embeddings=4096)
    return folder


def bench(folder: Path, out: Path, *more: str) -> int:
    return main(
        [
            *("bench", "prefill", "--model", str(folder), "--out", str(out), "--tokens", "2500"),
            *("--pairs", "2", "--draft-layers", "1", "--keep", "20,100", *more),
        ]
    )


@pytest.mark.sweep
def test_results_and_report(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(folder, tmp_path, "--scorers", "lexical,draft-model") == 0
    results = json.loads((tmp_path / "results.json").read_text())
    cells = {(cell["scorer"], cell["keep_pct"]): cell for cell in results["cells"]}
    assert set(cells) == {
        ("lexical", 20.0),
        ("draft-model", 20.0),
        ("lexical", 100.0),
    }
    for (_, keep), cell in cells.items():
        assert len(cell["pairs"]) == 2
        assert 2400 < cell["prompt_tokens"] <= 2500
        assert cell["ran"] == ("sparse" if keep < 100 else "dense")
        besides = 0 if keep == 100 else 32 + TAIL_TOKENS
        assert cell["read_tokens"] == pytest.approx(
            keep / 100 * cell["prompt_tokens"] + besides, abs=300
        )  # a sentence of the toy has 150 tokens
        for pair in cell["pairs"]:
            assert pair["ratio"] == pytest.approx(pair["baseline_ttft_s"] / pair["ttft_s"])
            assert pair["baseline_peak_bytes"] > 0
            assert (0 < pair["score_s"] < pair["ttft_s"]) is (keep < 100)
    printed = capsys.readouterr()
    readings = re.findall(r"^(.+): first token after", printed.err, re.MULTILINE)
    assert readings[:2] == ["mlx-lm", "lexical, keep 100%"]
    assert len(readings) == 2 * (len(cells) + 1)
    assert readings == readings[::-1]
    assert (tmp_path / "report.md").read_text() == printed.out.rstrip("\n") + "\n"
    assert "≥ 0.97" in (tmp_path / "report.md").read_text()


def test_a_dense_run_is_no_result(folder: Path, tmp_path: Path) -> None:
    """500 tokens are all in the part that is always read."""
    assert bench(folder, tmp_path, "--tokens", "500", "--keep", "40", "--scorers", "lexical") == 1
    report = (tmp_path / "report.md").read_text()
    assert "Not sparse as requested" in report
    assert "| **no** |" in report


def test_a_document_of_ones_own(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Ships come and go. " * 60)
    chosen = ("--document", str(own), "--scorers", "lexical", "--keep", "20")
    assert bench(folder, tmp_path / "out", *chosen) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["document"] == "own.txt"
    assert 1100 < results["cells"][0]["prompt_tokens"] < 1400


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        (("--tokens", "4097"), 1, "4,097"),
        (("--tokens", "10"), 1, "10 tokens is too short for a document"),
        (("--kind", "poem"), 2, "poem"),
        (("--document", "nowhere.txt"), 2, "nowhere.txt"),
    ],
)
def test_mistakes_are_named(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    status: int,
    words: str,
) -> None:
    assert bench(folder, tmp_path, *more) == status
    assert words in capsys.readouterr().err


def cell(scorer: str, keep: float, ratio: float, target: float, ran: str = "sparse") -> PrefillCell:
    pairs = (PrefillPair(10.0, 10.0 / ratio, ratio, 0.5, 1, 1),)
    return PrefillCell(scorer, keep, ran, "", 1000, int(keep * 10), target, pairs)


def test_verdicts() -> None:
    """Predicted at keep 20 with r 0.05: 4.0."""
    assert cell("lexical", 20.0, 3.6, 3.5).predicted == pytest.approx(4.0)
    assert cell("lexical", 20.0, 3.6, 3.5).met
    assert not cell("lexical", 20.0, 3.6, 3.7).met
    assert not cell("lexical", 20.0, 3.3, 0.0).met
    assert not cell("lexical", 20.0, 3.6, 3.5, "dense").met
