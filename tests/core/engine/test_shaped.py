"""Answers whose logits are changed (penalties, bias) or told (logprobs), against the formulas."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

from core.engine.engine import Engine
from core.errors import RequestError
from core.events import Generate, Token
from core.settings import Settings, assign_all
from tests.core.architectures import VOCABULARY
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.support import ONE_OF_EACH, settings, tiny_once, told
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

TOKENS = 60
BIAS = {7: 3.0, 40: -100.0, 41: 2.5, 259: 1.0}


def prompt_of(architecture: str) -> list[int]:
    return prompt_with_repetition(random.Random(architecture))


def asking(**asked: Any) -> Generate:
    """A request of which only these fields count."""
    return Generate("r", (), **asked)


def ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("drafter", ["off", "cacheback"])
def test_penalties_follow_the_formula(
    engine: Engine, architecture: str, drafter: str, toy_folder: Path
) -> None:
    """Each token is the arg-max of logits that were worked out apart: nothing of the prompt counts."""
    prompt = prompt_of(architecture)
    values = {"sampling.frequency_penalty": 1.5, "sampling.presence_penalty": 0.75, "sampling.max_tokens": 40}
    also = asking(logit_bias=BIAS)
    tokens, _ = told(engine, prompt, settings(drafter, toy_folder, **values), also=also)
    answer = ids(tokens)
    rows = np.array(tiny_once(architecture)(mx.array([[*prompt, *answer]]))[0].astype(mx.float32))
    bias = np.zeros(VOCABULARY)
    bias[list(BIAS)] = list(BIAS.values())
    for place, token in enumerate(answer):
        scores = rows[len(prompt) - 1 + place] + bias
        for said, count in Counter(answer[:place]).items():
            scores[said] -= 1.5 * count + 0.75
        assert scores[token] > np.max(scores) - 1e-3
    plain, _ = told(engine, prompt, settings(drafter, toy_folder, **{"sampling.max_tokens": 40}))
    assert ids(plain) != answer


@pytest.mark.parametrize("architecture", thinned(ONE_OF_EACH, keep=["llama"]))
def test_logprobs_are_the_models_own_whoever_drafted(
    engine: Engine, architecture: str, toy_folder: Path
) -> None:
    prompt = prompt_of(architecture)
    # Nothing that is done to the logits may show in them.
    values = {"sampling.temperature": 0.3, "sampling.top_k": 3, "sampling.max_tokens": TOKENS}
    also = asking(logit_bias={40: -100.0}, top_logprobs=4)
    plain, _ = told(engine, prompt, settings("off", toy_folder, **values), also=also)
    engine.forget()
    drafted, _ = told(engine, prompt, settings("cacheback", toy_folder, **values), also=also)
    assert ids(drafted) == ids(plain)
    logits = tiny_once(architecture)(
        mx.array([[*prompt, *ids(plain)]]), cache=make_prompt_cache(tiny_once(architecture))
    )
    rows = np.array(logits[0].astype(mx.float32))
    rows -= np.log(np.sum(np.exp(rows - rows.max(-1, keepdims=True)), -1, keepdims=True)) + rows.max(
        -1, keepdims=True
    )
    for tokens in (plain, drafted):
        for place, token in enumerate(tokens):
            row = rows[len(prompt) - 1 + place]
            assert token.logprob == pytest.approx(row[token.id], abs=2e-3)
            likely = sorted(row, reverse=True)[:4]
            assert [like.logprob for like in token.likely] == pytest.approx(likely, abs=2e-3)
            assert all(row[like.id] == pytest.approx(like.logprob, abs=2e-3) for like in token.likely)
            # Texts are those that the alternatives would add here, as `TokenTexts` divides them.
            shown = ids(tokens)[:place]
            for like in token.likely:
                added = engine.loaded.tokenizer.decode([*shown, like.id])
                assert added.endswith(like.text), (added, like)
                assert like.id != token.id or like.text == token.text or "\ufffd" in like.text


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("drafter", ["off", "auto"])
@pytest.mark.parametrize("asked", [None, 0, 1000])
def test_only_so_many_likely_tokens_are_told_as_were_asked_for(
    engine: Engine, architecture: str, drafter: str, asked: int | None, toy_folder: Path
) -> None:
    chosen = settings(drafter, toy_folder, **{"sampling.max_tokens": 8})
    also = asking(top_logprobs=asked)
    tokens, _ = told(engine, prompt_of(architecture), chosen, also=also)
    for token in tokens:
        assert (token.logprob is None) == (asked is None)
        assert len(token.likely) == min(asked or 0, VOCABULARY)


@pytest.mark.parametrize(
    ("also", "named"),
    [
        (asking(logit_bias={3: 1.0, VOCABULARY: 1.0}), "260"),
        (asking(logit_bias={-1: 1.0}), "-1"),
        (asking(logit_bias={3: float("nan")}), "nan"),
        (asking(logit_bias={3: float("-inf")}), "inf"),
        (asking(top_logprobs=-1), "-1"),
    ],
    ids=str,
)
@pytest.mark.parametrize("architecture", ["llama"])
def test_what_the_model_cannot_do_is_refused_before_anything_is_read(
    engine: Engine, architecture: str, also: Generate, named: str
) -> None:
    chosen = assign_all(Settings(), [("sampling.max_tokens", 4)])
    with pytest.raises(RequestError, match=named):
        next(engine.generate_ids([5, 6, 7], chosen, also=also))
