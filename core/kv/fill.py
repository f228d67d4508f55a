"""Caches that stand somewhere without having read what is before: for trying a model out at a length.

Worker's main thread.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models.cache import CacheList, RotatingKVCache

from core.kv.columns import Columns
from core.kv.entries import kind_of
from core.kv.positioned import Positioned
from core.kv.told import Fill, StandAt, tell

_EDGE_COLUMNS = 8
_EDGE_WEIGHT = 16.0


def fill(cache: list[Any], start: int, read_tokens: int, most_tokens: int) -> None:
    """`cache`, which has read `read_tokens`, stands at `start` afterwards, in place.

    What was read is repeated up to `start`, in windows up to their size, and the oldest columns of a window
    weigh more. Beyond `most_tokens` caches of whole texts have a gap before `start` instead.
    """
    tell(cache, Fill(start, read_tokens, most_tokens))
    columns = Columns()
    columns.extend(read_tokens)
    columns.jump(start)
    cache[:] = [_filled(entry, start, read_tokens, columns, most_tokens) for entry in cache]


def stand_at(cache: list[Any], position: int) -> None:
    """Each entry is an empty window at `position` afterwards, that has forgotten everything before it."""
    tell(cache, StandAt(position))
    cache[:] = [_at(entry, position) for entry in cache]


def _at(empty: Any, offset: int) -> Any:
    if isinstance(empty, CacheList):
        return CacheList(*(_at(child, offset) for child in empty.caches))
    entry = RotatingKVCache(max_size=getattr(empty, "max_size", 1 << 30))
    entry.offset = offset
    return entry


def _filled(entry: Any, start: int, read_tokens: int, columns: Columns, most_tokens: int) -> Any:
    if hasattr(entry, "caches"):
        entry.caches = type(entry.caches)(
            _filled(child, start, read_tokens, columns, most_tokens) for child in entry.caches
        )
        return entry
    kind = kind_of(entry)
    if kind == "recurrent" or entry.keys is None:
        return entry
    if kind == "window":
        held = min(start, int(entry.max_size))
        entry.keys = _repeated(entry.keys, read_tokens, held)
        entry.values = _weighed(_repeated(entry.values, read_tokens, held))
        entry.offset, entry._idx = start, held
        return entry
    if start > most_tokens:
        return Positioned(entry, columns)
    entry.keys, entry.values = tree_map(
        lambda part: _repeated(part, read_tokens, start), (entry.keys, entry.values)
    )
    entry.offset = start
    return entry


def _repeated(part: mx.array, read_tokens: int, columns: int) -> mx.array:
    held = part[..., :read_tokens, :]
    times = -(-columns // held.shape[-2])
    return mx.contiguous(mx.concatenate([held] * times, axis=-2)[..., :columns, :])


def _weighed(values: mx.array) -> mx.array:
    edge = mx.arange(values.shape[-2])[:, None] < _EDGE_COLUMNS
    return mx.where(edge, values * _EDGE_WEIGHT, values).astype(values.dtype)
