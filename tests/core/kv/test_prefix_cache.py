"""The prefix cache: what was read once is found again, nobody loses much to anybody, and a budget holds."""

from __future__ import annotations

import random
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.models.cache import ArraysCache, make_prompt_cache

from core.kv import cached_sequence
from core.kv.cached_sequence import (
    SNAPSHOTS,
    CachedSequence,
    PrefixCache,
    restore,
    shared_prefix,
    take_snapshot,
)
from core.prefill.read import read_prompt
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.prefill.gaps import (
    difference,
    kept_forward,
    logits,
    prompt_of,
    read,
    sequence_of,
    some_positions,
)

FORGETTING = [n for n in ARCHITECTURES if set(ARCHITECTURES[n].caches) != {"KVCache"}]


def cache_of(model: Any) -> PrefixCache:
    return PrefixCache(lambda: make_prompt_cache(model))


def go_on(
    model: Any, cache: PrefixCache, prompt: list[int], snapshots: tuple[int, ...] = ()
) -> tuple[CachedSequence, int]:
    sequence = cache.take(prompt)
    reused = sequence.reuse(prompt)
    for _ in read_prompt(model, sequence, prompt, chunk_tokens=32, snapshots=snapshots):
        pass
    return sequence, reused


def test_two_chats_keep_theirs_and_share_the_beginning() -> None:
    model, rng = tiny("llama"), random.Random(0)
    cache, system = cache_of(model), prompt_of(rng, 40)
    one, two = system + prompt_of(rng, 90), system + prompt_of(rng, 90)
    go_on(model, cache, one)
    sequence, reused = go_on(model, cache, two)
    assert (reused, len(cache)) == (40, 2)
    wanted = kept_forward(model, two, [])[-1:]
    assert difference(logits(model, sequence, two[-1:]), wanted) < 1e-5
    sequence, reused = go_on(model, cache, [*one, 5])
    assert (reused, len(cache)) == (len(one) - 1, 2)
    wanted = kept_forward(model, [*one, 5], [])[-1:]
    assert difference(logits(model, sequence, [5]), wanted) < 1e-5


def test_a_short_tail_is_given_up_rather_than_the_document_copied() -> None:
    model, rng = tiny("llama"), random.Random(1)
    cache, document = cache_of(model), prompt_of(rng, 150)
    go_on(model, cache, document + prompt_of(rng, 20))
    _, reused = go_on(model, cache, document + prompt_of(rng, 20))
    assert (reused, len(cache)) == (150, 1)


def test_the_budget_drops_the_oldest_but_never_the_current_one() -> None:
    model, rng = tiny("llama"), random.Random(2)
    cache = cache_of(model)
    prompts = [prompt_of(rng, 100) for _ in range(4)]
    for prompt in prompts:
        go_on(model, cache, prompt)
    each = cache.current.nbytes
    assert cache.nbytes == 4 * each
    go_on(model, cache, prompts[0])
    cache.fit(2 * each)
    assert len(cache) == 2
    assert go_on(model, cache, prompts[0])[1] == 99
    assert go_on(model, cache, prompts[3])[1] == 99
    cache.fit(0)
    assert len(cache) == 1
    assert cache.current.tokens == prompts[3][:-1]


def test_gaps_go_along_into_a_copy_and_not_to_who_wants_everything() -> None:
    model, rng = tiny("llama"), random.Random(3)
    cache, prompt, kept = cache_of(model), prompt_of(rng), some_positions(rng)
    sparse = read(model, cache.take(prompt), prompt, kept)
    logits(model, sparse, prompt_of(rng, 200))
    dropped = sorted(set(range(len(prompt) - 1)) - set(kept.tolist()))
    follow = [*prompt[:-1], *prompt_of(rng, 30)]
    sequence = cache.take(follow)
    assert sequence is not sparse
    assert sequence.reuse(follow) == len(prompt) - 1
    got = logits(model, sequence, follow[len(prompt) - 1 :])
    assert difference(got, kept_forward(model, follow, dropped)[-30:]) < 1e-4
    whole = cache.take(follow, whole=True)
    assert whole.reuse(follow, whole=True) == dropped[0]
    assert whole.skipped == 0


@pytest.mark.parametrize("name", FORGETTING)
def test_caches_that_forget_return_to_snapshots(name: str) -> None:
    """Another chat goes on from the system prompt, and the first one is still there."""
    model, rng = tiny(name), random.Random(name)
    cache, system = cache_of(model), prompt_of(rng, 40)
    one, two = system + prompt_of(rng, 90), system + prompt_of(rng, 50)
    first, _ = go_on(model, cache, one, snapshots=(40, len(one) - 1))
    logits(model, first, prompt_of(rng, 30))  # an answer
    sequence, reused = go_on(model, cache, two)
    assert reused == 40
    fresh = read(model, sequence_of(model), two)
    assert difference(logits(model, sequence, two[-1:]), logits(model, fresh, two[-1:])) < 1e-4
    again, reused = go_on(model, cache, one)
    assert reused == len(one) - 1
    fresh = read(model, sequence_of(model), one)
    assert difference(logits(model, again, one[-1:]), logits(model, fresh, one[-1:])) < 1e-4


def read_with_snapshots(sequence: CachedSequence, model: Any, prompt: list[int], lengths: list[int]) -> None:
    for _ in read_prompt(model, sequence, prompt, chunk_tokens=64, snapshots=lengths):
        pass


def returns_to(sequence: CachedSequence) -> list[int]:
    """The lengths that the sequence can return to."""
    tokens = list(sequence.tokens)
    return [at for at in range(1, len(tokens)) if sequence.shared([*tokens[:at], -1, -1]) == at]


@pytest.mark.parametrize("name", ["gemma3_text", "qwen3_5", "llama4"])
def test_snapshots_are_limited_in_number(name: str) -> None:
    model, prompt = tiny(name), prompt_of(random.Random(0), 200)
    sequence = sequence_of(model)
    read_with_snapshots(sequence, model, prompt[:41], [30, 40])
    for length in range(50, 50 + 10 * SNAPSHOTS, 10):
        read_with_snapshots(sequence, model, prompt[: length + 1], [40, length])
        lengths = returns_to(sequence)
        assert {30, 40} <= set(lengths)
        assert len({*lengths, length}) <= SNAPSHOTS
    read_with_snapshots(sequence, model, prompt, [150, 170])
    assert 30 in returns_to(sequence)
    assert 40 not in returns_to(sequence)


def test_snapshots_are_limited_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompt = tiny("gemma3_text"), prompt_of(random.Random(0), 200)
    sequence = sequence_of(model)
    read_with_snapshots(sequence, model, prompt, [50])
    before = sequence.nbytes
    read_with_snapshots(sequence, model, prompt, [])
    one = take_snapshot(sequence.cache, len(sequence.tokens)).nbytes
    assert 0 < one < before
    monkeypatch.setattr(cached_sequence, "SNAPSHOT_BYTES", 3 * one)
    sequence = sequence_of(model)
    read_with_snapshots(sequence, model, prompt, list(range(20, 200, 20)))
    assert len(returns_to(sequence)) == 3
    monkeypatch.setattr(cached_sequence, "SNAPSHOT_BYTES", 0)
    sequence.snapshot()
    assert returns_to(sequence) == []
    assert sequence.shared([*sequence.tokens, 1, 1]) == len(sequence.tokens)


def test_a_sequence_above_the_budget_keeps_its_last_snapshot_only() -> None:
    model, prompt = tiny("gemma3_text"), prompt_of(random.Random(0), 200)
    cache = cache_of(model)
    sequence, _ = go_on(model, cache, prompt, snapshots=(20, 60, 100))
    assert returns_to(sequence) == [20, 60, 100]
    cache.fit(cache.nbytes)
    assert returns_to(sequence) == [20, 60, 100]
    cache.fit(0)
    assert returns_to(sequence) == [100]
    sequence.clear()
    assert sequence.nbytes == 0


def test_a_snapshot_does_not_hold_the_chunk_that_its_state_is_a_view_of() -> None:
    held = mx.zeros((1, 1 << 16, 64))
    mx.eval(held)
    entry = ArraysCache(2)
    entry[0] = held[:, -3:, :]
    mx.eval(entry[0])
    mx.clear_cache()
    before = mx.get_active_memory()
    snapshot = take_snapshot([entry], 5)
    del held
    entry.cache = [None, None]
    mx.clear_cache()
    assert before - mx.get_active_memory() > 15 << 20
    restore([entry], snapshot)
    assert entry[0].shape == (1, 3, 64)


@given(st.integers(0, 9000), st.integers(0, 9000), st.integers(0, 9000), st.none() | st.integers(0, 9000))
def test_shared_prefixes_are_those_of_a_plain_comparison(
    one: int, other: int, differs: int, limit: int | None
) -> None:
    """Ids are compared in blocks."""
    first, second = list(range(1000, 1000 + one)), list(range(1000, 1000 + other))
    if differs < other:
        second[differs] = 0
    held = min(one, other)
    limit = None if limit is None else min(limit, held)
    expected = min(held if limit is None else limit, differs)
    assert shared_prefix(first, second, limit) == expected
