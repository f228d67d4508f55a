"""The prefix cache: what was read once is found again, nobody loses much to anybody, and a budget holds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mlx_lm.models.cache import make_prompt_cache

from core.kv.cached_sequence import CachedSequence
from core.kv.prefix_cache import PrefixCache
from core.prefill.deferred import read_rest
from core.prefill.read import read_prompt
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.prefill.gaps import (
    difference,
    logits,
    masked_forward,
    prompt_of,
    read,
    sequence_of,
    some_positions,
)

ROLLING = [name for name in ARCHITECTURES if name != "llama4"]
FORGETTING = [n for n in ROLLING if set(ARCHITECTURES[n].caches) != {"KVCache"}]


def cache_of(model: Any) -> PrefixCache:
    return PrefixCache(lambda: make_prompt_cache(model))


def go_on(
    model: Any, cache: PrefixCache, prompt: list[int], marks: tuple[int, ...] = ()
) -> tuple[CachedSequence, int]:
    sequence = cache.take(prompt)
    reused = sequence.reuse(prompt)
    for _ in read_prompt(model, sequence, prompt, chunk_tokens=32, marks=marks):
        pass
    return sequence, reused


def test_two_chats_keep_theirs_and_share_the_beginning() -> None:
    model, rng = tiny("llama"), random.Random(0)
    cache, system = cache_of(model), prompt_of(rng, 40)
    one, two = system + prompt_of(rng, 90), system + prompt_of(rng, 90)
    go_on(model, cache, one)
    sequence, reused = go_on(model, cache, two)
    assert (reused, len(cache)) == (40, 2)
    wanted = masked_forward(model, two, [])[-1:]
    assert difference(logits(model, sequence, two[-1:]), wanted) < 1e-5
    sequence, reused = go_on(model, cache, [*one, 5])
    assert (reused, len(cache)) == (len(one) - 1, 2)
    wanted = masked_forward(model, [*one, 5], [])[-1:]
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
    assert difference(got, masked_forward(model, follow, dropped)[len(prompt) - 1 :]) < 1e-4
    whole = cache.take(follow, whole=True)
    assert whole.reuse(follow, whole=True) == dropped[0]
    assert whole.skipped == 0


@pytest.mark.parametrize("name", FORGETTING)
def test_caches_that_forget_go_back_to_marks(name: str) -> None:
    """Another chat goes on from the system prompt, and the first one is still there."""
    model, rng = tiny(name), random.Random(name)
    cache, system = cache_of(model), prompt_of(rng, 40)
    one, two = system + prompt_of(rng, 90), system + prompt_of(rng, 50)
    first, _ = go_on(model, cache, one, marks=(40, len(one) - 1))
    logits(model, first, prompt_of(rng, 30))  # an answer
    sequence, reused = go_on(model, cache, two)
    assert reused == 40
    fresh = read(model, sequence_of(model), two)
    assert difference(logits(model, sequence, two[-1:]), logits(model, fresh, two[-1:])) < 1e-4
    again, reused = go_on(model, cache, one)
    assert reused == len(one) - 1
    fresh = read(model, sequence_of(model), one)
    assert difference(logits(model, again, one[-1:]), logits(model, fresh, one[-1:])) < 1e-4


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "qwen3_5"])
def test_the_rest_is_read_beside_and_takes_the_place(name: str) -> None:
    model, rng = tiny(name), random.Random(name)
    cache, prompt, kept = cache_of(model), prompt_of(rng), some_positions(rng)
    sparse = read(model, cache.take(prompt), prompt, kept)
    rest = read_rest(model, cache, sparse, chunk_tokens=50)
    next(rest)
    next(rest)
    assert cache.current is sparse
    for _ in rest:
        pass
    twin = cache.current
    assert twin is not sparse
    assert (twin.skipped, twin.tokens) == (0, sparse.tokens)
    dense = read(model, sequence_of(model), prompt)
    assert difference(logits(model, twin, prompt[-1:]), logits(model, dense, prompt[-1:])) < 1e-4
