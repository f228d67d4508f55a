"""ModelProposer: runs the draft model on its own cached sequence.

The cache follows the context by longest common prefix: tokens that the target rejected are trimmed, and those
it chose instead are read in the first forward of the next proposal. No notification is needed, and the cache
is exact after any stop. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel


class ModelProposer:
    """`loaded` must keep every position in its cache (`CachedSequence.keeps_all`)."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.sequence = CachedSequence(loaded.new_cache)

    def propose(self, context: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        """Up to `count` greedy ids after `context`, and their probabilities; one evaluation for all.

        Empty if `context` contains an id that this model does not have.
        """
        room = self.loaded.info.context_tokens - len(context)
        count = min(count, room)
        if count < 1:
            return [], []
        sequence = self.sequence
        sequence.reuse(context)
        unread = list(context[len(sequence.tokens) :])
        if not self.loaded.has_rows(unread):
            return [], []
        block = mx.array(unread)
        ids: list[mx.array] = []
        probabilities: list[mx.array] = []
        for _ in range(count):
            logits = self.loaded.model(block[None], cache=sequence.cache)[0, -1]
            block = mx.argmax(logits, keepdims=True)
            ids.append(block)
            probabilities.append(mx.exp(logits[block] - mx.logsumexp(logits)).astype(mx.float32))
        found: Any = mx.concatenate(ids).tolist()
        likely: Any = mx.concatenate(probabilities).tolist()
        # The newest guess was not fed; all earlier ones were.
        sequence.append([*unread, *found[:-1]])
        return found, likely
