"""Dense prefill: the whole prompt through the model, in chunks that can be cancelled.

All but the last token are read here; the last one belongs to the first decode step, whose
logits give the first token (as in mlx-lm). Between two chunks the caller may stop listening:
the ledger then holds exactly the chunks that were read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx
from msgspec import Struct

from core.kv.ledger import Ledger


class Progress(Struct, frozen=True):
    """`done_tokens` of `total_tokens` are in the cache; `seconds_left` None before the first chunk."""

    done_tokens: int
    total_tokens: int
    seconds_left: float | None


def read_prompt(
    model: Callable[..., Any], ledger: Ledger, prompt: Sequence[int], *, chunk_tokens: int
) -> Iterator[Progress]:
    """Bring `ledger` from a prefix of `prompt` to all of it but the last token.

    Yields before the first chunk and after each. Worker's main thread.
    """
    total = len(prompt) - 1
    started_at = len(ledger.tokens)
    started = time.perf_counter()
    yield Progress(started_at, total, None)
    while (done := len(ledger.tokens)) < total:
        chunk = list(prompt[done : min(done + chunk_tokens, total)])
        # Nobody asks for these logits, so MLX never computes the output projection.
        model(mx.array(chunk)[None], cache=ledger.cache)
        ledger.settle()
        ledger.append(chunk)
        mx.clear_cache()
        done = len(ledger.tokens)
        rate = (done - started_at) / (time.perf_counter() - started)
        yield Progress(done, total, (total - done) / rate)
