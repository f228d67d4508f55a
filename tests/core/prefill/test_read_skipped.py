"""Inserting what was skipped, on every architecture that can, against dense forwards with masks."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

from core.kv.cached_sequence import CachedSequence
from core.models.rope import rotations
from core.prefill.gap_probe import why_no_insertion
from core.prefill.read import Positions, read_skipped
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.prefill.gaps import (
    PASSAGE_TOKENS,
    PROMPT_TOKENS,
    arrays,
    difference,
    logits,
    masked_forward,
    prompt_of,
    read,
    sequence_of,
    some_positions,
)

REFUSED = {"ministral3", "llama4"}
FORGETTING = {"ArraysCache", "RotatingKVCache"}
INSERTING = [
    name for name, spec in ARCHITECTURES.items() if name not in REFUSED and not FORGETTING & set(spec.caches)
]
TOLERANCE = 1e-5


@cache
def model_of(name: str) -> Any:
    return tiny(name)


def insert(model: Any, sequence: CachedSequence, positions: Positions, chunk_tokens: int = 24) -> None:
    for _ in read_skipped(model, sequence, positions, rotations(model), chunk_tokens=chunk_tokens):
        pass


def skipped_passages(rng: random.Random, sequence: CachedSequence, share: float) -> Positions:
    held = set(sequence.columns.places(0, sequence.columns.count).tolist())
    left = [p for p in range(len(sequence.tokens)) if p not in held]
    passages = sorted({p // PASSAGE_TOKENS for p in left})
    chosen = set(rng.sample(passages, math.ceil(share * len(passages))))
    return np.array([p for p in left if p // PASSAGE_TOKENS in chosen], dtype=np.int32)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_trial_knows_which_models_can(name: str) -> None:
    model = model_of(name)
    why_not = why_no_insertion(model, lambda: make_prompt_cache(model), PROMPT_TOKENS)
    assert bool(why_not) == (name not in INSERTING), why_not


@pytest.mark.parametrize("name", INSERTING)
def test_inserting_equals_a_full_forward_masked_by_turn(name: str) -> None:
    """Three turns: read with gaps, insert and go on, insert again and go on."""
    rng, model = random.Random(name), model_of(name)
    prompt = prompt_of(rng)
    following = [prompt_of(rng, 20), prompt_of(rng, 20), prompt_of(rng, 20)]
    sequence = read(model, sequence_of(model), prompt, some_positions(rng))
    turns = np.full(PROMPT_TOKENS - 1, -1)
    turns[sequence.columns.places(0, sequence.columns.count)] = 0
    tokens, got = prompt[:-1], []
    for turn, more in enumerate(following):
        if turn:
            positions = skipped_passages(rng, sequence, 0.25)
            assert len(positions) >= PASSAGE_TOKENS
            # They stand where later turns have been read already.
            assert positions[0] < sequence.columns.places(0, sequence.columns.count)[-40]
            insert(model, sequence, positions)
            turns[positions] = turn
        got.append(logits(model, sequence, more))
        tokens, turns = tokens + more, np.append(turns, np.full(len(more), turn))
    dropped = np.flatnonzero(turns < 0)
    assert sequence.tokens == tokens
    assert sequence.skipped == len(dropped) > 0
    wanted = masked_forward(model, tokens, dropped.tolist(), turns.tolist())[PROMPT_TOKENS - 1 :]
    assert difference(mx.concatenate(got), wanted) < TOLERANCE


@pytest.mark.parametrize("name", INSERTING)
def test_one_token_can_be_inserted_and_all_that_are_left(name: str) -> None:
    rng, model = random.Random(name), model_of(name)
    prompt = prompt_of(rng, 90)
    left = [1, *range(20, 45)]
    sequence = read(
        model, sequence_of(model), prompt, np.array([p for p in range(89) if p not in left], np.int32)
    )
    for positions in ([1], left[1:]):
        insert(model, sequence, np.array(positions, np.int32), 10)
    assert sequence.skipped == 0
    turns = np.zeros(90, np.int32)
    turns[1], turns[left[1:]], turns[89] = 1, 2, 2
    got = logits(model, sequence, prompt[-1:])
    assert difference(got, masked_forward(model, prompt, [], turns.tolist())[-1:]) < TOLERANCE
    # Not a dense reading, so nobody who wants one is served beyond the first token that was skipped.
    assert sequence.shared([*prompt, 1], whole=True) == 1


@pytest.mark.parametrize("name", ["llama", "deepseek_v3"])
def test_going_back_into_what_was_inserted_gives_what_the_mask_says(name: str) -> None:
    rng, model = random.Random(name), model_of(name)
    prompt, more = prompt_of(rng), prompt_of(rng, 9)
    sequence = read(model, sequence_of(model), prompt, some_positions(rng))
    turns = np.full(PROMPT_TOKENS - 1, -1)
    turns[sequence.columns.places(0, sequence.columns.count)] = 0
    positions = skipped_passages(rng, sequence, 0.1)
    insert(model, sequence, positions)
    turns[positions] = 1
    cut = int(positions[len(positions) // 2]) + 1
    forked = sequence.fork(cut)
    sequence.truncate(cut)
    turns = np.append(turns[:cut], np.ones(len(more), np.int32))
    tokens = prompt[:cut] + more
    dropped = np.flatnonzero(turns < 0).tolist()
    wanted = masked_forward(model, tokens, dropped, turns.tolist())[cut:]
    for each in (sequence, forked):
        assert difference(logits(model, each, more), wanted) < TOLERANCE


def test_a_forward_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, model = random.Random(0), model_of("llama")
    prompt = prompt_of(rng)
    sequence = read(model, sequence_of(model), prompt, some_positions(rng))
    before = [mx.array(part) for part in arrays(sequence.cache)]
    positions = skipped_passages(rng, sequence, 0.1)

    def broken(*_: object) -> Any:
        raise RuntimeError("in the middle")

    second = sequence.cache[1]
    monkeypatch.setattr(second.entry, "update_and_fetch", broken)
    with pytest.raises(RuntimeError, match="in the middle"):
        insert(model, sequence, positions)
    assert [entry.offset for entry in sequence.cache] == [second.offset] * len(sequence.cache)
    after = arrays(sequence.cache)
    assert all(mx.array_equal(a[..., : b.shape[-2], :], b) for a, b in zip(after, before, strict=True))
