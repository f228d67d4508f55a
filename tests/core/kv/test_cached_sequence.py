"""The sequence of a context with gaps: what it reuses, takes back and gives to whom."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import KVCache, QuantizedKVCache, make_prompt_cache

from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import KvQuantisation, masked, quantisable
from core.kv.verify_block import VerifyBlock
from tests.core.architectures import ARCHITECTURES, FULL, tiny, wide
from tests.core.prefill.gaps import (
    difference,
    kept_forward,
    logits,
    prompt_of,
    read,
    sequence_of,
    some_positions,
)
from tests.thinned import thinned


def sparse(model: Any, seed: int = 0) -> tuple[CachedSequence, list[int], list[int]]:
    """A sequence with gaps, its prompt, and the positions that were dropped."""
    rng = random.Random(seed)
    prompt, kept = prompt_of(rng), some_positions(rng)
    sequence = read(model, sequence_of(model), prompt, kept)
    return sequence, prompt, sorted(set(range(len(prompt) - 1)) - set(kept.tolist()))


def test_a_request_for_everything_gets_no_further_than_the_first_gap() -> None:
    model = tiny("llama")
    sequence, prompt, dropped = sparse(model)
    assert sequence.shared(prompt) == len(prompt) - 1
    assert sequence.shared(prompt, whole=True) == dropped[0]
    assert sequence.reuse(prompt, whole=True) == dropped[0]
    assert sequence.skipped == 0
    read(model, sequence, prompt)
    dense = read(model, sequence_of(model), prompt)
    assert difference(logits(model, sequence, prompt[-1:]), logits(model, dense, prompt[-1:])) < 1e-5


@pytest.mark.parametrize("length", [1, 5, 60, 61, 100, 150, 178])
def test_any_prefix_can_be_gone_back_to(length: int) -> None:
    model = tiny("qwen3")
    sequence, prompt, dropped = sparse(model)
    more = prompt_of(random.Random(99), 20)
    assert sequence.reuse([*prompt[:length], *more]) == length
    assert sequence.tokens == prompt[:length]
    assert sequence.skipped == sum(position < length for position in dropped)
    left = [position for position in dropped if position < length]
    got = logits(model, sequence, more)
    assert difference(got, kept_forward(model, prompt[:length] + more, left)[-len(more) :]) < 1e-4


@pytest.mark.parametrize("entry", [KVCache, lambda: QuantizedKVCache(group_size=32, bits=8)])
def test_full_and_quantised_entries_roll_back_blocks_over_gaps(entry: Callable[[], Any]) -> None:
    """A block kept in part (a chain, then a tree's path) leaves what only its kept rows would."""
    model: Any = tiny("llama", 1) if entry is KVCache else _wide_llama()
    rng = random.Random(3)
    prompt, kept, block = prompt_of(rng), some_positions(rng), prompt_of(rng, 5)

    def sequence() -> CachedSequence:
        return read(model, CachedSequence(lambda: [entry() for _ in model.layers]), prompt, kept)

    tried = sequence()
    guard = VerifyBlock(tried.cache)
    model(mx.array(block)[None], cache=tried.cache)
    assert guard.keep(5, [0, 1])
    tried.append(block[:2])
    plain = sequence()
    logits(model, plain, block[:2])
    assert tried.cache[0].offset == plain.cache[0].offset == len(kept) + 2
    assert difference(logits(model, tried, block[2:]), logits(model, plain, block[2:])) < 1e-5

    rows = sequence()
    guard = VerifyBlock(rows.cache)
    model(mx.array(block)[None], cache=rows.cache)
    before = [mx.array(part) for part in _parts(rows.cache[0])]
    assert guard.keep(5, [0, 3])
    at = len(kept)
    for part, was in zip(_parts(rows.cache[0]), before, strict=True):
        assert mx.array_equal(part[..., at : at + 2, :], was[..., mx.array([at, at + 3]), :])


def test_bytes_are_those_of_the_arrays() -> None:
    model = tiny("llama")
    sequence, _, _ = sparse(model)
    assert sequence.nbytes == sum(e.keys.nbytes + e.values.nbytes for e in sequence.cache) > 0
    sequence.clear()
    assert (sequence.nbytes, sequence.skipped, sequence.tokens) == (0, 0, [])


def _parts(entry: Any) -> list[mx.array]:
    held = (entry.keys, entry.values)
    return [part for side in held for part in (side if isinstance(side, list | tuple) else [side])]


def _wide_llama() -> Any:
    from tests.core.architectures import ARCHITECTURES, build

    return build({**ARCHITECTURES["llama"].config, "head_dim": 32}, 2.3)


PLAIN = [name for name, each in ARCHITECTURES.items() if set(each.caches) == {FULL}]


@pytest.mark.parametrize("architecture", thinned(PLAIN, keep=["llama", "mistral3", "deepseek_v3"]))
@pytest.mark.parametrize("bits", [0, 8])
def test_selected_columns_are_a_mask_over_the_whole_cache(architecture: str, bits: int) -> None:
    """For blocks and single tokens, with drafts that are taken back, and without a change of the whole."""
    model: Any = wide(architecture) if bits else tiny(architecture)
    rng = random.Random(architecture)
    new_cache = lambda: make_prompt_cache(model)  # noqa: E731
    found = quantisable(model, new_cache)
    if bits and found.why_not:
        return  # latent attention
    kv = KvQuantisation(bits, found.groups) if bits else None
    prompt, more = prompt_of(rng), prompt_of(rng, 13)
    dense = read(model, CachedSequence(new_cache, kv), prompt)
    assert dense.can_select
    kept = some_positions(rng)[:-3]  # not the last ones either
    some = dense.selected(kept)
    assert (some.tokens, some.columns.count) == (dense.tokens, len(kept))

    def logits_of(sequence: CachedSequence, block: list[int]) -> mx.array:
        got: mx.array = model(mx.array(block)[None], cache=sequence.cache)[0]
        mx.eval(got)
        return got

    def masked_logits(block: list[int]) -> mx.array:
        past = len(dense.tokens)
        sees = np.zeros((len(block), past + len(block)), np.bool_)
        sees[:, kept] = True
        sees[:, len(prompt) - 1 : past] = True
        sees[:, past:] = np.tri(len(block), dtype=np.bool_)
        behind = past + np.arange(len(block))[:, None] - np.arange(past + len(block))

        def mask(width: int, window_size: int | None = None, return_array: bool = False) -> mx.array:
            return mx.array(sees if window_size is None else sees & (behind < window_size))

        # Some models make no mask for a single token.
        with masked([(entry, mask) for entry in dense.cache]):
            return logits_of(dense, block)

    guard = VerifyBlock(some.cache)
    logits_of(some, more[:4])
    assert guard.keep(4, [0, 1])
    some.append(more[:2])
    blocks = more[:2], more[2:7], more[7:8], more[8:]
    for number, block in enumerate(blocks):
        wanted = masked_logits(list(block))
        dense.append(block)
        if number:
            got = logits_of(some, list(block))
            some.append(block)
            assert difference(got, wanted) < 1e-4
    some.truncate(len(prompt) + 3)
    dense.truncate(len(prompt) + 3)
    wanted = masked_logits(list(more[4:6]))
    assert difference(logits_of(some, list(more[4:6])), wanted) < 1e-4
    dense.append(more[4:6])
    dense.truncate(len(prompt) - 1)
    again = read(model, CachedSequence(new_cache, kv), prompt)
    assert difference(logits_of(dense, [7]), logits_of(again, [7])) == 0


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name not in PLAIN])
def test_columns_of_other_caches_are_not_selected(architecture: str) -> None:
    model = tiny(architecture)
    assert not read(model, sequence_of(model), prompt_of(random.Random(0), 30)).can_select
    sequence, _, _ = sparse(tiny("llama"))
    assert not sequence.can_select
