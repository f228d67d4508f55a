"""Kept tokens are read as if they were the whole text, on every architecture."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from core.kv.mlx_lm_caches import kind_of, leaves
from core.prefill.read import read_kept, read_prompt, timed_steps
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.prefill.gaps import (
    CHUNK_TOKENS,
    PROMPT_TOKENS,
    arrays,
    difference,
    kept_forward,
    logits,
    prompt_of,
    read,
    sequence_of,
    some_positions,
)

TOLERANCE = 1e-4
# MLX's CPU build has no expert layers in 16 bits.
EXPERTS = {"llama4", "qwen3_moe", "gpt_oss", "nemotron_h", "granitemoehybrid", "deepseek_v3"}
EVERYTHING = [
    (n, d) for n in ARCHITECTURES for d in (mx.float32, mx.bfloat16) if d == mx.float32 or n not in EXPERTS
]


@cache
def model_of(name: str) -> Any:
    return tiny(name)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "dtype"), EVERYTHING, ids=str)
def test_keeping_everything_is_the_dense_reading_bit_for_bit(name: str, dtype: mx.Dtype) -> None:
    model = model_of(name) if dtype == mx.float32 else tiny(name)
    model.set_dtype(dtype)
    prompt = prompt_of(random.Random(name))
    dense = read(model, sequence_of(model), prompt)
    every = np.arange(PROMPT_TOKENS - 1, dtype=np.int32)
    sparse = read(model, sequence_of(model), prompt, every)
    assert sparse.skipped == 0
    assert sparse.tokens == dense.tokens == prompt[:-1]
    for got, wanted in zip(arrays(sparse.cache), arrays(dense.cache), strict=True):
        assert got.dtype == wanted.dtype
        assert mx.array_equal(got, wanted)
    got, wanted = (logits(model, sequence, prompt[-1:]) for sequence in (sparse, dense))
    assert got.dtype == wanted.dtype
    assert mx.array_equal(got, wanted)


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in EXPERTS])
def test_skipping_leaves_the_dtype_as_it_is(name: str) -> None:
    model, rng = tiny(name), random.Random(name)
    model.set_dtype(mx.bfloat16)
    prompt = prompt_of(rng)
    dense = read(model, sequence_of(model), prompt)
    sparse = read(model, sequence_of(model), prompt, some_positions(rng))
    kinds = [[part.dtype for part in arrays(sequence.cache)] for sequence in (sparse, dense)]
    assert kinds[0] == kinds[1]
    assert logits(model, sparse, prompt[-1:]).dtype == mx.bfloat16


@pytest.mark.sweep
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_skipped_tokens_leave_no_trace_in_two_turns(name: str) -> None:
    """The cache equals that of the kept tokens alone; a reading of everything differs."""
    rng, model = random.Random(name), model_of(name)
    first, second, more = prompt_of(rng, 90), prompt_of(rng, 120), prompt_of(rng, 20)
    both = first + second
    kept_1, kept_2 = some_positions(rng, 90), some_positions(rng, 210, start=90)
    sequence = read(model, sequence_of(model), first, kept_1)
    logits(model, sequence, first[-1:])
    read(model, sequence, both, kept_2)
    read_positions = {*kept_1.tolist(), 89, *kept_2.tolist()}
    dropped = sorted(set(range(209)) - read_positions)
    assert sequence.tokens == both[:-1]
    assert sequence.skipped == len(dropped) > 209 / 3
    full = [entry for entry in leaves(sequence.cache) if kind_of(entry) == "appending"]
    assert full
    assert all(entry.offset == len(read_positions) for entry in full)
    tail = [both[-1], *more]
    got = logits(model, sequence, tail)
    assert difference(got, kept_forward(model, both + more, dropped)[-len(tail) :]) < TOLERANCE
    everything = kept_forward(model, both + more, [])[-len(tail) :]
    assert difference(got, everything) > 100 * TOLERANCE


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "qwen3_5"])
def test_a_forward_that_fails_leaves_a_whole_prefix(name: str) -> None:
    model, prompt = model_of(name), prompt_of(random.Random(0))
    calls = 0

    def failing(ids: mx.array, cache: Any) -> mx.array:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("in the middle")
        out: mx.array = model(ids, cache=cache)
        return out

    sequence, kept = sequence_of(model), some_positions(random.Random(0))
    with pytest.raises(RuntimeError, match="in the middle"):
        list(read_kept(failing, sequence, prompt, kept, chunk_tokens=24))
    assert sequence.tokens == prompt[: int(kept[23]) + 1]
    assert sequence.columns.places(0, sequence.columns.count).tolist() == kept[:24].tolist()
    again = read(model, sequence, prompt, kept[24:])
    wanted = read(model, sequence_of(model), prompt, kept)
    assert difference(logits(model, again, prompt[-1:]), logits(model, wanted, prompt[-1:])) < TOLERANCE


LAYERED = ["gemma3_text", "mistral", "gpt_oss"]  # with three layers


def slow_clock() -> Callable[[], float]:
    """A second later at each call, so that each layer of a chunk takes one."""
    times = count(0.0)
    return lambda: next(times)


@pytest.mark.parametrize("name", LAYERED)
def test_progress_within_a_chunk_changes_nothing_of_what_is_read(name: str) -> None:
    model, prompt = model_of(name), prompt_of(random.Random(0))
    wanted, sequence = read(model, sequence_of(model), prompt), sequence_of(model)
    steps = list(read_prompt(model, sequence, prompt, chunk_tokens=CHUNK_TOKENS, clock=slow_clock()))
    read_tokens = [step.done_tokens + step.part_tokens for step in steps]
    assert read_tokens == sorted(set(read_tokens))
    assert sum(step.part_tokens > 0 for step in steps) >= PROMPT_TOKENS // CHUNK_TOKENS
    assert sequence.tokens == wanted.tokens
    for got, expected in zip(arrays(sequence.cache), arrays(wanted.cache), strict=True):
        assert mx.array_equal(got, expected)


@pytest.mark.parametrize("name", LAYERED)
def test_a_chunk_that_was_begun_is_read_to_its_end(name: str) -> None:
    """As when an answer is stopped: what the cache says is in it."""
    model, prompt = model_of(name), prompt_of(random.Random(1))
    sequence = sequence_of(model)
    steps = read_prompt(model, sequence, prompt, chunk_tokens=CHUNK_TOKENS, clock=slow_clock())
    timed = timed_steps(steps, None, slow_clock())
    assert next(step for step in timed if step.part_tokens and step.done_tokens == CHUNK_TOKENS)
    timed.close()
    assert sequence.tokens == prompt[: 2 * CHUNK_TOKENS]
    again = read(model, sequence, prompt)
    wanted = read(model, sequence_of(model), prompt)
    assert mx.array_equal(logits(model, again, prompt[-1:]), logits(model, wanted, prompt[-1:]))
