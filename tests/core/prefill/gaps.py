"""Prompts with gaps for tests, and what reading them must give: stock forwards only."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import kind_of, leaves
from core.prefill.read import Positions, read_kept, read_prompt
from tests.core.architectures import VOCABULARY, WINDOW_TOKENS

PROMPT_TOKENS = 180
CHUNK_TOKENS = 24
PASSAGE_TOKENS = 7


def prompt_of(rng: random.Random, tokens: int = PROMPT_TOKENS) -> list[int]:
    return [rng.randrange(1, VOCABULARY) for _ in range(tokens)]


def some_positions(rng: random.Random, tokens: int = PROMPT_TOKENS, start: int = 0) -> Positions:
    """About a third of the positions from `start` on, in passages, and a whole window at the end."""
    kept = {p for p in range(tokens - 1 - WINDOW_TOKENS, tokens - 1) if p >= start}
    kept |= set(range(start, min(start + 3, tokens - 1)))
    for first in range(start, tokens - 1, PASSAGE_TOKENS):
        if rng.random() < 0.3:
            kept |= set(range(first, min(first + PASSAGE_TOKENS, tokens - 1)))
    return np.array(sorted(kept), dtype=np.int32)


def sequence_of(model: Any) -> CachedSequence:
    return CachedSequence(lambda: make_prompt_cache(model))


def read(
    model: Any, sequence: CachedSequence, prompt: Sequence[int], kept: Positions | None = None
) -> CachedSequence:
    """All of it, or the positions `kept`."""
    if kept is None:
        steps = read_prompt(model, sequence, prompt, chunk_tokens=CHUNK_TOKENS)
    else:
        steps = read_kept(model, sequence, prompt, kept, chunk_tokens=CHUNK_TOKENS)
    for _ in steps:
        pass
    return sequence


def logits(model: Any, sequence: CachedSequence, tokens: Sequence[int]) -> mx.array:
    """Stock forwards, in chunks: the logits of `tokens`, which follow what `sequence` holds."""
    out = []
    for at in range(0, len(tokens), CHUNK_TOKENS):
        chunk = list(tokens[at : at + CHUNK_TOKENS])
        out.append(model(mx.array(chunk)[None], cache=sequence.cache)[0])
        mx.eval(out[-1])
        sequence.append(chunk)
    return mx.concatenate(out)


def kept_forward(model: Any, tokens: Sequence[int], dropped: Sequence[int]) -> mx.array:
    """The logits of one stock forward, from nothing, over `tokens` without those at `dropped`."""
    kept = np.delete(np.array(tokens), list(dropped))
    out: mx.array = model(mx.array(kept)[None], cache=make_prompt_cache(model))[0]
    mx.eval(out)
    return out


def difference(got: mx.array, wanted: mx.array) -> float:
    """The largest one, relative to the largest wanted value."""
    got, wanted = got.astype(mx.float32), wanted.astype(mx.float32)
    return float(mx.abs(got - wanted).max() / mx.abs(wanted).max())


def arrays(cache: Sequence[Any]) -> list[mx.array]:
    """Every array that `cache` holds, cut to what is written."""
    found: list[mx.array] = []
    for entry in leaves(cache):
        if kind_of(entry) == "recurrent":
            found += [part for part in entry.cache if part is not None]
        elif entry.keys is not None:
            written = entry._idx if kind_of(entry) == "window" else entry.offset
            found += [entry.keys[..., :written, :], entry.values[..., :written, :]]
    return found
