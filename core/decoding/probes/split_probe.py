"""split_probe: whether a model's answers depend on how its text was split into forwards, by trying.

Drafting reads several tokens in one forward where plain decoding reads one at a time, and going on with
what is in the cache splits a text elsewhere than a cold start does. Both are exact only if the split
does not matter. It does where a mask for several tokens is wider than the window that single tokens
see (plamo3), where a block's rows are taken for the newest ones (phi3small's sparse blocks), and where
keys depend on the length at which they were made (dynamic rotary scaling). No list of such models stays
complete, so trials on the model itself decide: at each power of two, from some tokens before it to some
after it, one block against the same tokens one at a time, each followed by one more token, which shows
what was left in the cache.

To stand at a length without reading that much, caches are filled: a short real context is repeated up
to the length, in windows up to their size, whose oldest columns weigh more, so that one column too many
shows. Beyond `_FILLED_TOKENS` caches of whole texts stand at the length with a gap before it.

Beyond the probe's sight: what sets in only after `_FILLED_TOKENS` and goes by columns, not positions;
windows and caches that are too large to be filled for a try. Worker's main thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from typing import Any

import mlx.core as mx
from msgspec import Struct

from core.decoding.probes.agreement import agree
from core.kv.entries import kind_of, leaves
from core.kv.fill import fill
from core.models.runtime.memory import is_exhausted

_CONTEXT_TOKENS = 56
_BLOCK_TOKENS = 6
# The block stands so far across the length.
_BEFORE_TOKENS = 3
LENGTHS = tuple(1 << power for power in range(6, 18))
_FILLED_TOKENS = 4096
# A try may take so much memory; beyond it, longer contexts are not tried.
_MOST_BYTES = 1 << 30
# Ids that every tokenizer has.
_IDS = 200
# A router at a near-tie may flip on the way; a model that goes by the split is wrong every time.
_TRIALS = 3


class Splits(Struct, frozen=True):
    """Up to `agreed_tokens` of context no split mattered; None: at no length that was tried.

    `reason` says in words what did matter; empty if nothing.
    """

    agreed_tokens: int | None = None
    reason: str = ""


def try_splits(
    model: Any, new_cache: Callable[[], list[Any]], context_tokens: int
) -> Generator[None, None, Splits]:
    """Some forwards a `next()`. Lengths from `context_tokens` on do not matter and are not tried."""
    agreed = 0
    for length in LENGTHS:
        if agreed and agreed >= context_tokens:
            break
        filled = length <= _FILLED_TOKENS
        try:
            found = False
            for seed in range(_TRIALS):
                caches = _standing(model, new_cache, length - _BEFORE_TOKENS, random.Random(seed))
                if caches is None:
                    return Splits()
                found = _agrees(model, caches, random.Random(seed))
                yield
                if found:
                    break
        except Exception as error:  # whatever a model's code raises
            if is_exhausted(error):
                raise  # says something about the machine now, nothing about the model
            if filled:
                return Splits(agreed, f"a trial block failed ({type(error).__name__}: {error})")
            return Splits()  # it knows no gaps, which plain reading never has
        if not found:
            reason = f"near {length:,} tokens its answers depend on how many tokens are read at once"
            return Splits(agreed, reason)
        agreed = length
    return Splits()


def _standing(
    model: Any, new_cache: Callable[[], list[Any]], start: int, rng: random.Random
) -> list[Any] | None:
    """A cache whose next token stands at `start`; None if that cannot be had."""
    cache = new_cache()
    known = all(kind_of(entry) != "unknown" for entry in leaves(cache))
    _logits(model, _ids(rng, min(_CONTEXT_TOKENS, start)), cache)
    if start <= _CONTEXT_TOKENS:
        return cache
    if not known:
        # What nobody knows how to fill is read: one short context.
        if start > 2 * _CONTEXT_TOKENS:
            return None
        _logits(model, _ids(rng, start - _CONTEXT_TOKENS), cache)
        return cache
    if sum(_bytes_at(entry, start) for entry in leaves(cache)) > _MOST_BYTES:
        return None
    fill(cache, start, _CONTEXT_TOKENS, _FILLED_TOKENS)
    return cache


def _bytes_at(entry: Any, start: int) -> int:
    if kind_of(entry) == "recurrent":
        return 0
    columns = min(start, int(entry.max_size)) if kind_of(entry) == "window" else min(start, _FILLED_TOKENS)
    return int(entry.nbytes) * columns // _CONTEXT_TOKENS


def _agrees(model: Any, cache: list[Any], rng: random.Random) -> bool:
    block, after = _ids(rng, _BLOCK_TOKENS), _ids(rng, 1)
    other = deepcopy(cache)
    together = mx.concatenate([_logits(model, block, cache), _logits(model, after, cache)])
    apart = mx.concatenate([_logits(model, [token], other) for token in block + after])
    return agree(together, apart)


def _logits(model: Any, ids: Sequence[int], cache: list[Any]) -> mx.array:
    logits: mx.array = model(mx.array(list(ids))[None], cache=cache)[0]
    mx.eval(logits, [entry.state for entry in leaves(cache)])
    return logits


def _ids(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(_IDS) for _ in range(count)]
