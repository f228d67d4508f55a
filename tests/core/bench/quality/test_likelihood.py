"""Likelihoods against numpy's own sums."""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest

from core.bench.quality.readers import closeness, log_probabilities, mean_nll
from core.bench.quality.results import perplexity


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
