"""Hidden states of read tokens: whatever is drafted, they are those of one pass over the text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import make_prompt_cache

from core.decoding.loop import DecodeLoop
from core.drafting.draft import Drafter
from core.drafting.registry import DRAFTERS
from core.kv.cached_sequence import CachedSequence
from core.models.parts import SplitModel, split
from core.prefill.read import read_prompt
from tests.core.architectures import ARCHITECTURES, VOCABULARY, tiny
from tests.core.decoding.test_loop import Oracle, plain, prompt_with_repetition
from tests.core.drafters import answer_of, build
from tests.core.toy import toy_sequence

TOKENS = 60


class Received:
    def __init__(self, parts: SplitModel) -> None:
        self._parts = parts
        self.states: dict[int, tuple[int, mx.array]] = {}

    def read(self, ids: mx.array, cache: Any) -> tuple[mx.array, mx.array]:
        logits, states = self._parts.read(ids, cache)
        return logits, states[0]

    def begin(self, sequence: CachedSequence, prompt: Sequence[int]) -> None:
        self.states.clear()

    def receive(self, positions: Sequence[int], ids: Sequence[int], states: mx.array) -> None:
        assert len(positions) == len(ids) == len(states)
        assert not self.states or positions[0] <= max(self.states) + 1
        for position, token, state in zip(positions, ids, states):
            self.states[position] = token, state


def _architectures() -> list[Any]:
    few = ("llama", "qwen3_5", "gemma3_text", "deepseek_v3")
    return [
        name if name in few else pytest.param(name, marks=pytest.mark.sweep)
        for name in ARCHITECTURES
        # Nothing is drafted on the caches of one; the body of the other has another name.
        if name not in ("llama4", "nemotron_h")
    ]


@pytest.mark.parametrize("drafts", ["pipelined", "chains", "trees"])
@pytest.mark.parametrize("architecture", _architectures())
def test_the_states_are_those_of_the_text(architecture: str, drafts: str) -> None:
    model: Any = tiny(architecture)
    parts = split(model)
    assert isinstance(parts, SplitModel), parts
    prompt = prompt_with_repetition(random.Random(architecture))
    expected = plain(model, prompt, TOKENS)
    drafter: Any = Drafter()
    if drafts == "chains":
        drafter = Oracle(expected, 0.2, random.Random(0))
    elif drafts == "trees":
        drafter = build(DRAFTERS["cacheback"], trees=ARCHITECTURES[architecture].trees)
    received: Any = Received(parts)
    sequence = toy_sequence(model)
    for _ in read_prompt(model, sequence, prompt, chunk_tokens=32, states=received):
        pass
    name = "off" if drafts == "pipelined" else "ngram-simple"
    answer = answer_of(model, prompt, drafter, drafts=name, vocabulary=VOCABULARY, sequence=sequence)
    answer.head = received
    got = [token for step in DecodeLoop(answer).steps(TOKENS) for token in step.tokens]
    assert got == expected
    text = [*prompt, *expected]
    assert sorted(received.states) == list(range(max(received.states) + 1))
    assert max(received.states) >= len(text) - 2
    whole = parts.read(mx.array([text]), make_prompt_cache(model))[1][0]
    for position, (token, state) in received.states.items():
        assert token == text[position]
        assert mx.abs(state - whole[position]).max().item() < 1e-3


class Wrapped(nn.Module):
    """A model that computes with another one's body."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = tiny("llama")
        self.model = self.inner.model
        self.layers = self.inner.layers

    def __call__(self, inputs: mx.array, cache: Any = None) -> mx.array:
        return self.inner(inputs, cache=cache)


def capped() -> Any:
    """A model whose logits are more than an output layer on its body."""
    model: Any = tiny("llama")
    given = type(model)
    call = {"__call__": lambda self, inputs, cache=None: mx.tanh(given.__call__(self, inputs, cache=cache))}
    model.__class__ = type("Capped", (given,), call)
    return model


def test_a_model_that_cannot_be_split_says_why() -> None:
    for model, right in ((tiny("llama"), True), (capped(), False)):
        parts = split(model)
        assert isinstance(parts, SplitModel)
        assert parts.why_no_states() == ""
        assert (parts.why_other_output() == "") == right
    wrapped = split(Wrapped())
    assert isinstance(wrapped, SplitModel)
    assert "cannot be taken" in wrapped.why_no_states()
    for model in (nn.Linear(2, 2), tiny("nemotron_h")):
        assert "no body apart from its output layer" in str(split(model))
