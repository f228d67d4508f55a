"""Adapter for mlx-lm's cache entries: their kinds, and every private name of theirs that Draftlight uses.

Read in mlx-lm 0.32.2, `mlx_lm/models/cache.py`. Check `RotatingKVCache._idx`, `_temporal_order` and
`_update_concat`, and `ArraysCache.cache`, with each new version.

- appending (`KVCache`, `QuantizedKVCache`): holds every position; any tail can be trimmed.
- window (`RotatingKVCache`): past its size a single-token update overwrites the oldest column in place, so a
  tail cannot be trimmed later; `trim_prompt_cache` then silently does nothing. A block of several tokens is
  appended to a new array: until the next update its tail can be cut off exactly.
- recurrent (`ArraysCache`: gated delta nets, Mamba-2, short convolutions): holds the state after the last
  token only. The state is rebound, never mutated, so the state before a block can be restored.
- unknown: never speculated on. Includes windows that also keep the first tokens (`keep`), because mlx-lm's
  mask for several tokens differs there from the columns that single tokens see.

`offset` is the position of the next token. In a cache that a trial moves to a later position it exceeds the
number of columns (`Positioned`). Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Literal, Protocol, TypeGuard

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, QuantizedKVCache, RotatingKVCache
from msgspec import Struct

from core.errors import reason_of
from core.kv.positions import Positioned
from core.settings.prefill import KV_GROUP_SIZES
from core.system.metal import fault_of

EntryKind = Literal["appending", "window", "recurrent", "unknown"]


class CacheEntry(Protocol):
    """The cache of one layer, of any kind."""

    @property
    def state(self) -> Any:
        """The arrays, for `mx.eval`."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays; only valid if not empty."""

    def empty(self) -> bool:
        """Whether nothing was written yet."""


class KeysAndValues(CacheEntry, Protocol):
    """An appending or window entry. Arrays are [batch, heads, columns, size], or three each if quantised."""

    keys: Any
    values: Any
    offset: int

    def trim(self, n: int) -> int:
        """Drops the last `n` tokens; returns the number that was dropped."""

    def make_mask(self, N: int, window_size: int | None = None, return_array: bool = False) -> Any:
        """The attention mask of a block of `N` tokens."""


class Window(KeysAndValues, Protocol):
    """A `RotatingKVCache`."""

    max_size: int
    _idx: int

    def _temporal_order(self, held: mx.array) -> mx.array: ...


class Recurrent(CacheEntry, Protocol):
    """An `ArraysCache`."""

    cache: list[Any]


Cache = list[CacheEntry]


class LanguageModel(Protocol):
    """An mlx-lm model: logits [batch, tokens, vocabulary] of ids [batch, tokens], written to `cache`."""

    def __call__(self, inputs: mx.array, cache: Any = None) -> mx.array: ...


def leaves(cache: Sequence[CacheEntry]) -> Iterator[CacheEntry]:
    """The entries of `cache`, with those inside a `CacheList`."""
    for entry in cache:
        if isinstance(entry, CacheList):
            yield from leaves(entry.caches)
        else:
            yield entry


def kind_of(entry: object) -> EntryKind:
    """The kind by exact type: subclasses may behave differently."""
    if is_appending(entry):
        return "appending"
    if is_window(entry):
        return "window"
    return "recurrent" if is_recurrent(entry) else "unknown"


def is_appending(entry: object) -> TypeGuard[KeysAndValues]:
    """Whether `entry` holds every position."""
    return type(entry) in (KVCache, QuantizedKVCache, Positioned)


def is_plain(entry: object) -> bool:
    """Whether `entry` is the cache of full attention, whose columns are positions."""
    return type(entry) in (KVCache, QuantizedKVCache)


def is_window(entry: object) -> TypeGuard[Window]:
    """Whether `entry` is a sliding window without kept first tokens."""
    return type(entry) is RotatingKVCache and not getattr(entry, "keep", 0)


def is_recurrent(entry: object) -> TypeGuard[Recurrent]:
    return type(entry) is ArraysCache


def columns_of(entry: KeysAndValues) -> int:
    """Number of columns of an appending entry."""
    return int(entry.entry.offset if isinstance(entry, Positioned) else entry.offset)


def parts(held: Any) -> list[mx.array]:
    """The arrays of an entry's keys or values: one, or three if quantised."""
    return list(held) if isinstance(held, tuple | list) else [held]


def largest_window(cache: Sequence[Any]) -> int:
    """Size in tokens of the largest sliding window of `cache`; 0 if there is none."""
    return max((int(entry.max_size) for entry in leaves(cache) if is_window(entry)), default=0)


def full_cache(layers: int = 1) -> Cache:
    """An empty cache of `layers` layers that hold every position."""
    return [KVCache() for _ in range(layers)]


def why_no_rollback(cache: Sequence[Any]) -> str:
    """Why a rejected draft cannot be rolled back exactly; empty if it can."""
    for entry in leaves(cache):
        if kind_of(entry) == "unknown":
            return f"its cache ({type(entry).__name__}) cannot take back tokens exactly"
    return ""


def keeps_all(cache: Sequence[Any]) -> bool:
    """Whether every entry holds every position, so that the cache can be truncated to any prefix."""
    return all(map(is_appending, leaves(cache)))


# ---- sliding windows


def window_columns(entry: Window) -> int:
    """Number of past columns that a window puts before a block of two or more rows."""
    if entry.keys is None:
        return 0
    # As in `_temporal_order`: all columns if the buffer is full or has wrapped, else those written.
    held = int(entry.keys.shape[2])
    if entry._idx >= entry.offset:
        held = min(held, int(entry._idx))
    return min(held, int(entry.max_size) - 1)


def window_in_order(entry: Window) -> list[mx.array]:
    """Keys and values of a window, columns in temporal order."""
    return [entry._temporal_order(held) for held in (entry.keys, entry.values)]


class WindowState(Struct, frozen=True):
    """The attributes of a window that an update changes."""

    keys: mx.array | None
    values: mx.array | None
    offset: int
    index: int


def window_state(entry: Window) -> WindowState:
    """The current attributes of `entry`, not copied: valid until a single-token update writes in place."""
    return WindowState(entry.keys, entry.values, entry.offset, entry._idx)


def set_window_state(entry: Window, state: WindowState) -> None:
    """Restores the attributes returned by `window_state`."""
    entry.keys, entry.values, entry.offset, entry._idx = state.keys, state.values, state.offset, state.index


def empty_window(size: int, position: int) -> Any:
    """An empty window of `size` tokens whose next token has `position`."""
    entry = RotatingKVCache(max_size=size)
    entry.offset = position
    return entry


# ---- masks


@contextmanager
def masked(masks: Sequence[tuple[Any, Callable[..., Any]]]) -> Iterator[None]:
    """Replaces the `make_mask` of the given entries within the block.

    An entry may occur several times. The entries keep their identity, also after an exception.
    """
    entries = {id(entry): entry for entry, _ in masks}
    own = {key: vars(entry).get("make_mask") for key, entry in entries.items()}
    try:
        for entry, make_mask in masks:
            entry.make_mask = make_mask
        yield
    finally:
        for key, entry in entries.items():
            if own[key] is not None:
                entry.make_mask = own[key]
            else:
                vars(entry).pop("make_mask", None)


# ---- snapshots


class Snapshot(Struct, frozen=True):
    """States at `length` tokens of the entries that cannot be trimmed to it, in the order of `leaves`.

    - window: copies of keys and values, because they are written in place;
    - recurrent: contiguous arrays. A state can be a view of a chunk's activations, and a snapshot must not
      keep those in memory;
    - unknown (`ChunkedKVCache`, caches defined by a model's module): a deep copy of the attributes.

    `newest`: for the model's head, as `CachedSequence.state`; None if there is none.
    """

    length: int
    states: list[Any]
    newest: tuple[int, mx.array] | None = None

    @property
    def nbytes(self) -> int:
        """Size of the snapshot's arrays."""
        return sum(array.nbytes for array in _arrays(self.states))


def take_snapshot(cache: Sequence[Any], length: int, newest: tuple[int, mx.array] | None = None) -> Snapshot:
    """The current state of `cache`, which holds `length` tokens."""
    states = [_state(entry) for entry in leaves(cache) if not is_appending(entry)]
    mx.eval(list(_arrays(states)))
    return Snapshot(length, states, newest)


def restore(cache: Sequence[Any], snapshot: Snapshot) -> None:
    """Sets the entries of `cache`, of the same kinds as the snapshot's, to its state."""
    entries = [entry for entry in leaves(cache) if not is_appending(entry)]
    for entry, state in zip(entries, snapshot.states, strict=True):
        if is_recurrent(entry):
            entry.cache = list(state)
        elif is_window(entry):
            keys, values, offset, index = state
            set_window_state(entry, WindowState(_copy(keys), _copy(values), offset, index))
        else:
            vars(entry).clear()
            vars(entry).update(deepcopy(state))


def _state(entry: CacheEntry) -> Any:
    if is_recurrent(entry):
        return [part if part is None else mx.contiguous(part) for part in entry.cache]
    if is_window(entry):
        return [_copy(entry.keys), _copy(entry.values), entry.offset, entry._idx]
    return deepcopy(vars(entry))


def _copy(array: mx.array | None) -> mx.array | None:
    return None if array is None else mx.array(array)


def _arrays(states: list[Any]) -> Iterator[mx.array]:
    return (part for _, part in tree_flatten(states) if isinstance(part, mx.array))


# ---- quantised caches: mlx-lm's `QuantizedKVCache` for the layers that keep the whole text
#
# Only `KVCache` entries grow with the text and are quantised. Sliding windows and recurrent states have a
# constant size and keep their precision. The group size is the largest of `KV_GROUP_SIZES` that divides the
# head dimensions of an entry's keys and values.


# Difference of a logit, relative to the largest one, above which 8 bits indicate wrong attention.
_LARGEST_DIFFERENCE = 0.5
_BITS_OF_TRIAL = 8


class KvQuantisation(Struct, frozen=True):
    """Entries are quantised to `bits` from the start.

    `groups`: group size of each entry, in the order of `leaves`; 0 for one that keeps its precision.
    """

    bits: int
    groups: tuple[int, ...]

    @property
    def entries(self) -> int:
        return sum(map(bool, self.groups))


class Quantisable(Struct, frozen=True):
    """Group sizes as in `KvQuantisation`, or why a model's cache cannot be quantised."""

    groups: tuple[int, ...] = ()
    why_not: str = ""


def group_size(*dimensions: int) -> int:
    """The group size for arrays with these last dimensions; 0 if there is none."""
    return next((size for size in KV_GROUP_SIZES if all(each % size == 0 for each in dimensions)), 0)


def quantise(cache: Cache, kv: KvQuantisation) -> None:
    """Replaces the full-attention entries of `cache`, empty or not, with quantised ones, in place.

    One by one, so that only one is in memory twice.
    """
    groups = iter(kv.groups)
    for number in range(len(cache)):
        cache[number] = _quantised(cache[number], kv.bits, groups)
        held = (entry for entry in leaves(cache[number : number + 1]) if is_appending(entry))
        mx.eval([entry.state for entry in held if not entry.empty()])


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
    attention. Any exception of a model's code is the reason, but faults of the machine are raised.
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
        quantise(cache, KvQuantisation(_BITS_OF_TRIAL, groups))
        found = _last_logits(model, cache)
        scale = mx.where(mx.isfinite(expected), mx.abs(expected), 0.0).max()
        difference = mx.where(found == expected, 0.0, mx.abs(found - expected)).max()
        if not float(difference) <= _LARGEST_DIFFERENCE * float(scale):
            return Quantisable(why_not="its answers with quantised keys are wrong")
    except Exception as error:  # any exception of a model's code
        if isinstance(error, MemoryError) or fault_of(str(error)):
            raise
        return Quantisable(why_not=f"its attention does not support quantised keys ({reason_of(error)})")
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
