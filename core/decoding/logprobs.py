"""Logprobs: what the model itself thought of the tokens of a step, before anything was done to its logits.

The natural log-softmax of a row of raw logits: before penalties, bias, grammar, filters and temperature.
Rows along the accepted path are the plain run's rows, so drafted and plain runs tell the same but for
the noise of a block's width. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mlx.core as mx

# Stands for −∞, which JSON has not; OpenAI's own stand-in.
LEAST_LOGPROB = -9999.0


class Logprob(NamedTuple):
    """`own`: of the token that was chosen. `likely`: ids and logprobs of the likeliest, best first."""

    own: float
    likely: tuple[tuple[int, float], ...]


def logprobs(logits: mx.array, tokens: Sequence[int], top: int) -> tuple[Logprob, ...]:
    """For each of `tokens`, chosen at the rows of `logits` [n, vocabulary], and the `top` likeliest there."""
    top = min(top, logits.shape[-1])
    logits = logits.astype(mx.float32)
    rows = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    own: Any = mx.take_along_axis(rows, mx.array(list(tokens))[:, None], axis=-1)[:, 0].tolist()
    if not top:
        return tuple(Logprob(max(value, LEAST_LOGPROB), ()) for value in own)
    best = mx.argpartition(-rows, kth=top - 1, axis=-1)[:, :top]
    ids: Any = best.tolist()
    values: Any = mx.take_along_axis(rows, best, axis=-1).tolist()
    return tuple(
        Logprob(
            max(value, LEAST_LOGPROB),
            tuple(
                (token, max(likely, LEAST_LOGPROB))
                for token, likely in sorted(zip(row, likelies), key=lambda pair: (-pair[1], pair[0]))
            ),
        )
        for value, row, likelies in zip(own, ids, values)
    )
