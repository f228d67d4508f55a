"""Quantised caches: which entries, and who may reuse them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.cache import QuantizedKVCache, make_prompt_cache

from core.kv.cached_sequence import CachedSequence, PrefixCache
from core.kv.mlx_lm_caches import KvQuantisation, leaves, quantisable
from core.prefill.read import read_kept, read_prompt
from tests.core.architectures import ARCHITECTURES, FULL, wide
from tests.core.prefill.gaps import difference, logits, prompt_of, some_positions
from tests.thinned import thinned

REFUSED = {"gpt_oss": "attention sinks", "deepseek_v3": "does not support quantised keys"}
# Entries that are trimmed, windows, and recurrent states.
THREE = ("llama", "gemma3_text", "qwen3_5")


@cache
def model_of(name: str) -> Any:
    return wide(name)


@cache
def groups_of(name: str) -> tuple[int, ...]:
    return quantisable(model_of(name), lambda: make_prompt_cache(model_of(name))).groups


def kv_of(name: str, bits: int) -> KvQuantisation | None:
    return KvQuantisation(bits, groups_of(name)) if bits else None


def sequence_of(name: str, kv: KvQuantisation | None) -> CachedSequence:
    return CachedSequence(lambda: make_prompt_cache(model_of(name)), kv)


def read(name: str, sequence: CachedSequence, prompt: list[int], chunk: int, snapshots: Any = ()) -> None:
    for _ in read_prompt(model_of(name), sequence, prompt, chunk_tokens=chunk, snapshots=snapshots):
        pass


def last(name: str, sequence: CachedSequence, prompt: list[int]) -> mx.array:
    """Logits of the prompt's last token, which `sequence` then holds."""
    return logits(model_of(name), sequence, prompt[-1:])


def rounded_otherwise(one: CachedSequence, other: CachedSequence) -> bool:
    """Whether the first codes that differ are one or two, by one step each, with equal scales.

    Chunks of other sizes change the last bits of a key, and then its code may be rounded the other way; later
    layers differ by more.
    """
    for entry, twin in zip(leaves(one.cache), leaves(other.cache)):
        if not isinstance(entry, QuantizedKVCache):
            continue
        offset = min(entry.offset, twin.offset)
        for part, copy in ((entry.keys, twin.keys), (entry.values, twin.values)):
            (codes, scales), (others, twins) = (
                [a[..., :offset, :] for a in each[:2]] for each in (part, copy)
            )
            shifts = mx.arange(0, 32, entry.bits, dtype=mx.uint32)
            found, expected = ((each[..., None] >> shifts) & (2**entry.bits - 1) for each in (codes, others))
            steps = mx.abs(found.astype(mx.int32) - expected.astype(mx.int32))
            if steps.sum().item():
                same = mx.allclose(scales, twins, rtol=0, atol=1e-5).item()
                return bool(same and steps.max().item() == 1 and steps.sum().item() <= 2)
    return False


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_full_attention_is_quantised_and_nothing_else(name: str) -> None:
    found = quantisable(model_of(name), lambda: make_prompt_cache(model_of(name)))
    if name in REFUSED:
        assert REFUSED[name] in found.why_not
        return
    kinds = ARCHITECTURES[name].caches
    assert found.groups == tuple(32 * (kind == FULL) for kind in kinds)
    sequence = sequence_of(name, kv_of(name, 8))
    held = [isinstance(entry, QuantizedKVCache) for entry in leaves(sequence.cache)]
    assert held == [kind == FULL for kind in kinds]


def test_a_model_that_answers_otherwise_with_quantised_keys_keeps_them_whole() -> None:
    inner = model_of("llama")

    def model(inputs: mx.array, cache: Any) -> mx.array:
        found: mx.array = inner(inputs, cache=cache)
        return -found if any(isinstance(entry, QuantizedKVCache) for entry in cache) else found

    wrong: Any = model
    found = quantisable(wrong, lambda: make_prompt_cache(inner))
    assert (found.groups, found.why_not) == ((), "its answers with quantised keys are wrong")


@pytest.mark.sweep
@pytest.mark.parametrize("name", thinned([n for n in ARCHITECTURES if n not in REFUSED], keep=THREE))
@pytest.mark.parametrize("seed", thinned(range(8), keep=[0]))
def test_chunks_turns_and_changed_settings_give_what_a_cold_start_gives(name: str, seed: int) -> None:
    """Chats that share beginnings, each turn with some quantisation and chunk size."""
    rng = random.Random(f"{name} {seed}")
    every = [kv_of(name, bits) for bits in (0, 4, 8)]
    prefixes, texts = PrefixCache(lambda: make_prompt_cache(model_of(name))), [prompt_of(rng, 150)]
    kinds, reused = set(), 0
    kv = rng.choice(every)
    for turn in range(10):
        kv = every[turn % 3] if turn % 2 else kv
        text = rng.choice(texts)
        prompt = [*text[: rng.randrange(20, len(text))], *prompt_of(rng, rng.randrange(2, 60))]
        texts.append(prompt)
        sequence = prefixes.take(prompt, kv=kv)
        reused += sequence.reuse(prompt)
        snapshots = sorted(rng.sample(range(1, len(prompt)), 3))
        read(name, sequence, prompt, rng.choice((17, 33, 512)), snapshots)
        cold = sequence_of(name, kv)
        read(name, cold, prompt, 64)
        # With 4 bits a wrong precision of one column differs by a hundredth and more.
        equal = difference(last(name, sequence, prompt), last(name, cold, prompt)) < 1e-3
        assert equal or rounded_otherwise(sequence, cold)
        assert sequence.kv == cold.kv
        assert [type(entry) for entry in sequence.cache] == [type(entry) for entry in cold.cache]
        kinds.add(sequence.kv)
    assert len(kinds) > 1
    assert reused > 0


@pytest.mark.parametrize("name", THREE)
def test_sparse_reading_in_other_chunks_gives_the_same(name: str) -> None:
    rng = random.Random(name)
    prompt, kept, kv = prompt_of(rng), some_positions(rng), kv_of(name, 4)
    found = []
    for chunk in (16, 512):
        sequence = sequence_of(name, kv)
        for _ in read_kept(model_of(name), sequence, prompt, kept, chunk_tokens=chunk):
            pass
        found.append(last(name, sequence, prompt))
        assert sequence.skipped > 0
    assert difference(*found) < 1e-3
    assert sequence.fork(sequence.shared(prompt, whole=True)).kv == kv


def test_eight_and_four_bits_take_less_memory() -> None:
    sizes = {}
    for bits in (0, 8, 4):
        sequence = sequence_of("llama", kv_of("llama", bits))
        read("llama", sequence, prompt_of(random.Random(0), 256), 256)
        sizes[bits] = sequence.nbytes
    # float32 with groups of 32: codes, and two float32 for each group.
    assert sizes[8] / sizes[0] == pytest.approx((8 + 2) / 32)
    assert sizes[4] / sizes[0] == pytest.approx((4 + 2) / 32)
