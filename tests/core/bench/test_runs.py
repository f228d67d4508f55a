"""A bench drafts what an answer would: its model is tried out first, and the results say what was found."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from core.bench.runs import found, load_tried
from core.cli import main
from core.engine.engine import Engine
from core.machine.trials import Splits, Verdict, load_verdict
from tests.core.toy import write_toy_model


def test_a_model_without_a_verdict_is_tried(tmp_path: Path) -> None:
    write_toy_model(tmp_path / "model", num_hidden_layers=1)
    engine = Engine()
    info, environment = load_tried(engine, str(tmp_path / "model"), "a BLAS")
    assert load_verdict(info) is not None
    assert environment.speculation == "trees verified"
    assert "trees verified" in environment.line


def test_the_results_of_a_bench_say_what_was_found(tmp_path: Path) -> None:
    write_toy_model(tmp_path / "model", num_hidden_layers=1, intermediate_size=96)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"class": "list", "prompt": "one two one two one two"}))
    options = ["--model", str(tmp_path / "model"), "--prompts", str(prompts), "--out", str(tmp_path / "out")]
    options += ["--lengths", "48", "--max-tokens", "8", "--drafters", "ngram-simple", "--k", "2"]
    assert main(["bench", "parity", *options]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["environment"]["speculation"] == "trees verified"


def test_words() -> None:
    exact = Verdict("key", "", Splits(None, ""))
    assert found(exact) == "trees verified"
    limited = replace(exact, why_no_trees="they differ", splits=Splits(512, "keys change"))
    assert found(limited) == (
        "chains only (they differ), no drafts nor reuse beyond 512 tokens (keys change)"
    )
