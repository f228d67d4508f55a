"""Answers written side by side are those written one at a time, with the model's own probabilities."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx_lm.generate import generate_step

from core.errors import BrokenLogitsError
from core.models.loader import LoadedModel
from core.rehearsal.rehearsal import TOP, Answered, GreedyAnswers, likeliest

PROMPTS = [[5, 6, 7], [9] * 40, [30, 31], [200, 4, 77, 8, 120], [12], list(range(20, 90)), [3, 3, 3]]


def answered(loaded: LoadedModel, batch: int, chunk_tokens: int = 512) -> dict[int, Answered]:
    answers = GreedyAnswers(loaded, batch=batch, max_tokens=12, chunk_tokens=chunk_tokens)
    for key, prompt in enumerate(PROMPTS):
        answers.queue(key, prompt)
    found = {}
    while answers.busy:
        for one in answers.step():
            found[one.key] = one
    answers.close()
    return found


def plain(loaded: LoadedModel, prompt: list[int]) -> list[int]:
    out: list[int] = []
    for token, _ in generate_step(mx.array(prompt), loaded.model, max_tokens=12):
        out.append(int(token))
        if out[-1] in loaded.eos:
            break
    return out


@pytest.mark.parametrize(("batch", "chunk_tokens"), [(1, 512), (3, 512), (16, 512), (3, 16)])
def test_answers_are_the_plain_ones(toy: LoadedModel, batch: int, chunk_tokens: int) -> None:
    found = answered(toy, batch, chunk_tokens)
    assert sorted(found) == list(range(len(PROMPTS)))
    for key, prompt in enumerate(PROMPTS):
        assert found[key].prompt == prompt
        assert found[key].out == plain(toy, prompt)


def test_probabilities_are_the_models_own(toy: LoadedModel) -> None:
    for one in answered(toy, 4).values():
        logits = toy.model(mx.array([one.prompt + one.out]))[0].astype(mx.float32)
        for i, (ids, shares) in enumerate(zip(one.tops, one.shares)):
            expected = np.array(mx.softmax(logits[len(one.prompt) - 1 + i]))
            assert ids[0] == one.out[i]
            assert len(ids) == TOP
            assert shares == pytest.approx(np.sort(expected)[::-1][:TOP].tolist(), abs=2e-3)


def test_an_answer_ends_at_a_stop_id(toy: LoadedModel) -> None:
    first = answered(toy, 4)[0]
    stopping = LoadedModel(toy.model, toy.tokenizer, toy.info)
    stopping.eos = frozenset({first.out[2]})
    for batch in (1, 4):
        assert answered(stopping, batch)[0].out == first.out[: first.out.index(first.out[2]) + 1]


def test_a_small_vocabulary() -> None:
    assert likeliest(np.log(np.array([0.1, 0.7, 0.2], np.float32))) == ([1, 2, 0], [0.7, 0.2, 0.1])


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_logits_that_are_not_numbers_end_it(toy: LoadedModel, batch: int, value: float) -> None:
    class Broken(nn.Module):
        layers = toy.model.layers

        def __call__(self, ids: mx.array, cache: Any = None) -> mx.array:
            return mx.full_like(toy.model(ids, cache=cache), value)

    with pytest.raises(BrokenLogitsError):
        answered(LoadedModel(Broken(), toy.tokenizer, toy.info), batch)
