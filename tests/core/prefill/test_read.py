"""Reading with gaps, on every architecture, against stock forwards."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

import core.prefill.read as read_module
from core.errors import InternalError
from core.kv.mlx_lm_caches import kind_of, leaves
from core.kv.positions import Positioned
from core.models.rope import Steps, rotations
from core.prefill.gap_probe import why_no_gaps
from core.prefill.read import read_kept
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.prefill.gaps import (
    PROMPT_TOKENS,
    arrays,
    difference,
    logits,
    masked_forward,
    one_by_one,
    prompt_of,
    read,
    sequence_of,
    some_positions,
)

# They go by a token's place in the chunk, or their cache cannot hold gaps; `auto` and `on` read densely.
REFUSED = {"ministral3", "llama4"}
SPARSE = [name for name in ARCHITECTURES if name not in REFUSED]
ATTENTION = [name for name in SPARSE if "ArraysCache" not in ARCHITECTURES[name].caches]
HYBRIDS = [name for name in SPARSE if name not in ATTENTION]
TOLERANCE = 1e-4
# MLX's CPU build has no expert layers in 16 bits.
EXPERTS = {"qwen3_moe", "gpt_oss", "nemotron_h", "granitemoehybrid", "deepseek_v3"}
EVERYTHING = [
    (n, d) for n in SPARSE for d in (mx.float32, mx.bfloat16) if d == mx.float32 or n not in EXPERTS
]


@cache
def model_of(name: str) -> Any:
    return tiny(name)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_trial_knows_which_models_can(name: str) -> None:
    model = model_of(name)
    why_not = why_no_gaps(model, lambda: make_prompt_cache(model), PROMPT_TOKENS)
    assert bool(why_not) == (name in REFUSED), why_not


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


@pytest.mark.parametrize("name", [name for name in SPARSE if name not in EXPERTS])
def test_gaps_leave_the_dtype_as_it_is(name: str) -> None:
    """A rotation made by hand in 32 bits once halved the speed of decoding."""
    model, rng = tiny(name), random.Random(name)
    model.set_dtype(mx.bfloat16)
    prompt = prompt_of(rng)
    dense = read(model, sequence_of(model), prompt)
    sparse = read(model, sequence_of(model), prompt, some_positions(rng))
    kinds = [[part.dtype for part in arrays(sequence.cache)] for sequence in (sparse, dense)]
    assert kinds[0] == kinds[1]
    assert logits(model, sparse, prompt[-1:]).dtype == mx.bfloat16


@pytest.mark.parametrize("name", ATTENTION)
def test_gaps_equal_a_full_forward_with_the_dropped_positions_masked_out(name: str) -> None:
    """The turn after it too, and the one after that; renumbered positions must be seen to differ."""
    rng, model = random.Random(name), model_of(name)
    prompt, more = prompt_of(rng), prompt_of(rng, 60)
    kept = some_positions(rng)
    dropped = sorted(set(range(PROMPT_TOKENS - 1)) - set(kept.tolist()))
    assert len(dropped) > PROMPT_TOKENS / 3
    wanted = masked_forward(model, prompt + more, dropped)[PROMPT_TOKENS - 1 :]

    sequence = read(model, sequence_of(model), prompt, kept)
    assert sequence.tokens == prompt[:-1]
    assert sequence.skipped == len(dropped)
    got = logits(model, sequence, [prompt[-1], *more])
    assert difference(got, wanted) < TOLERANCE

    renumbered = sequence_of(model)
    short = [prompt[p] for p in kept]
    read(model, renumbered, [*short, prompt[-1]])
    assert difference(logits(model, renumbered, [prompt[-1], *more]), wanted) > 100 * TOLERANCE


@pytest.mark.parametrize("name", ATTENTION)
def test_a_second_sparse_turn_appends_at_true_positions(name: str) -> None:
    rng, model = random.Random(name), model_of(name)
    first, second = prompt_of(rng, 90), prompt_of(rng, 120)
    both = first + second
    kept_1 = some_positions(rng, 90)
    kept_2 = some_positions(rng, 210, start=90)
    sequence = read(model, sequence_of(model), first, kept_1)
    logits(model, sequence, first[-1:])
    read(model, sequence, both, kept_2)
    dropped = set(range(209)) - set(kept_1.tolist()) - set(kept_2.tolist()) - {89}
    got = logits(model, sequence, both[-1:])
    assert difference(got, masked_forward(model, both, sorted(dropped))[-1:]) < TOLERANCE


@pytest.mark.parametrize("name", [n for n in SPARSE if "RotatingKVCache" not in ARCHITECTURES[n].caches])
def test_gaps_equal_the_kept_tokens_alone_at_their_positions(name: str) -> None:
    """Recurrent layers advance on kept tokens only; nothing of the read's own hooks is in the reference."""
    rng, model = random.Random(name), model_of(name)
    prompt, kept = prompt_of(rng), some_positions(rng)
    alone = one_by_one(model, prompt, kept)
    sequence = read(model, sequence_of(model), prompt, kept)
    for got, wanted in zip(arrays(sequence.cache), arrays(alone.cache), strict=True):
        assert difference(got, wanted) < TOLERANCE
    assert difference(logits(model, sequence, prompt[-1:]), logits(model, alone, prompt[-1:])) < TOLERANCE


@pytest.mark.parametrize("name", SPARSE)
def test_the_sparse_path_really_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rotary module turns every chunk; positions are those of the tokens."""
    passes: list[Steps] = []

    class Noted(Steps):
        def __init__(self, steps: Any) -> None:
            super().__init__(steps)
            passes.append(self)

    monkeypatch.setattr(read_module, "Steps", Noted)
    rng, model = random.Random(name), model_of(name)
    sequence = sequence_of(model)
    read(model, sequence, prompt_of(rng), some_positions(rng))
    found = rotations(model)
    assert passes
    # A layer turns its queries and its keys.
    assert all(each.rotated == 2 * len(found) for each in passes)
    full = [entry for entry in leaves(sequence.cache) if kind_of(entry) == "appending"]
    assert full
    assert all(isinstance(entry, Positioned) and entry.offset == PROMPT_TOKENS - 1 for entry in full)


def test_a_model_that_never_calls_its_rotations_is_not_believed() -> None:
    """Public ports skipped the mapping unnoticed, because an nn.RoPE is falsy."""
    model, prompt = model_of("llama"), prompt_of(random.Random(0))
    stranger = rotations(tiny("llama", 1))
    kept = some_positions(random.Random(0))
    with pytest.raises(InternalError, match="called none"):
        list(read_kept(model, sequence_of(model), prompt, kept, stranger, chunk_tokens=32))


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "qwen3_5"])
def test_the_model_is_left_as_found_also_after_an_error(name: str) -> None:
    model, prompt = model_of(name), prompt_of(random.Random(0))
    before = [(id(r.owner), r.key, id(r.rope)) for r in rotations(model)]
    calls = 0

    def failing(ids: mx.array, cache: Any) -> mx.array:
        nonlocal calls
        calls += 1
        out: mx.array = model(ids, cache=cache)
        if calls == 2:
            raise RuntimeError("in the middle")
        return out

    sequence = sequence_of(model)
    kept = some_positions(random.Random(0))
    with pytest.raises(RuntimeError, match="in the middle"):
        list(read_kept(failing, sequence, prompt, kept, rotations(model), chunk_tokens=24))
    assert [(id(r.owner), r.key, id(r.rope)) for r in rotations(model)] == before
    assert all("make_mask" not in vars(entry) for entry in leaves(sequence.cache))
    if sequence.keeps_all:
        sequence.truncate(0)
        again = read(model, sequence, prompt)
        wanted = read(model, sequence_of(model), prompt)
        assert mx.array_equal(logits(model, again, prompt[-1:]), logits(model, wanted, prompt[-1:]))
