"""VerifyBlock: one verify block in the cache, of which some rows are kept and the others rolled back exactly.

Create it before the forward pass, run the pass over `width` ≥ 2 tokens, then `keep` the accepted rows.
`core.kv.mlx_lm_caches` describes which kinds of entries allow what.

Recurrent state cannot keep a part of a block. If any entry is recurrent and not all rows are kept, all
entries return to the state before the block; the caller feeds the accepted tokens again at the start of its
next block, which costs rows but no extra forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import mlx.core as mx

from core.errors import InternalError
from core.kv.mirrored import BlockBegun, Keep, MirroredCache
from core.kv.mlx_lm_caches import (
    CacheEntry,
    KeysAndValues,
    Recurrent,
    Window,
    WindowState,
    columns_of,
    is_appending,
    is_recurrent,
    is_window,
    leaves,
    parts,
    set_window_state,
    window_state,
)


class VerifyBlock:
    """Used once. Worker's main thread."""

    def __init__(self, cache: Sequence[CacheEntry]) -> None:
        self._mirrored = cache if isinstance(cache, MirroredCache) else None
        if self._mirrored is not None:
            self._mirrored.mirror(BlockBegun())
        self._guards: list[_Guard] = [_guard(entry) for entry in leaves(cache)]

    def keep(self, width: int, rows: Sequence[int]) -> bool:
        """Keeps `rows` of the block's `width` rows: ascending, and either empty or with row 0.

        Returns False if nothing is kept and the cache is as before the block.
        """
        if self._mirrored is not None:
            self._mirrored.mirror(Keep(width, tuple(rows)))
        whole = len(rows) == width
        if not rows or (not whole and any(guard.all_or_nothing for guard in self._guards)):
            for guard in self._guards:
                guard.restore(width)
            return False
        if not whole:
            chain = rows[-1] == len(rows) - 1
            index = None if chain else mx.array(list(rows))
            for guard in self._guards:
                guard.keep(width, len(rows), index)
        return True


class _Guard(Protocol):
    all_or_nothing: bool

    def keep(self, width: int, count: int, index: mx.array | None) -> None: ...

    def restore(self, width: int) -> None: ...


def _guard(entry: CacheEntry) -> _Guard:
    if is_appending(entry):
        return _Appending(entry)
    if is_window(entry):
        return _Window(entry)
    if is_recurrent(entry):
        return _Recurrent(entry)
    raise InternalError(f"Speculation on a {type(entry).__name__}, which cannot be rolled back.")


class _Appending:
    all_or_nothing = False

    def __init__(self, entry: KeysAndValues) -> None:
        self._entry = entry

    def keep(self, width: int, count: int, index: mx.array | None) -> None:
        entry = self._entry
        if index is not None:
            start = columns_of(entry) - width
            for part in parts(entry.keys) + parts(entry.values):
                part[..., start : start + count, :] = mx.take(part, start + index, axis=-2)
        _trim(entry, width - count)

    def restore(self, width: int) -> None:
        _trim(self._entry, width)


class _Window:
    """Valid for blocks of two or more tokens, which `RotatingKVCache` appends to new arrays."""

    all_or_nothing = False

    def __init__(self, entry: Window) -> None:
        self._entry = entry
        self._before = window_state(entry)

    def keep(self, width: int, count: int, index: mx.array | None) -> None:
        entry = self._entry
        start = entry.keys.shape[-2] - width
        keys, values = (_head(held, start, count, index) for held in (entry.keys, entry.values))
        set_window_state(entry, WindowState(keys, values, entry.offset - (width - count), start + count))

    def restore(self, width: int) -> None:
        set_window_state(self._entry, self._before)


class _Recurrent:
    all_or_nothing = True

    def __init__(self, entry: Recurrent) -> None:
        self._entry = entry
        self._before = list(entry.cache)

    def keep(self, width: int, count: int, index: mx.array | None) -> None:
        raise InternalError("Recurrent state cannot keep a part of a block.")

    def restore(self, width: int) -> None:
        self._entry.cache = self._before


def _head(array: mx.array, start: int, count: int, index: mx.array | None) -> mx.array:
    if index is None:
        return array[..., : start + count, :]
    return mx.concatenate([array[..., :start, :], mx.take(array, start + index, axis=-2)], axis=-2)


def _trim(entry: KeysAndValues, tokens: int) -> None:
    if tokens and entry.trim(tokens) != tokens:
        raise InternalError(f"A {type(entry).__name__} did not trim {tokens} tokens.")
