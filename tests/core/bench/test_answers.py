"""A bench's model is tested first, and mlx-lm samples like Draftlight."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from core.bench.answers import draftlight, found, load_tried, mlx_lm, sampled_as
from core.engine.engine import Engine
from core.machine.trials import Splits, Verdict, load_verdict
from core.settings import Settings, assign_all
from tests.core.toy import write_toy_model


def test_a_model_without_a_verdict_is_tried(tmp_path: Path) -> None:
    write_toy_model(tmp_path / "model", num_hidden_layers=1)
    info, environment = load_tried(Engine(), str(tmp_path / "model"), "a BLAS", quiet=True)
    assert load_verdict(info) is not None
    assert environment.speculation == "trees verified"
    assert "trees verified" in environment.line


def test_the_verdict_in_words() -> None:
    exact = Verdict("key", "", Splits(None, ""))
    assert found(exact) == "trees verified"
    limited = replace(exact, why_no_trees="they differ", splits=Splits(512, "keys change"))
    assert found(limited) == (
        "chains only (they differ), no drafts nor reuse beyond 512 tokens (keys change)"
    )


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"sampling.no_repeat_ngram_size": 1},
        {"sampling.no_repeat_ngram_size": 3},
        {"sampling.frequency_penalty": 0.7, "sampling.presence_penalty": 0.4},
    ],
)
def test_both_sides_write_the_same(toy_engine: Engine, values: dict[str, float]) -> None:
    settings = assign_all(
        Settings(), [("drafting.drafter", "ngram-simple"), ("sampling.max_tokens", 40), *values.items()]
    )
    ids = toy_engine.loaded.tokenizer.encode("one two one two one two")
    theirs = mlx_lm(toy_engine, ids, 40, **sampled_as(settings.sampling))
    assert draftlight(toy_engine, ids, settings).tokens == theirs.tokens
    assert bool(sampled_as(settings.sampling)) == bool(values)
