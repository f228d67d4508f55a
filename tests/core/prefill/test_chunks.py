"""Chunks of a reading: they divide what is read, end where they must, and hand on what was computed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.cache import make_prompt_cache

from core.decoding.answer import ImageRows
from core.events import FIRST_IMAGE_ROW
from core.kv.cached_sequence import CachedSequence
from core.models.parts import split
from core.prefill.read import ReadProgress, _chunks, _undivided, read_kept, read_prompt, timed_steps
from core.prefill.reading import Unmeasured
from core.vision.sight import Sight
from tests.core.architectures import tiny
from tests.core.prefill.gaps import CHUNK_TOKENS, PROMPT_TOKENS, prompt_of, sequence_of, some_positions


@settings(max_examples=60)
@given(
    st.sets(st.integers(0, 120), min_size=1, max_size=90),
    st.integers(2, 40),
    st.lists(st.integers(0, 130), max_size=5).map(sorted),
)
def test_chunks_divide_what_is_kept(places: set[int], size: int, ends: list[int]) -> None:
    kept = np.array(sorted(places), np.int32)
    chunks = _chunks(kept, size, ends)
    assert np.concatenate(chunks).tolist() == kept.tolist()
    lengths = [len(chunk) for chunk in chunks]
    assert max(lengths) <= size + 1
    assert len(kept) == 1 or min(lengths) > 1  # a window handles a single token in another way
    # A chunk ends before each wanted end, unless one of a single token would.
    borders = np.cumsum([0, *lengths]).tolist()
    before = 0
    for end in ends:
        at = int(np.searchsorted(kept, end))
        if at - before > 1 and len(kept) - at > 1:
            assert at in borders
        before = at
    # And nowhere else before it is full.
    wanted = {int(np.searchsorted(kept, end)) for end in ends} | {len(kept)}
    for border, length in zip(borders[1:], lengths):
        assert border in wanted or length == size or len(kept) - border < 2
    if not ends:
        assert len(chunks) <= -(-len(kept) // size)


class WholeImages:
    """The rule for models whose passes must not divide an image."""

    whole = True
    end = Sight.end


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(2, 12),
    st.integers(0, 2**31),
)
def test_images_that_are_read_whole_are_in_one_chunk(
    parts: list[tuple[bool, int]], size: int, seed: int
) -> None:
    rng, prompt, kept = random.Random(seed), list[int](), list[int]()
    for is_image, length in parts:
        for at in range(length):
            if is_image or rng.random() < 0.6:
                kept.append(len(prompt))
            prompt.append(FIRST_IMAGE_ROW + at if is_image else 7)
    prompt.append(7)
    positions, images = np.array(kept, np.int32), cast("ImageRows", WholeImages())
    if not kept:
        return
    chunks = _undivided(_chunks(positions, size), prompt, images)
    assert np.concatenate(chunks).tolist() == kept
    assert all(len(chunk) for chunk in chunks)
    for other in chunks[1:]:
        assert prompt[int(other[0])] < FIRST_IMAGE_ROW or prompt[int(other[0]) - 1] < FIRST_IMAGE_ROW
    if all(token < FIRST_IMAGE_ROW for token in prompt):
        assert [len(chunk) for chunk in chunks] == [len(chunk) for chunk in _chunks(positions, size)]


@pytest.mark.parametrize("name", ["qwen3_5", "gemma3_text"])
def test_a_chunk_ends_where_a_snapshot_is_wanted(name: str) -> None:
    model, prompt = tiny(name), prompt_of(random.Random(name))
    wanted = [30, 31, 100, PROMPT_TOKENS - 1]
    sequence = sequence_of(model)
    steps = list(read_prompt(model, sequence, prompt, chunk_tokens=CHUNK_TOKENS, snapshots=wanted))
    assert [each.length for each in sequence.snapshots] == wanted
    done = [step.done_tokens for step in steps]
    assert {*wanted} <= {*done}
    assert max(np.diff(done)) == CHUNK_TOKENS
    assert {step.total_tokens for step in steps} == {PROMPT_TOKENS - 1}
    # Also where the sequence is when the reading begins.
    begun = sequence_of(model)
    for _ in read_prompt(model, begun, prompt[:31], chunk_tokens=CHUNK_TOKENS):
        pass
    assert begun.snapshots == ()
    for _ in read_prompt(model, begun, prompt, chunk_tokens=CHUNK_TOKENS, snapshots=wanted):
        pass
    assert [each.length for each in begun.snapshots] == [30, 31, 100, PROMPT_TOKENS - 1]
    # Of kept positions, at those lengths that follow one of them.
    kept = some_positions(random.Random(name))
    sparse = sequence_of(model)
    lengths = [40, PROMPT_TOKENS - 1]
    for _ in read_kept(model, sparse, prompt, kept, chunk_tokens=CHUNK_TOKENS, snapshots=lengths):
        pass
    follows = [length for length in lengths if length - 1 in kept.tolist()]
    assert [each.length for each in sparse.snapshots] == follows


class Received:
    """Keeps the hidden states that a reading hands on."""

    def __init__(self, model: Any) -> None:
        self._parts = split(model)
        self.begun: list[tuple[int, int]] = []
        self.states: dict[int, tuple[int, mx.array]] = {}

    def begin(self, sequence: CachedSequence, prompt: Sequence[int]) -> None:
        self.begun.append((len(sequence.tokens), len(prompt)))

    def read(self, ids: mx.array, cache: Any) -> tuple[mx.array, mx.array]:
        assert self._parts is not None
        logits, states = self._parts.read(ids, cache)
        return logits, states[0]

    def receive(self, positions: Sequence[int], ids: Sequence[int], states: mx.array) -> None:
        assert len(positions) == len(ids) == len(states)
        for position, token, state in zip(positions, ids, states):
            self.states[position] = token, state


@pytest.mark.parametrize("sparse", [False, True])
def test_hidden_states_are_handed_on_with_their_positions(sparse: bool) -> None:
    model: Any = tiny("llama")
    prompt, rng = prompt_of(random.Random(2)), random.Random(3)
    kept = some_positions(rng) if sparse else np.arange(PROMPT_TOKENS - 1, dtype=np.int32)
    received, sequence = Received(model), sequence_of(model)
    given: dict[str, Any] = {"chunk_tokens": CHUNK_TOKENS, "states": received}
    if sparse:
        steps = read_kept(model, sequence, prompt, kept, **given)
    else:
        steps = read_prompt(model, sequence, prompt, **given)
    done = [step.done_tokens for step in steps]
    assert done[0] == 0
    assert done[-1] == len(kept) == sequence.columns.count
    assert received.begun == [(0, PROMPT_TOKENS)]
    assert sorted(received.states) == kept.tolist()
    assert all(received.states[at][0] == prompt[at] for at in kept.tolist())
    parts = split(model)
    assert parts is not None
    ids = mx.array([prompt[at] for at in kept.tolist()])[None]
    _, states = parts.read(ids, make_prompt_cache(model))
    got = mx.stack([received.states[at][1] for at in kept.tolist()])
    assert mx.allclose(got, states[0], atol=1e-4)


class Timing(Unmeasured):
    """Keeps the times of chunks."""

    def __init__(self) -> None:
        self.times: list[tuple[int, int, float]] = []

    def timed(self, tokens: int, context_tokens: int, seconds: float) -> None:
        self.times.append((tokens, context_tokens, seconds))


def test_chunks_are_timed_without_the_time_of_who_gets_the_steps() -> None:
    """A chunk's time is that of its parts; what is done between the steps does not count."""
    now = 0.0

    def steps() -> Any:
        nonlocal now
        now += 0.25  # to begin
        yield ReadProgress(10, 100)
        now += 1.0
        yield ReadProgress(10, 100, 8.0)
        now += 2.0
        yield ReadProgress(40, 100)
        yield ReadProgress(40, 100)  # nothing was read
        now += 4.0
        yield ReadProgress(100, 100)

    def clock() -> float:
        return now

    pace = Timing()
    for _ in timed_steps(steps(), pace, clock):
        now += 100.0
    assert pace.times == [(30, 10, 3.0), (60, 40, 4.0)]
    assert len(list(timed_steps(steps(), pace, None))) == 5
    assert len(list(timed_steps(steps(), None, clock))) == 5
    assert len(pace.times) == 2
