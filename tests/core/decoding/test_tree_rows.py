"""TreeRows: masks and positions equal what walking the tree by hand gives."""

from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.cache import KVCache, RotatingKVCache

from core.decoding.tree_rows import TreeRows
from core.errors import InternalError

trees = st.integers(1, 12).flatmap(lambda n: st.tuples(*(st.integers(-1, i - 1) for i in range(n))))


def by_hand(parents: tuple[int, ...], lead: int, past: int, window: int | None) -> list[list[bool]]:
    """Ancestry as sets; positions counted from the first cached column."""
    seen = [set(range(row + 1)) for row in range(lead)]
    position = list(range(lead))
    for node, parent in enumerate(parents):
        seen.append(seen[lead + parent] | {lead + node})
        position.append(position[lead + parent] + 1)
    near = [[window is None or q - p < window for p in [*range(-past, 0), *position]] for q in position]
    every = [[True] * past + [column in seen[row] for column in range(len(seen))] for row in range(len(seen))]
    return [[a and b for a, b in zip(*rows)] for rows in zip(near, every)]


@settings(max_examples=60, deadline=None)
@given(trees, st.integers(1, 4), st.integers(0, 20), st.sampled_from([None, 3, 8, 40]))
def test_the_mask_is_ancestry_inside_the_window(
    parents: tuple[int, ...], lead: int, past: int, window: int | None
) -> None:
    entry = KVCache()
    entry.offset = past
    assert TreeRows(parents, lead).mask(entry, window).tolist() == by_hand(parents, lead, past, window)


@pytest.mark.parametrize(("tokens", "columns"), [(0, 0), (3, 3), (7, 7), (8, 7), (9, 7), (30, 7)])
@pytest.mark.parametrize("width", [1, 4])
def test_a_window_keeps_the_columns_that_the_cache_will_give(tokens: int, columns: int, width: int) -> None:
    """After any history, the mask is as wide as what `update_and_fetch` returns for the block."""
    entry = RotatingKVCache(max_size=8)
    for start in range(0, tokens, width):
        some = mx.zeros((1, 1, min(width, tokens - start), 2))
        entry.update_and_fetch(some, some)
    rows = TreeRows((-1, -1, 1), 1)
    mask = rows.mask(entry, None)
    keys, _ = entry.update_and_fetch(mx.zeros((1, 1, 4, 2)), mx.zeros((1, 1, 4, 2)))
    assert mask.shape == (4, columns + 4) == (4, keys.shape[2])
    assert mask.tolist() == by_hand((-1, -1, 1), 1, columns, 8)


def test_positions_follow_the_caller_s_offset() -> None:
    rows = TreeRows((-1, 0, -1, 2, 3), 2)
    assert rows.positions(7).tolist() == [7, 8, 9, 10, 9, 10, 11]
    assert rows.positions(100).tolist() == [100, 101, 102, 103, 102, 103, 104]
    assert rows.positions(mx.array(7)).tolist() == rows.positions(mx.array([7])).tolist()
    assert rows.positions(mx.array(7)).tolist() == rows.positions(7).tolist()
    assert rows.positions(mx.array(7)).dtype == rows.positions(7).dtype == mx.int32


@pytest.mark.parametrize("parents", [(0,), (-2,), (-1, 1), (-1, 0, 5)])
def test_a_node_before_its_parent_is_refused(parents: tuple[int, ...]) -> None:
    with pytest.raises(InternalError, match="not before it"):
        TreeRows(parents, 1)


def test_a_block_without_a_known_token_is_refused() -> None:
    with pytest.raises(InternalError, match="at least one lead token, not 0"):
        TreeRows((-1,), 0)
