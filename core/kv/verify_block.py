"""VerifyBlock: one verify block in the cache, kept in part and rolled back in part, exactly.

Make it before the forward, run the forward over `width` ≥ 2 tokens, then `keep` the rows that
were accepted. What each kind of entry allows is described in `core.kv.entries`.

Recurrent state cannot keep a part of a block. If any entry is recurrent and not all rows are
kept, all entries go back to the state before the block; the caller feeds the accepted tokens
again at the head of its next block, which costs rows but no extra forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import mlx.core as mx

from core.errors import InternalError
from core.kv.entries import columns_of, kind_of, leaves, parts
from core.kv.told import Block, Keep, ToldCache


class VerifyBlock:
    """Worker's main thread; used once."""

    def __init__(self, cache: Sequence[Any]) -> None:
        self._told = cache if isinstance(cache, ToldCache) else None
        if self._told is not None:
            self._told.tell(Block())
        self._guards: list[_Guard] = [_guard(entry) for entry in leaves(cache)]

    def keep(self, width: int, rows: Sequence[int]) -> bool:
        """Of the block's `width` rows keep `rows` (ascending; none, or the first one among them).

        Returns False if nothing is kept and the cache is as before the block.
        """
        if self._told is not None:
            self._told.tell(Keep(width, tuple(rows)))
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


def _guard(entry: Any) -> _Guard:
    kind = kind_of(entry)
    if kind == "appending":
        return _Appending(entry)
    if kind == "window":
        return _Window(entry)
    if kind == "recurrent":
        return _Recurrent(entry)
    raise InternalError(f"A {type(entry).__name__} was speculated on, and it cannot roll back.")


class _Appending:
    all_or_nothing = False

    def __init__(self, entry: Any) -> None:
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

    def __init__(self, entry: Any) -> None:
        self._entry = entry
        self._before = (entry.keys, entry.values, entry.offset, entry._idx)

    def keep(self, width: int, count: int, index: mx.array | None) -> None:
        entry = self._entry
        start = entry.keys.shape[-2] - width
        entry.keys = _head(entry.keys, start, count, index)
        entry.values = _head(entry.values, start, count, index)
        entry.offset -= width - count
        entry._idx = start + count

    def restore(self, width: int) -> None:
        entry = self._entry
        entry.keys, entry.values, entry.offset, entry._idx = self._before


class _Recurrent:
    all_or_nothing = True

    def __init__(self, entry: Any) -> None:
        self._entry = entry
        self._before = list(entry.cache)

    def keep(self, width: int, count: int, index: mx.array | None) -> None:
        raise InternalError("Recurrent state was asked to keep a part of a block.")

    def restore(self, width: int) -> None:
        self._entry.cache = self._before


def _head(array: mx.array, start: int, count: int, index: mx.array | None) -> mx.array:
    if index is None:
        return array[..., : start + count, :]
    return mx.concatenate([array[..., :start, :], mx.take(array, start + index, axis=-2)], axis=-2)


def _trim(entry: Any, tokens: int) -> None:
    if tokens and entry.trim(tokens) != tokens:
        raise InternalError(f"A {type(entry).__name__} did not take back {tokens} tokens.")
