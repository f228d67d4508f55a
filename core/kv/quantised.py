"""Quantised caches: mlx-lm's `QuantizedKVCache` for the layers that keep the whole text.

Only `KVCache` entries grow with the text and are quantised. Sliding windows and recurrent states have a
constant size and keep their precision. The group size is the largest of `KV_GROUP_SIZES` that divides the
head dimensions of an entry's keys and values.

As with mlx-lm's `quantized_kv_start`, entries are converted once they hold `start` columns. mlx-lm converts
them after the forward pass that reaches it, so its caches depend on the chunks. Here no forward pass crosses
that column (`CachedSequence.columns_left`), so chunks, verify blocks and earlier turns change nothing.
Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import CacheList, KVCache
from msgspec import Struct

from core.kv.mlx_lm_caches import Cache, LanguageModel, is_appending, leaves
from core.settings.prefill import KV_GROUP_SIZES

# Difference of a logit, relative to the largest one, above which 8 bits indicate wrong attention.
_LARGEST_DIFFERENCE = 0.5
_BITS_OF_TRIAL = 8


class KvQuantisation(Struct, frozen=True):
    """Entries are quantised to `bits` once they hold `start` columns.

    `groups`: group size of each entry, in the order of `leaves`; 0 for one that keeps its precision.
    """

    bits: int
    start: int
    groups: tuple[int, ...]

    @property
    def entries(self) -> int:
        """Number of quantised entries."""
        return sum(map(bool, self.groups))


class Quantisable(Struct, frozen=True):
    """Group sizes as in `KvQuantisation`, or why a model's cache cannot be quantised."""

    groups: tuple[int, ...] = ()
    why_not: str = ""


def group_size(*dimensions: int) -> int:
    """The group size for arrays with these last dimensions; 0 if there is none."""
    return next((size for size in KV_GROUP_SIZES if all(each % size == 0 for each in dimensions)), 0)


def quantise(cache: Cache, kv: KvQuantisation) -> None:
    """Replaces the full-attention entries of `cache`, empty or not, with quantised ones, in place."""
    groups = iter(kv.groups)
    cache[:] = [_quantised(entry, kv.bits, groups) for entry in cache]
    mx.eval([entry.state for entry in leaves(cache) if is_appending(entry) and not entry.empty()])


def _quantised(entry: Any, bits: int, groups: Iterator[int]) -> Any:
    if isinstance(entry, CacheList):
        entry.caches = type(entry.caches)(_quantised(child, bits, groups) for child in entry.caches)
        return entry
    group = next(groups)
    if not group or type(entry) is not KVCache:
        return entry
    return entry.to_quantized(group_size=group, bits=bits)


def quantisable(model: LanguageModel, new_cache: Callable[[], Cache]) -> Quantisable:
    """Which entries of the caches of `model` can be quantised; five forward passes of at most three tokens.

    Some models compute attention in a way that does not support quantised keys: attention sinks, latent
    attention. Any exception of a model's code is reported as the reason.
    """
    plain = new_cache()
    expected = _last_logits(model, plain)
    full: list[Any] = [entry for entry in leaves(plain) if type(entry) is KVCache]
    if not full:
        return Quantisable(why_not="none of its layers has a cache that grows with the text")
    groups = tuple(_group_of(entry) for entry in leaves(plain))
    if not any(groups):
        size = int(full[0].keys.shape[-1]) if full[0].keys is not None else 0
        return Quantisable(why_not=f"its heads have {size} dimensions, and a multiple of 32 is required")
    cache = new_cache()
    try:
        quantise(cache, KvQuantisation(_BITS_OF_TRIAL, 0, groups))
        found = _last_logits(model, cache)
        scale = mx.where(mx.isfinite(expected), mx.abs(expected), 0.0).max()
        difference = mx.where(found == expected, 0.0, mx.abs(found - expected)).max()
        if not float(difference) <= _LARGEST_DIFFERENCE * float(scale):
            return Quantisable(why_not="its answers with quantised keys are wrong")
    except Exception as error:  # any exception of a model's code
        return Quantisable(
            why_not=f"its attention does not support quantised keys ({type(error).__name__}: {error})"
        )
    return Quantisable(groups)


def _group_of(entry: Any) -> int:
    if type(entry) is not KVCache or entry.keys is None:
        return 0
    return group_size(int(entry.keys.shape[-1]), int(entry.values.shape[-1]))


def _last_logits(model: LanguageModel, cache: Sequence[Any]) -> mx.array:
    """float32 logits [vocabulary] of the last of four tokens, read as a block and a single token."""
    mx.eval(model(mx.array([[1, 2, 3]]), cache=cache))
    logits = model(mx.array([[4]]), cache=cache)[0, -1].astype(mx.float32)
    mx.eval(logits)
    return logits
