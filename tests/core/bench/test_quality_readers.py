"""Prompts and likelihoods of `bench quality`, and the attention that it reads with."""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest

from core.bench import quality_readers as subject
from core.bench.cases import KINDS
from core.bench.quality import perplexity
from core.bench.quality_readers import (
    closeness,
    cpu_attention,
    document_probe,
    log_probabilities,
    mean_nll,
    passage_probe,
    task_probe,
)
from core.errors import RequestError
from core.models.loader import LoadedModel, load
from tests.core.toy import write_toy_model


def test_likelihood_and_perplexity() -> None:
    logits = np.random.default_rng(1).normal(size=(6, 11)).astype(np.float32) * 3
    tokens = [3, 0, 10, 7, 7, 1]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = -float(np.mean([math.log(probabilities[i, t]) for i, t in enumerate(tokens)]))
    assert mean_nll(log_probabilities(mx.array(logits)), tokens) == pytest.approx(expected, rel=1e-5)
    assert perplexity(math.log(7.0)) == pytest.approx(7.0)
    assert math.isfinite(perplexity(1e9))


def test_closeness_of_equal_and_of_different() -> None:
    full = log_probabilities(mx.array([[2.0, 1.0, 0.0], [0.0, 5.0, 1.0]]))
    assert closeness(full, full).kl_nats == 0.0
    assert closeness(full, full).top1_agreement == 1.0
    other = log_probabilities(mx.array([[1.0, 2.0, 0.0], [0.0, 5.0, 1.0]]))
    near = closeness(full, other)
    p = np.exp([2.0, 1.0, 0.0]) / np.exp([2.0, 1.0, 0.0]).sum()
    q = np.exp([1.0, 2.0, 0.0]) / np.exp([1.0, 2.0, 0.0]).sum()
    assert near.kl_nats == pytest.approx(float((p * np.log(p / q)).sum()) / 2, rel=1e-4)
    assert near.top1_agreement == 0.5


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = tmp_path_factory.mktemp("models") / "toy"
    write_toy_model(folder)
    return load(str(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_a_passage_is_asked_for_by_its_first_words(loaded: LoadedModel, kind: str) -> None:
    probe = passage_probe(loaded, kind, 3, 3000, 200)
    assert len(probe.prompt.ids) <= 3000
    document = next(r for r in probe.prompt.regions if r.kind == "document")
    text = probe.prompt.text[document.start : document.end]
    words = probe.prompt.asked.partition("“")[2].rpartition("”")[0]
    assert text.count(words) == 1
    begun = text[text.index(words) :]
    assert probe.prompt.text.rstrip().endswith(words)
    follows = loaded.tokenizer.decode(probe.gold)
    assert len(probe.gold) == 200
    assert begun.removeprefix(words).lstrip().startswith(follows.strip())


def test_words_that_stand_twice_are_not_asked_for(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tides, ferry = "The tide table is printed on paper.\n" * 80, "a b c d e f g h\n" * 40
    once = f"Only here does it say where the ferry sleeps in winter.\n{ferry}"
    monkeypatch.setitem(KINDS, "minutes", lambda rng: iter([tides, once]))
    for seed in range(1, 6):
        probe = passage_probe(loaded, "minutes", seed, 3500, 40)
        words = probe.prompt.asked.partition("“")[2].rpartition("”")[0]
        assert probe.prompt.text[: probe.prompt.asking.start if probe.prompt.asking else 0].count(words) == 1


def test_passages_are_asked_from_all_over_a_document(loaded: LoadedModel) -> None:
    places = []
    for seed in range(1, 9):
        probe = passage_probe(loaded, "minutes", seed, 3000, 64)
        words = probe.prompt.asked.partition("“")[2].rpartition("”")[0]
        places.append(probe.prompt.text.index(words) / len(probe.prompt.text))
    assert min(places) < 0.3
    assert max(places) > 0.7


def test_the_same_seed_asks_for_the_same(loaded: LoadedModel) -> None:
    first, again, other = (passage_probe(loaded, "story", seed, 2000, 64) for seed in (1, 1, 2))
    assert first == again
    assert first.prompt.ids != other.prompt.ids


def test_a_passage_longer_than_the_document_is_named(loaded: LoadedModel) -> None:
    with pytest.raises(RequestError, match="records of 500 tokens has no passage of 400"):
        passage_probe(loaded, "records", 1, 500, 400)


def test_a_document_is_cut_before_what_follows(loaded: LoadedModel) -> None:
    probe, longer = (document_probe(loaded, "records", 1, tokens, 50) for tokens in (400, 450))
    assert len(probe.prompt.ids) == 400
    assert probe.prompt.ids + probe.gold == longer.prompt.ids
    assert not probe.prompt.asked


def test_a_task_ends_with_the_beginning_of_its_answer(loaded: LoadedModel) -> None:
    probe = task_probe(loaded, "needle-50", 1, 1500)
    assert probe.case is not None
    assert probe.prompt.text.endswith(probe.case.lead)
    assert loaded.tokenizer.decode(probe.gold) == probe.case.gold


def arrays(heads: int, shared: int, rows: int, columns: int) -> tuple[mx.array, mx.array, mx.array]:
    mx.random.seed(rows)
    q = mx.random.normal((1, heads, rows, 8))
    # As a cache hands them out: the beginning of something longer.
    k, v = (mx.random.normal((1, heads // shared, columns + 24, 8))[:, :, :columns] for _ in range(2))
    return q, k, v


@pytest.mark.parametrize("rows", [16, 64, 150])
@pytest.mark.parametrize("mask", [None, "causal", "window"])
def test_the_values_are_mlxs(rows: int, mask: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = arrays(6, 3, rows, 200)
    given = mask if mask != "window" else _window(rows, 200)
    wanted = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given)
    worked: list[int] = []
    own = subject._attention
    monkeypatch.setattr(subject, "_attention", lambda *all: worked.append(1) or own(*all))
    with cpu_attention():
        found = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given)
    assert worked == [1]
    assert found.shape == wanted.shape
    assert mx.abs(found - wanted).max().item() < 2e-6


def test_it_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token, another dtype, an additive mask: MLX's own."""
    monkeypatch.delattr(subject, "_attention")
    q, k, v = arrays(4, 2, 20, 40)
    halves = [array.astype(mx.float16) for array in (q, k, v)]
    added = mx.zeros((20, 40))
    own = mx.fast.scaled_dot_product_attention
    with cpu_attention():
        attend = mx.fast.scaled_dot_product_attention
        assert attend is not own
        assert mx.array_equal(attend(q[:, :, :1], k, v, scale=1.0), own(q[:, :, :1], k, v, scale=1.0))
        assert attend(*halves, scale=1.0, mask="causal").dtype == mx.float16
        assert mx.array_equal(attend(q, k, v, scale=1.0, mask=added), own(q, k, v, scale=1.0, mask=added))
    assert mx.fast.scaled_dot_product_attention is own


def _window(rows: int, columns: int) -> mx.array:
    """Each query sees the 30 keys up to its own place."""
    at = mx.arange(rows)[:, None] + columns - rows
    keys = mx.arange(columns)[None]
    return (keys <= at) & (keys > at - 30)
