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
    options = ["--prompts", str(prompts), "--pairs", "1", "--drafter", "ngram-simple"]
    assert main(["ttft", "--model", str(toy_folder), *options, "--out", str(tmp_path / "out")]) == 0
    starts = [json.loads(line) for line in (tmp_path / "out" / "ttft.jsonl").read_text().splitlines()[1:]]
    assert [start["drafter"] for start in starts] == ["off", "ngram-simple"]
    assert all(0 < start["ttft_s"] < start["first_token_s"] for start in starts)
    ratio = starts[1]["ttft_s"] / starts[0]["ttft_s"]
    assert f"Ratio of the medians {ratio:.3f}" in (tmp_path / "out" / "ttft.md").read_text()


def test_an_answer_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="no model folder"):
        _start(0, str(tmp_path / "nowhere"), "off", "Hello")
