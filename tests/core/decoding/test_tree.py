"""A tree in one forward pass gives every node the logits of its own path fed as a chain; masks and
positions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.cache import CacheList, KVCache, RotatingKVCache, make_prompt_cache

from core.decoding.tree import TreeRows, tree_pass
from core.errors import InternalError
from core.kv.positions import Columns, Positioned
from core.kv.verify_block import VerifyBlock
from core.models.parts import rotations
from tests.core.architectures import ARCHITECTURES, VOCABULARY, tiny
from tests.core.toy import toy_model

TREES = [name for name, spec in ARCHITECTURES.items() if spec.trees]
# MLX's gathered matrix product knows only float32 on the CPU, so experts cannot run in bfloat16 there.
DENSE = [name for name in TREES if not any("expert" in key for key in ARCHITECTURES[name].config)]
FLOAT32 = 1e-4
# Before the window's wrap, across it within the block, after it.
CONTEXTS = [3, 13, 60]


def ids(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(VOCABULARY) for _ in range(count)]


def random_tree(rng: random.Random, nodes: int) -> list[int]:
    """Bushy near the root and deep at the end, or the other way round."""
    reach = rng.choice([1, 3, 30])
    return [max(-1, node - 1 - rng.randrange(reach)) for node in range(nodes)]


def path_to(node: int, parents: Sequence[int]) -> list[int]:
    path: list[int] = []
    while node >= 0:
        path.insert(0, node)
        node = parents[node]
    return path


def after(model: Any, context: Sequence[int], singles: int = 0) -> list[Any]:
    """A cache that has read `context`, its last `singles` tokens one by one as decoding does."""
    cache = make_prompt_cache(model)
    bulk = len(context) - singles
    model(mx.array([context[:bulk]]), cache=cache)
    for token in context[bulk:]:
        model(mx.array([[token]]), cache=cache)
    mx.eval([entry.state for entry in cache])
    return cache


def tree_logits(
    model: Any, cache: list[Any], block: Sequence[int], parents: Sequence[int], lead: int
) -> mx.array:
    with tree_pass(model, cache, parents, lead):
        logits = model(mx.array([block]), cache=cache)
    # Computed after the pass on purpose: only the graph is built inside it.
    return mx.array(logits[0])


def largest_error(
    model: Any, cache: list[Any], block: Sequence[int], parents: Sequence[int], lead: int
) -> float:
    """Over all nodes, relative to the logits' scale; infinite if a choice differs. `cache` stays."""
    tree = tree_logits(model, deepcopy(cache), block, parents, lead)
    worst = 0.0
    for leaf in set(range(len(parents))) - set(parents):
        path = path_to(leaf, parents)
        chain = [*block[:lead], *(block[lead + node] for node in path)]
        alone = model(mx.array([chain]), cache=deepcopy(cache))[0, lead - 1 :]
        rows = mx.take(tree, mx.array([lead - 1, *(lead + node for node in path)]), axis=0)
        assert rows.dtype == alone.dtype
        rows, alone = rows.astype(mx.float32), alone.astype(mx.float32)
        worst = max(worst, float(mx.abs(rows - alone).max() / mx.abs(alone).max()))
        if mx.argmax(rows, axis=-1).tolist() != mx.argmax(alone, axis=-1).tolist():
            return float("inf")
    return worst


@pytest.mark.sweep
@pytest.mark.parametrize("tokens", CONTEXTS)
@pytest.mark.parametrize("name", TREES)
def test_every_node_of_a_random_tree_equals_its_chain(name: str, tokens: int) -> None:
    rng = random.Random(tokens)
    model = tiny(name)
    cache = after(model, ids(rng, tokens))
    for nodes in (1, 2, 7, 24):
        lead = rng.randint(1, 4)
        parents = random_tree(rng, nodes)
        assert largest_error(model, cache, ids(rng, lead + nodes), parents, lead) <= FLOAT32, (lead, parents)


@pytest.mark.sweep
@pytest.mark.parametrize("name", TREES)
def test_trees_are_exact_after_single_tokens(name: str) -> None:
    """Single tokens leave a rotated or half-filled window buffer behind, which a prompt does not."""
    rng = random.Random(5)
    model = tiny(name)
    for tokens, singles in [(9, 4), (16, 3), (40, 5), (40, 25)]:
        cache = after(model, ids(rng, tokens), singles)
        assert largest_error(model, cache, ids(rng, 14), random_tree(rng, 12), 2) <= FLOAT32, (
            tokens,
            singles,
        )


@pytest.mark.parametrize("name", TREES)
def test_tree_after_tree_equals_a_cold_start(name: str) -> None:
    """Keep one branch of each of eight trees; the cache goes on as if only it had ever been read."""
    rng = random.Random(7)
    model = tiny(name)
    read = ids(rng, 9)
    cache = after(model, read)
    for _ in range(8):
        lead, nodes = rng.randint(1, 3), rng.randint(2, 10)
        parents, block = random_tree(rng, nodes), ids(rng, lead + nodes)
        path = path_to(rng.randrange(-1, nodes), parents)
        undo = VerifyBlock(cache)
        mx.eval(tree_logits(model, cache, block, parents, lead))
        assert undo.keep(len(block), [*range(lead), *(lead + node for node in path)])
        read += [*block[:lead], *(block[lead + node] for node in path)]
    token = mx.array([[5]])
    warm, cold = model(token, cache=cache)[0, -1], model(token, cache=after(model, read))[0, -1]
    assert [entry.offset for entry in cache] == [len(read) + 1] * len(cache)
    assert float(mx.abs(warm - cold).max() / mx.abs(cold).max()) <= FLOAT32


@pytest.mark.parametrize("name", DENSE)
def test_bfloat16_stays_bfloat16(name: str) -> None:
    rng = random.Random(3)
    model = tiny(name)
    model.set_dtype(mx.bfloat16)
    cache = after(model, ids(rng, 40))
    block, parents = ids(rng, 10), random_tree(rng, 8)
    logits = tree_logits(model, cache, block, parents, 2)
    assert logits.dtype == model(mx.array([[1, 2]])).dtype == mx.bfloat16
    assert {part.dtype for entry in cache for part in (entry.keys, entry.values)} == {mx.bfloat16}
    assert largest_error(model, after(model, ids(rng, 40)), block, parents, 2) <= 0.02


@pytest.mark.parametrize("bits", [4, 8])
def test_quantised_caches_verify_trees(bits: int) -> None:
    rng = random.Random(2)
    model = toy_model(head_dim=32)
    cache = [entry.to_quantized(group_size=32, bits=bits) for entry in after(model, ids(rng, 30))]
    assert largest_error(model, cache, ids(rng, 12), random_tree(rng, 10), 2) <= FLOAT32


@pytest.mark.parametrize("name", TREES)
def test_without_either_hook_the_answer_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: these tests see it when a tree is run as if it were a chain."""
    rng = random.Random(4)
    model = tiny(name)
    cache = after(model, ids(rng, 20))
    block, parents = ids(rng, 6), [-1, -1, 0, 1]
    assert largest_error(model, cache, block, parents, 2) <= FLOAT32
    with monkeypatch.context() as patch:
        patch.setattr(TreeRows, "positions", lambda rows, offset: mx.arange(rows.size) + offset)
        assert largest_error(model, cache, block, parents, 2) > 100 * FLOAT32
    ancestry = TreeRows.mask

    def all_before(rows: TreeRows, entry: Any, window: int | None) -> mx.array:
        past = ancestry(rows, entry, window)[:, : -rows.size]
        return mx.concatenate([past, mx.tri(rows.size).astype(mx.bool_)], axis=1)

    with monkeypatch.context() as patch:
        patch.setattr(TreeRows, "mask", all_before)
        assert largest_error(model, cache, block, parents, 2) > 100 * FLOAT32


def holdings(model: nn.Module, cache: Sequence[Any]) -> list[tuple[str, Any]]:
    """What every module and every cache entry holds, in order."""
    owners = [owner for _, owner in model.named_modules()]
    return [item for held in [*owners, *map(vars, cache)] for item in held.items()]


def assert_same(before: Sequence[tuple[str, Any]], now: Sequence[tuple[str, Any]]) -> None:
    assert [key for key, _ in before] == [key for key, _ in now]
    assert all(a is b for (_, a), (_, b) in zip(before, now, strict=True))


@pytest.mark.parametrize("name", TREES)
def test_model_and_cache_are_given_back_as_they_were(name: str) -> None:
    model = tiny(name)
    cache = after(model, [1, 2, 3])
    before = holdings(model, cache)
    found = rotations(model)
    assert found
    with tree_pass(model, cache, [-1, -1], 1):
        assert all("make_mask" in vars(entry) for entry in cache)
        assert not any(rotation.owner[rotation.key] is rotation.rope for rotation in found)
    assert_same(before, holdings(model, cache))
    with pytest.raises(KeyError), tree_pass(model, cache, [-1, -1], 1):
        raise KeyError("in the middle of a forward")
    assert_same(before, holdings(model, cache))


def test_a_mask_of_the_entry_s_own_comes_back() -> None:
    model = tiny("llama")
    cache = after(model, [1, 2, 3])
    cache[0].make_mask = own = cache[0].make_mask
    with tree_pass(model, cache, [-1, -1], 1):
        assert cache[0].make_mask is not own
    assert vars(cache[0])["make_mask"] is own
    assert "make_mask" not in vars(cache[1])


def test_children_of_a_list_get_the_mask_once() -> None:
    model = tiny("llama")
    one, other = KVCache(), KVCache()
    with tree_pass(model, [CacheList(one, other), one], [-1, -1], 1):
        assert one.make_mask(3).shape == other.make_mask(3, window_size=2).shape == (3, 3)
    assert "make_mask" not in vars(one)
    assert "make_mask" not in vars(other)


def test_rotations_found_beforehand_do_the_same() -> None:
    model = tiny("mistral")
    cache = after(model, [1, 2, 3])
    found = rotations(model)
    block, parents = mx.array([[4, 5, 6, 7]]), [-1, -1, 0]
    with tree_pass(model, cache, parents, 1, found) as rows:
        logits = model(block, cache=cache)[0]
    assert rows.rotated == 2 * len(found) == 6, "queries and keys of three layers"
    again = tree_logits(model, after(model, [1, 2, 3]), block[0].tolist(), parents, 1)
    assert mx.array_equal(logits, again)


def test_a_lead_alone_is_the_plain_forward() -> None:
    model = tiny("gemma3_text")
    cache = after(model, list(range(30)), singles=4)
    before = holdings(model, cache)
    plain = model(mx.array([[7]]), cache=deepcopy(cache))[0]
    with tree_pass(model, cache, [], 1):
        assert_same(before, holdings(model, cache))
        assert mx.array_equal(model(mx.array([[7]]), cache=cache)[0], plain)


@pytest.mark.parametrize(
    ("name", "parents", "width", "message"),
    [
        ("llama", [0], 2, "not before it"),
        ("qwen3_5", [-1, -1], 3, "recurrent state"),
        ("llama4", [-1, -1], 3, "ChunkedKVCache"),
        ("llama", [-1, -1], 4, "the forward has 4"),
        ("nemotron_h", [-1, -1], 3, "recurrent state"),
    ],
)
def test_what_cannot_be_a_tree_is_refused(name: str, parents: list[int], width: int, message: str) -> None:
    model = tiny(name)
    cache = make_prompt_cache(model)
    before = holdings(model, cache)
    with pytest.raises(InternalError, match=message), tree_pass(model, cache, parents, 1):
        model(mx.zeros((1, width), dtype=mx.int32), cache=cache)
    assert_same(before, holdings(model, cache))


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


def test_a_window_counts_skipped_positions() -> None:
    """A window of 4 shows columns 0, 1, 2, 10, 11 to a row at 12 from 10 on, to one at 14 from 11 on."""
    entry = Positioned(KVCache(), Columns.at(np.array([0, 1, 2, 10, 11], dtype=np.int32)))
    entry.entry.offset = 5
    mask = TreeRows((-1, 0, -1), 1).mask(entry, 4).tolist()
    assert [row[:5] for row in mask] == [
        [False, False, False, True, True],
        [False, False, False, True, True],
        [False, False, False, False, True],
        [False, False, False, True, True],
    ]


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
