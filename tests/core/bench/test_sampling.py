"""mlx-lm samples like Draftlight where the bench compares both at a model's own defaults."""

from __future__ import annotations

import pytest

from core.bench.runs import draftlight, mlx_lm, sampled_as
from core.engine.engine import Engine
from core.settings import Settings, assign_all


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
