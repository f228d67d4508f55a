"""Rest: reading everything of a context that was read sparsely, a chunk at a time, while nothing is asked.

The dense twin grows beside the sequence with gaps and takes its place when it is whole; stopped
before that, it is dropped and nothing has changed. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from core.kv.cached_sequence import CachedSequence
from core.kv.prefix_cache import PrefixCache
from core.prefill.read import read_prompt


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
