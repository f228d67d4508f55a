"""Prompts and likelihoods of `likelihood`, its statistics, and the attention that it reads with."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path

import mlx.core as mx
import msgspec
import numpy as np
import pytest

from core.errors import RequestError
from core.models.loader import LoadedModel, load
from core.settings.prefill import SCORERS
from tests.core.toy import write_toy_model
from tests.tuning import likelihood as subject
from tests.tuning.__main__ import main
from tests.tuning.likelihood import (
    Likelihood,
    cpu_attention,
    document_probe,
    log_probabilities,
    mean_nll,
    passage_probe,
    perplexity,
    report,
)
from tests.tuning.texts import KINDS, SCORELESS, text_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    return folder


@pytest.fixture(scope="module")
def loaded(folder: Path) -> LoadedModel:
    return load(str(folder))


def test_likelihood_and_perplexity() -> None:
    logits = np.random.default_rng(1).normal(size=(6, 11)).astype(np.float32) * 3
    tokens = [3, 0, 10, 7, 7, 1]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = -float(np.mean([math.log(probabilities[i, t]) for i, t in enumerate(tokens)]))
    assert mean_nll(log_probabilities(mx.array(logits)), tokens) == pytest.approx(expected, rel=1e-5)
    assert perplexity(math.log(7.0)) == pytest.approx(7.0)
    assert math.isfinite(perplexity(1e9))


@pytest.mark.parametrize("kind", KINDS)
def test_texts_follow_their_seed(kind: str) -> None:
    one, again, other = ("".join(islice(text_of(kind, seed), 40)) for seed in (1, 1, 2))
    assert one == again != other
    assert len(one) > 2000


@pytest.mark.parametrize("kind", KINDS)
def test_a_passage_is_requested_by_its_first_words(loaded: LoadedModel, kind: str) -> None:
    probe = passage_probe(loaded, 3000, 200, kind, 3)
    assert len(probe.prompt.ids) <= 3000
    document = next(r for r in probe.prompt.regions if r.kind == "document")
    text = probe.prompt.text[document.start : document.end]
    words = probe.prompt.asked.partition("“")[2].rpartition("”")[0]
    assert text.count(words) == 1
    assert probe.prompt.text.rstrip().endswith(words)
    follows = loaded.tokenizer.decode(probe.gold)
    assert len(probe.gold) == 200
    assert text[text.index(words) :].removeprefix(words).lstrip().startswith(follows.strip())


def test_a_passage_longer_than_the_document_is_named(loaded: LoadedModel) -> None:
    with pytest.raises(RequestError, match="records of 500 tokens has no passage of 400"):
        passage_probe(loaded, 500, 400, "records", 1)


def test_a_document_is_cut_before_what_follows(loaded: LoadedModel) -> None:
    probe, longer = (document_probe(loaded, tokens, 50, "records", 1) for tokens in (400, 450))
    assert len(probe.prompt.ids) == 400
    assert probe.prompt.ids + probe.gold == longer.prompt.ids


def test_every_reader_reads_less_than_dense_and_resumes(folder: Path, tmp_path: Path) -> None:
    options = ["--model", str(folder), "--kinds", "records", "--seeds", "1", "--tokens", "2500,2500"]
    options += ["--continuation", "40", "--draft-layers", "1", "--keep", "20", "--quiet"]
    command = ["likelihood", *options, "--out", str(tmp_path)]
    assert main(command) == 0
    content = (tmp_path / "likelihood.jsonl").read_bytes()
    found = [msgspec.json.decode(line, type=Likelihood) for line in content.splitlines()[1:]]
    readers = ("dense", *SCORERS, *SCORELESS)
    assert [(each.part, each.reader) for each in found] == [
        (part, reader) for part in ("document", "passage") for reader in readers
    ]
    for each in found:
        assert (each.read_tokens < each.prompt_tokens) is (each.reader != "dense")
        assert each.nll > 0
        assert len(each.top) == 40
    assert main(command) == 0
    assert (tmp_path / "likelihood.jsonl").read_bytes() == content


def test_the_report_compares_pairs() -> None:
    found = [
        Likelihood("document", "code", seed, reader, 100, read, nll, (1, 2))
        for seed in range(1, 8)
        for reader, read, nll in (("dense", 100, 1.0), ("lexical", 30, 1.1), ("random", 30, 1.5 + seed / 100))
    ]
    text = "\n".join(report(found))
    assert "| lexical | 7 | 30% | **1.105** (1.11 to 1.11) | 100% | 1.11 |" in text
    assert "| lexical | random | 7 | 0 | 0.016 | yes |" in text


# ---- attention


def arrays(heads: int, shared: int, rows: int, columns: int) -> tuple[mx.array, mx.array, mx.array]:
    mx.random.seed(rows)
    q = mx.random.normal((1, heads, rows, 8))
    # As a cache returns them: the beginning of something longer.
    k, v = (mx.random.normal((1, heads // shared, columns + 24, 8))[:, :, :columns] for _ in range(2))
    return q, k, v


@pytest.mark.parametrize("rows", [16, 64, 150])
@pytest.mark.parametrize("mask", [None, "causal", "window"])
def test_the_values_are_mlxs(rows: int, mask: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = arrays(6, 3, rows, 200)
    at, keys = mx.arange(rows)[:, None] + 200 - rows, mx.arange(200)[None]
    # Each query sees the 30 keys up to its own position.
    given = mask if mask != "window" else (keys <= at) & (keys > at - 30)
    wanted = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given)
    worked: list[int] = []
    own = subject._attention
    monkeypatch.setattr(subject, "_attention", lambda *all: worked.append(1) or own(*all))
    with cpu_attention():
        found = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given)
    assert worked == [1]
    assert found.shape == wanted.shape
    assert mx.abs(found - wanted).max().item() < 2e-6


def test_other_arguments_are_left_to_mlx(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token, another dtype, an additive mask."""
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
