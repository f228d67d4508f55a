"""Blocks against a naive model: whatever is kept or rolled back, each entry holds what a fresh one would."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.cache import (
    ArraysCache,
    CacheList,
    ChunkedKVCache,
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
)

from core.errors import InternalError
from core.kv.mlx_lm_caches import keeps_all, why_no_rollback
from core.kv.verify_block import VerifyBlock

WINDOW = 8
ENTRIES: dict[str, Callable[[], Any]] = {
    "full": KVCache,
    "quantised": lambda: QuantizedKVCache(group_size=32, bits=8),
    "window": lambda: RotatingKVCache(WINDOW),
}


def vectors(tokens: list[int]) -> tuple[mx.array, mx.array]:
    """Keys and values [1, 2, n, 32] that are different for every token id."""
    base = mx.array(tokens, dtype=mx.float32).reshape(1, 1, -1, 1)
    ramp = mx.arange(64, dtype=mx.float32).reshape(1, 2, 1, 32) * 0.01
    return base + ramp, -base - ramp


def visible(entry: Any) -> list[list[float]]:
    """What the next token would attend to, in temporal order."""
    if isinstance(entry, QuantizedKVCache):
        parts = [part[..., : entry.offset, :] for part in (*entry.keys, *entry.values)]
        return [part.astype(mx.float32)[0, 0, :, 0].tolist() for part in parts]
    if isinstance(entry, RotatingKVCache):
        # One more token, so that both evict alike; a fresh copy, so that nothing is disturbed.
        probe = copy.copy(entry)
        probe.keys, probe.values = mx.array(entry.keys), mx.array(entry.values)
        keys, values = probe.update_and_fetch(*vectors([999]))
        return [sorted(keys[0, 0, :, 0].tolist()), sorted(values[0, 0, :, 0].tolist())]
    return [entry.keys[0, 0, : entry.offset, 0].tolist(), entry.values[0, 0, : entry.offset, 0].tolist()]


def fresh(make: Callable[[], Any], tokens: list[int]) -> Any:
    entry = make()
    for token in tokens:
        entry.update_and_fetch(*vectors([token]))
    return entry


# A step: block width, and for each row after the first whether it is kept; or a plain token.
steps = st.lists(
    st.one_of(st.just([]), st.lists(st.booleans(), min_size=1, max_size=11)), min_size=1, max_size=12
)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ENTRIES)
@given(steps)
@settings(max_examples=60)
def test_keeping_rows_equals_never_having_fed_the_others(kind: str, plan: list[list[bool]]) -> None:
    entry, told, number = ENTRIES[kind](), [], 0
    for flags in plan:
        width = 1 + len(flags)
        block = list(range(number, number + width))
        number += width
        rows = [0, *(row for row, kept in enumerate(flags, 1) if kept)]
        guard = VerifyBlock([entry]) if flags else None
        entry.update_and_fetch(*vectors(block))
        if guard is not None:
            assert guard.keep(width, rows)
        told += [block[row] for row in rows]
        assert entry.offset == len(told)
    reference = fresh(ENTRIES[kind], told)
    assert entry.offset == reference.offset
    assert visible(entry) == visible(reference)


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("before", [1, 5, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW + 2])
def test_recurrent_state_takes_everything_back(kind: str, before: int) -> None:
    attention, recurrent = fresh(ENTRIES[kind], list(range(before))), ArraysCache(2)
    recurrent[0], recurrent[1] = mx.array([1.0]), mx.array([2.0])
    cache = [CacheList(attention, recurrent)]
    for width in (2, 5, WINDOW + 3):
        block = VerifyBlock(cache)
        attention.update_and_fetch(*vectors(list(range(100, 100 + width))))
        recurrent[0], recurrent[1] = mx.array([8.0]), mx.array([9.0])
        assert not block.keep(width, [0])
        assert [float(state) for state in recurrent.cache] == [1.0, 2.0]
        assert attention.offset == before
        assert visible(attention) == visible(fresh(ENTRIES[kind], list(range(before))))


def test_a_whole_block_is_kept_with_recurrent_state() -> None:
    attention, recurrent = KVCache(), ArraysCache(1)
    recurrent[0] = mx.array([1.0])
    block = VerifyBlock([attention, recurrent])
    attention.update_and_fetch(*vectors([1, 2, 3]))
    recurrent[0] = mx.array([4.0])
    assert block.keep(3, [0, 1, 2])
    assert (attention.offset, float(recurrent[0])) == (3, 4.0)


def test_unknown_entries_are_named_and_refused() -> None:
    assert "ChunkedKVCache" in why_no_rollback([KVCache(), ChunkedKVCache(16)])
    assert "RotatingKVCache" in why_no_rollback([RotatingKVCache(8, keep=2)])
    assert why_no_rollback([KVCache(), RotatingKVCache(8), CacheList(ArraysCache(1), KVCache())]) == ""
    with pytest.raises(InternalError, match="ChunkedKVCache"):
        VerifyBlock([ChunkedKVCache(16)])


def test_only_appending_entries_keep_all() -> None:
    assert keeps_all([KVCache(), CacheList(QuantizedKVCache())])
    assert not keeps_all([KVCache(), RotatingKVCache(8)])
    assert not keeps_all([CacheList(KVCache(), ArraysCache(1))])


class Subclass(KVCache):
    """Somebody's cache with rules of its own."""


def test_a_subclass_is_not_trusted() -> None:
    assert "Subclass" in why_no_rollback([Subclass()])
