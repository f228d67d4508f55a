"""top_ids: the likeliest ids of rows of logits, for drafters that recycle them.

A full selection over a vocabulary costs a notable part of a small model's step. Only ids within a
few logits of the best can matter, and they are few: one comparison over the row finds them.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

COUNT = 8
# e⁻⁸ of the best one's probability: such an id is never worth a draft.
_WITHIN_LOGITS = 8.0
# Rows so flat that nothing stands out are not worth sorting either.
_MOST_CANDIDATES = 512


def top_ids(logits: mx.array, rows: Sequence[int]) -> list[list[int]]:
    """For each of `rows` of evaluated `logits` [w, vocabulary] at most eight ids, best first."""
    found = []
    for row in rows:
        values = np.asarray(logits[row].astype(mx.float32))
        near = np.flatnonzero(values >= values.max() - _WITHIN_LOGITS)
        if len(near) > _MOST_CANDIDATES:
            near = near[np.argpartition(values[near], -COUNT)[-COUNT:]]
        best = near[np.argsort(-values[near], kind="stable")[:COUNT]]
        found.append([int(i) for i in best])
    return found
