"""Rest: reading what an answer skipped, a chunk at a time, while nothing is asked.

Where a model can take it, passages are inserted, the likeliest to be asked for first, so that a new question
finds what was read by then. Where it cannot, a dense twin grows beside the sequence with gaps and takes its
place when it is whole; stopped before that, it is dropped and nothing has changed. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from core.kv.cached_sequence import CachedSequence
from core.kv.prefix_cache import PrefixCache
from core.models.rope import rotations
from core.prefill.read import Positions, read_prompt, read_skipped


def insert_rest(
    model: Any, sequence: CachedSequence, ranked: Sequence[Positions], *, chunk_tokens: int
) -> Generator[None, None, None]:
    """`ranked` are skipped passages of `sequence`, the best first. One chunk a `next()`."""
    found, waiting = rotations(model), list(ranked)
    while waiting:
        count = 1
        while count < len(waiting) and sum(map(len, waiting[: count + 1])) <= chunk_tokens:
            count += 1
        chunk = np.sort(np.concatenate(waiting[:count]))
        del waiting[:count]
        for _ in read_skipped(model, sequence, chunk, found, chunk_tokens=len(chunk)):
            pass
        yield


def read_rest(
    model: Callable[..., Any], prefix_cache: PrefixCache, sequence: CachedSequence, *, chunk_tokens: int
) -> Generator[None, None, None]:
    """`sequence` is on `prefix_cache` and has gaps. One chunk a `next()`."""
    # `read_prompt` leaves the last token to whoever asks for logits; nobody does here.
    ids = [*sequence.tokens, -1]
    twin = sequence.fork(sequence.shared(ids, whole=True))
    for _ in read_prompt(model, twin, ids, chunk_tokens=chunk_tokens):
        yield
    prefix_cache.replace(sequence, twin)
