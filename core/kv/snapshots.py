"""Snapshots of the cache entries that cannot return to an earlier length.

Entries that hold every position need none: their tail is cut off. Of the others a snapshot holds:

- windows: copies of keys and values, because they are written in place;
- recurrent state: contiguous arrays. A state can be a view of a whole chunk's activations, and a snapshot
  must not keep those in memory;
- other kinds (`ChunkedKVCache` and caches that a model's module defines): a deep copy of the attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten
from msgspec import Struct

from core.kv.entries import kind_of, leaves


class Snapshot(Struct, frozen=True):
    """States at `length` tokens of the entries that are not appending, in the order of `leaves`."""

    length: int
    states: list[Any]

    @property
    def nbytes(self) -> int:
        """Memory of the snapshot's arrays."""
        return sum(array.nbytes for array in _arrays(self.states))


def take_snapshot(cache: Sequence[Any], length: int) -> Snapshot:
    """The present state of `cache`, which holds `length` tokens."""
    states = [_state(entry) for entry in _forgetting(cache)]
    mx.eval(list(_arrays(states)))
    return Snapshot(length, states)


def restore(cache: Sequence[Any], snapshot: Snapshot) -> None:
    """Set the entries of `cache`, which has the snapshot's entry types, to the snapshot's state."""
    for entry, state in zip(_forgetting(cache), snapshot.states, strict=True):
        match kind_of(entry):
            case "recurrent":
                entry.cache = list(state)
            case "window":
                keys, values, entry.offset, entry._idx = state
                entry.keys, entry.values = _copy(keys), _copy(values)
            case _:
                vars(entry).clear()
                vars(entry).update(deepcopy(state))


def _forgetting(cache: Sequence[Any]) -> Iterator[Any]:
    return (entry for entry in leaves(cache) if kind_of(entry) != "appending")


def _state(entry: Any) -> Any:
    match kind_of(entry):
        case "recurrent":
            return [part if part is None else mx.contiguous(part) for part in entry.cache]
        case "window":
            return [_copy(entry.keys), _copy(entry.values), entry.offset, entry._idx]
        case _:
            return deepcopy(vars(entry))


def _copy(array: mx.array | None) -> mx.array | None:
    return None if array is None else mx.array(array)


def _arrays(states: list[Any]) -> Iterator[mx.array]:
    return (part for _, part in tree_flatten(states) if isinstance(part, mx.array))
