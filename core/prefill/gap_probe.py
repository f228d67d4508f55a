"""Trial: whether a prompt with gaps is exact for a model, found out by trying.

`read_kept` is exact if nothing but rotary modules and masks makes a token's place matter. Some
models scale queries by a token's index in the chunk, look learned positions up by it, or cannot
take a position for each row (Ministral 3, Llama 4, GPT-2, dynamic RoPE). No list of such models
stays complete, so a trial on the model itself decides: pairs of tokens spread over as many
positions as the prompt has, read in one chunk, against the same pairs read one after the other,
where index and position agree. Worker's main thread.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import keeps_all, kind_of, leaves
from core.models.rope import Rotation, rotations
from core.prefill.read import Positions, read_kept, read_skipped

# Ids that every tokenizer has.
_IDS = 200
_PAIRS = 4
# Relative to the largest logit; the size of rounding in 32 and in 16 bits (see `tree_probe`).
_TOLERANCE_FLOAT32 = 1e-4
_TOLERANCE_16_BIT = 0.02
# A router at a near-tie may flip on the way; a model that goes by the index is wrong every time.
_TRIALS = 3


def why_no_gaps(model: Any, new_cache: Callable[[], list[Any]], prompt_tokens: int) -> str:
    """Why `model` cannot read a prompt of that length with gaps, in words; empty if it can.

    Costs up to six forwards of a few tokens; worth remembering for a model and a length.
    """
    for entry in leaves(new_cache()):
        if kind_of(entry) == "unknown":
            return f"its cache ({type(entry).__name__}) cannot hold a text with gaps"
    found = rotations(model)
    try:
        for seed in range(_TRIALS):
            if _agrees(model, new_cache, max(prompt_tokens, 16 * _PAIRS), found, random.Random(seed)):
                return ""
    except Exception as error:  # whatever a model's code raises: it reads everything, and we say why
        return f"a trial with gaps failed ({type(error).__name__}: {error})"
    return "it goes by a token's place in the chunk, not by its position"


def why_no_insertion(model: Any, new_cache: Callable[[], list[Any]], prompt_tokens: int) -> str:
    """Why `model` cannot take in skipped tokens later, in words; empty if it can.

    Asked of models that can read a prompt of that length with gaps. Two pairs are read with a gap between
    them and a third is inserted, against reading it where it stands. Costs up to twelve forwards of a few
    tokens.
    """
    if not keeps_all(new_cache()):
        return "its cache forgets what is far behind, so nothing can be put there later"
    found = rotations(model)
    try:
        for seed in range(_TRIALS):
            if _inserts(model, new_cache, max(prompt_tokens, 16 * _PAIRS), found, random.Random(seed)):
                return ""
    except Exception as error:  # whatever a model's code raises: passages are quoted, and we say why
        return f"a trial failed ({type(error).__name__}: {error})"
    return "its answer depends on when a passage is read"


def _inserts(
    model: Any,
    new_cache: Callable[[], list[Any]],
    length: int,
    found: Sequence[Rotation],
    rng: random.Random,
) -> bool:
    prompt = [rng.randrange(_IDS) for _ in range(length)]
    first, later, last = (np.array([at, at + 1], np.int32) for at in (0, length // 2, length - 3))
    last_logits = mx.array(0.0)

    def noted(ids: mx.array, cache: list[Any]) -> None:
        nonlocal last_logits
        last_logits = model(ids, cache=cache)[0, -2:]

    def read(kept: Positions, sequence: CachedSequence) -> None:
        for _ in read_kept(noted, sequence, prompt[: int(kept[-1]) + 2], kept, found, chunk_tokens=2):
            pass

    inserted, in_place = CachedSequence(new_cache), CachedSequence(new_cache)
    read(np.append(first, last), inserted)
    for _ in read_skipped(noted, inserted, later, found, chunk_tokens=2):
        pass
    got = last_logits
    read(np.append(first, later), in_place)
    return _close(got, last_logits)


def _agrees(
    model: Any,
    new_cache: Callable[[], list[Any]],
    length: int,
    found: Sequence[Rotation],
    rng: random.Random,
) -> bool:
    prompt = [rng.randrange(_IDS) for _ in range(length)]
    starts = np.linspace(0, length - 3, _PAIRS).astype(np.int32)
    kept = np.sort(np.concatenate([starts, starts + 1]))
    together, apart = (
        _logits(model, CachedSequence(new_cache), prompt, kept, found, chunk) for chunk in (2 * _PAIRS, 2)
    )
    return _close(together, apart)


def _close(got: mx.array, wanted: mx.array) -> bool:
    tolerance = _TOLERANCE_FLOAT32 if got.dtype == mx.float32 else _TOLERANCE_16_BIT
    got, wanted = got.astype(mx.float32), wanted.astype(mx.float32)
    error, scale = float(mx.abs(got - wanted).max()), float(mx.abs(wanted).max())
    # Not-a-number agrees with nothing.
    return math.isfinite(scale) and error <= tolerance * scale


def _logits(
    model: Any,
    sequence: CachedSequence,
    prompt: list[int],
    kept: Positions,
    found: Sequence[Rotation],
    chunk_tokens: int,
) -> mx.array:
    """The logits of the last two positions, which stand at the end of everything."""
    last = mx.array(0.0)

    def noted(ids: mx.array, cache: list[Any]) -> None:
        nonlocal last
        last = model(ids, cache=cache)[0, -2:]

    # A stock forward after this would not know of a window's gaps; real readings leave none there.
    for _ in read_kept(noted, sequence, prompt[: int(kept[-1]) + 2], kept, found, chunk_tokens=chunk_tokens):
        pass
    return last
