"""How well a reading of the prompt predicts given tokens, and how near it is to the full reading.

Perplexity is exp of the mean negative log-likelihood in nats. KL is of the full reading's next-token
distribution from the other's, in nats, averaged over positions; agreement is the share of positions
at which both put the same token first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mlx.core as mx
from msgspec import Struct


class Closeness(Struct, frozen=True):
    """Over the compared positions."""

    kl_nats: float
    top1_agreement: float


def log_probabilities(logits: mx.array) -> mx.array:
    """[n, V] logits of any dtype to float32 log-probabilities."""
    wide = logits.astype(mx.float32)
    return wide - mx.logsumexp(wide, axis=-1, keepdims=True)


def mean_nll(log_probs: mx.array, tokens: Sequence[int]) -> float:
    """Mean negative log-likelihood of `tokens`, row i of [n, V] predicting token i."""
    taken = mx.take_along_axis(log_probs, mx.array(list(tokens))[:, None], axis=-1)
    return -float(taken.mean())


def perplexity(nll: float) -> float:
    """exp, with a bound so that one impossible token does not end a run."""
    return math.exp(min(nll, 50.0))


def closeness(full: mx.array, other: mx.array) -> Closeness:
    """KL(full ‖ other) and top-1 agreement of two [n, V] arrays of log-probabilities."""
    kl = (mx.exp(full) * (full - other)).sum(axis=-1)
    same = mx.argmax(full, axis=-1) == mx.argmax(other, axis=-1)
    return Closeness(max(0.0, float(kl.mean())), float(same.astype(mx.float32).mean()))
