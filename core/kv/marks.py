"""Marks: what windows and recurrent state were at a length of the context, so that it can be gone back to.

Entries that keep every position need none: their tail is cut off. The others forget, so a copy
is put aside where going back is likely: windows are copied (they are written in place), recurrent
state is only referred to (it is rebound, never mutated).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from msgspec import Struct

from core.kv.entries import kind_of, leaves


class Mark(Struct, frozen=True):
    """The forgetting entries' states, in the order of `leaves`, when `length` tokens were known."""

    length: int
    states: list[Any]

    @property
    def nbytes(self) -> int:
        """Memory of the copies; state that is only referred to may be the entry's own."""
        return sum(part.nbytes for state in self.states for part in state if isinstance(part, mx.array))


def mark(cache: Sequence[Any], length: int) -> Mark:
    """The state of `cache` now."""
    return Mark(length, [_state(entry) for entry in leaves(cache) if kind_of(entry) != "appending"])


def go_back(cache: Sequence[Any], to: Mark) -> None:
    """Make the forgetting entries of `cache` (that of the mark, or one alike) what they were."""
    forgetting = [entry for entry in leaves(cache) if kind_of(entry) != "appending"]
    for entry, state in zip(forgetting, to.states, strict=True):
        if kind_of(entry) == "recurrent":
            entry.cache = list(state)
        else:
            keys, values, entry.offset, entry._idx = state
            entry.keys, entry.values = _copy(keys), _copy(values)


def _state(entry: Any) -> list[Any]:
    if kind_of(entry) == "recurrent":
        return list(entry.cache)
    return [_copy(entry.keys), _copy(entry.values), entry.offset, entry._idx]


def _copy(array: mx.array | None) -> mx.array | None:
    return None if array is None else mx.array(array)
