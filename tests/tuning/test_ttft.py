"""The TTFT bench starts real processes, each with an empty home folder, and fails when they do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import WorkerError
from tests.tuning.__main__ import main
from tests.tuning.ttft import _start


@pytest.mark.sweep
def test_it_measures_pairs_of_processes(toy_folder: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"prompt": "one two one two one two"}))
    options = [
        "--model",
        str(toy_folder),
        "--prompts",
        str(prompts),
        "--pairs",
        "1",
        "--drafter",
        "ngram-simple",
    ]
    assert main(["ttft", *options, "--out", str(tmp_path / "out")]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    for name in ("off", "drafting"):
        (start,) = results[name]
        assert 0 < start["ttft_s"] < start["first_token_s"]
    assert results["ratio"] == pytest.approx(results["drafting"][0]["ttft_s"] / results["off"][0]["ttft_s"])
    assert "Ratio of the medians" in (tmp_path / "out" / "report.md").read_text()


def test_an_answer_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="no model folder"):
        _start(0, str(tmp_path / "nowhere"), "off", "Hello")
