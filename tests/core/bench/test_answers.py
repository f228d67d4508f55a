"""A bench's model is tested first, and mlx-lm samples like Draftlight."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from core.bench.answers import converse, draftlight, found, load_tried, mlx_lm, sampled_as
from core.engine.engine import Engine
from core.machine.trials import Splits, Verdict, load_verdict
from core.settings import Settings, assign_all
from tests.core.headed_models import write_headed_model
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


@pytest.mark.sweep
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


@pytest.mark.sweep
@pytest.mark.parametrize("family", ["mimo", "qwen3_5"])
def test_mlx_lm_goes_on_with_its_cache_whatever_that_holds(family: str, tmp_path: Path) -> None:
    """Layers with a state alone have no offset, from which one could read what the cache holds."""
    write_headed_model(tmp_path / "model", family)
    engine = Engine()
    engine.load(str(tmp_path / "model"))
    settings = assign_all(Settings(), [("drafting.drafter", "off"), ("sampling.max_tokens", 9)])
    for turn in converse(engine, ("one two", "three", "one"), settings):
        assert turn.plain.tokens == mlx_lm(engine, turn.ids, 9).tokens


def test_a_speed_begins_after_the_first_round(toy_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds take a second each, however many tokens they give."""
    for rounds in ([1, 1, 1], [4, 2, 3], [2], [3, 1]):
        pairs = [(n, at + 1 < count) for n, count in enumerate(rounds) for at in range(count)]
        answer = [SimpleNamespace(token=n, from_draft=drafted) for n, drafted in pairs]
        clock = iter([0.0, *(n + 1.0 for n, _ in pairs)])
        monkeypatch.setattr("mlx_lm.stream_generate", lambda *_, said=answer, **__: said)
        monkeypatch.setattr("core.bench.answers.time", SimpleNamespace(perf_counter=clock.__next__))
        speed = sum(rounds[1:]) / (len(rounds) - 1) if rounds[1:] else 0.0
        assert mlx_lm(toy_engine, [1], 9).tokens_per_s == speed
