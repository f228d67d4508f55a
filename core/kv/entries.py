"""What mlx-lm's cache entries are, for rollback: which kinds there are and what each allows.

- appending (`KVCache`, `QuantizedKVCache`): holds every position; any tail can be taken back.
- window (`RotatingKVCache`): past its size a single-token update overwrites the oldest entry in
  place, so a tail cannot be taken back later; `trim_prompt_cache` then silently does nothing.
  A block of several tokens, though, is appended to a fresh array: until the next update its
  tail can be cut off exactly.
- recurrent (`ArraysCache`: gated delta nets, Mamba-2, short convolutions): only the state after
  the last token exists. It is rebound, never mutated, so the state before a block can be put back.
- anything else is never speculated on. That includes windows that also keep the first tokens
  (`keep`): mlx-lm's mask for several tokens differs there from what single tokens see.

`offset` is the position of the next token in all of them; where a prompt was read with gaps
that is more than the columns they hold (`Positioned`; a window's own is raised, see `CachedSequence`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, QuantizedKVCache, RotatingKVCache

from core.kv.positioned import Positioned

EntryKind = Literal["appending", "window", "recurrent", "unknown"]


def leaves(cache: Sequence[Any]) -> Iterator[Any]:
    """The entries of `cache`, those inside a `CacheList` included."""
    for entry in cache:
        if isinstance(entry, CacheList):
            yield from leaves(entry.caches)
        else:
            yield entry


def kind_of(entry: Any) -> EntryKind:
    """By exact type: a subclass may have other rules."""
    if type(entry) in (KVCache, QuantizedKVCache, Positioned):
        return "appending"
    if type(entry) is RotatingKVCache and not entry.keep:
        return "window"
    if type(entry) is ArraysCache:
        return "recurrent"
    return "unknown"


def columns_of(entry: Any) -> int:
    """Columns that an appending entry holds."""
    return int(entry.entry.offset if isinstance(entry, Positioned) else entry.offset)


def parts(held: Any) -> list[mx.array]:
    """The arrays of an entry's keys or values: one, or three when quantised."""
    return list(held) if isinstance(held, tuple | list) else [held]


def window_columns(entry: Any) -> int:
    """Columns of its past that a `RotatingKVCache` puts before a block of two or more rows."""
    if entry.keys is None:
        return 0
    # As its _temporal_order: all columns if they are full or have wrapped, else those written.
    held = int(entry.keys.shape[2])
    if entry._idx >= entry.offset:
        held = min(held, int(entry._idx))
    return min(held, int(entry.max_size) - 1)


def largest_window(cache: Sequence[Any]) -> int:
    """Tokens that the widest sliding window of `cache` spans; 0 if it has none."""
    return max((int(e.max_size) for e in leaves(cache) if kind_of(e) == "window"), default=0)


def why_no_rollback(cache: Sequence[Any]) -> str:
    """Why a rejected draft could not be taken back exactly, in words; empty if it can."""
    for entry in leaves(cache):
        if kind_of(entry) == "unknown":
            return f"its cache ({type(entry).__name__}) cannot take back tokens exactly"
    return ""


def keeps_all(cache: Sequence[Any]) -> bool:
    """Whether every entry holds every position, so that any prefix can be gone back to."""
    return all(kind_of(entry) == "appending" for entry in leaves(cache))
