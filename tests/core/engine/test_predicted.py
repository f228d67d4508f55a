"""Predicted answers: with every drafter the answer is what it would be without, and the counts are true."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.engine.engine import Engine
from core.events import Generate, Grammar, Message, Token
from core.kv.mlx_lm_caches import why_no_rollback
from tests.core.engine.test_conformance import (
    ONE_OF_EACH,
    VARIANT_IDS,
    VARIANTS,
    few,
    settings,
    told,
)
from tests.core.engine.test_shaped import asking, ids, prompt_of
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

OFF = ("off", "fast")
TOKENS = 100
# Ids of more than a byte's worth are parts of characters; so what is written can be predicted as text.
ASCII = {token: -100.0 for token in range(260) if token < 4 or token > 97}
ODD = "\U0001f600\x00\ud800 <|end|> é"
SAMPLINGS: dict[str, dict[str, object]] = {
    "greedy": {},
    "sampled": {"sampling.temperature": 0.9, "sampling.presence_penalty": 0.3},
}

each = pytest.mark.parametrize(
    ("architecture", "variant"),
    [
        pytest.param(
            *(architecture, variant),
            id=f"{name}-{architecture}",
            marks=few(architecture, variant),
        )
        for architecture in ONE_OF_EACH
        for variant, name in zip([OFF, *VARIANTS], ["off", *VARIANT_IDS])
    ],
)


def text_of(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


def predicted(answer: str) -> dict[str, str]:
    """Kinds of predictions of `answer`."""
    return {
        "right": answer,
        "half": answer[: len(answer) // 3] + "?" * 20 + answer[len(answer) // 2 :],
        "wrong": answer[::-1],
        "odd": ODD * 5,
    }


@each
@pytest.mark.parametrize("sampling", thinned(SAMPLINGS, keep=["sampled"]))
def test_a_prediction_changes_nothing_but_the_steps(
    engine: Engine, architecture: str, variant: tuple[str, str], sampling: str, toy_folder: Path
) -> None:
    prompt = prompt_of(architecture)
    values = {**SAMPLINGS[sampling], "sampling.max_tokens": TOKENS}
    chosen = settings(OFF, toy_folder, **values)
    plain, _ = told(engine, prompt, chosen, also=asking(logit_bias=ASCII))
    answer = text_of(plain)
    chosen = settings(variant, toy_folder, **values)
    engine.forget(tables=True)
    without, ended = told(engine, prompt, chosen, also=asking(logit_bias=ASCII))
    assert ids(without) == ids(plain)
    assert ended.stats.prediction_accepted == ended.stats.prediction_rejected == 0
    for kind, prediction in predicted(answer).items():
        engine.forget(tables=True)
        got, finished = told(engine, prompt, chosen, also=asking(logit_bias=ASCII, prediction=prediction))
        assert ids(got) == ids(plain), kind
        stats = finished.stats
        sent = prediction.replace("\ud800", "\ufffd")
        length = len(engine.loaded.tokenizer.encode(sent, add_special_tokens=False))
        assert stats.prediction_accepted + stats.prediction_rejected == length
        if kind == "right":
            assert (stats.prediction_accepted, stats.prediction_rejected) == (TOKENS, 0)
        if variant == OFF or why_no_rollback(engine.sequence.cache):
            assert stats.accepted == 0
            change = next(change for change in finished.effective.changes if change.setting == "prediction")
            assert "off" in change.reason
            continue
        assert not [change for change in finished.effective.changes if change.setting == "prediction"]
        if kind == "right":
            # A chain of up to 64, most of them in one block once it holds.
            assert stats.steps < 16
            assert stats.steps < ended.stats.steps / 2
        elif kind == "half":
            # An answer that repeats itself is copied from the first half again and again.
            assert stats.prediction_accepted > TOKENS / 4
            assert stats.steps < ended.stats.steps


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("mode", ["auto", "always"])
def test_the_gate_opens_for_a_prediction(
    engine: Engine, architecture: str, mode: str, toy_folder: Path
) -> None:
    prompt = list(range(10, 60))  # nothing repeats
    values = {"gate.mode": mode, "sampling.max_tokens": TOKENS}
    chosen = settings(("ngram-simple", "fast"), toy_folder, **values)
    plain, _ = told(engine, prompt, chosen, also=asking(logit_bias=ASCII))
    engine.forget(tables=True)
    also = asking(logit_bias=ASCII, prediction=text_of(plain))
    got, finished = told(engine, prompt, chosen, also=also)
    assert ids(got) == ids(plain)
    assert finished.stats.steps < 16
    if mode != "always":
        assert "prediction" in finished.effective.gate or "times the plain speed" in finished.effective.gate


@pytest.mark.parametrize("architecture", ["llama"])
def test_an_interrupted_answer_goes_on_by_the_same_prediction(
    engine: Engine, architecture: str, toy_folder: Path
) -> None:
    chosen = settings(("auto", "fast"), toy_folder, **{"sampling.max_tokens": TOKENS})

    def answer(begun: tuple[int, ...], prediction: str) -> tuple[list[Token], Any]:
        request = Generate(
            "r",
            (Message("user", "Once more."),),
            chosen,
            continuation=begun,
            prediction=prediction,
            logit_bias=ASCII,
        )
        events = list(engine.generate(request))
        return [event for event in events if isinstance(event, Token)], events[-1]

    whole, _ = answer((), "")
    rest, finished = answer(tuple(ids(whole)[:30]), text_of(whole))
    assert ids(rest)[:70] == ids(whole)[30:]
    assert finished.stats.prediction_accepted == 70
    assert finished.stats.prediction_rejected == 0
    assert finished.stats.mean_per_step > 3


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("drafter", ["auto", "ngram-simple"])
def test_a_prediction_and_a_grammar_go_together(
    engine: Engine, architecture: str, drafter: str, toy_folder: Path
) -> None:
    engine.loaded.eos = frozenset({0})
    schema = (
        '{"type": "object", "properties": {"name": {"type": "string", "minLength": 30, "maxLength": 30}},'
        ' "required": ["name"], "additionalProperties": false}'
    )
    grammar = Grammar("json_schema", schema)
    prompt = prompt_of(architecture)
    bias = {token: value for token, value in ASCII.items() if token}
    plain, _ = told(engine, prompt, settings(OFF, toy_folder), also=asking(grammar=grammar, logit_bias=bias))
    also = asking(grammar=grammar, logit_bias=bias, prediction=text_of(plain))
    got, finished = told(engine, prompt, settings((drafter, "fast"), toy_folder), also=also)
    engine.loaded.eos = frozenset()
    assert ids(got) == ids(plain)
    assert finished.stats.prediction_accepted == len(plain) - 1
    assert finished.stats.steps <= 12


@pytest.mark.parametrize("architecture", ["llama"])
def test_what_a_stop_text_cuts_off_has_not_come(engine: Engine, architecture: str, toy_folder: Path) -> None:
    chosen = settings(("auto", "fast"), toy_folder, **{"sampling.max_tokens": TOKENS})
    prompt = prompt_of(architecture)
    plain, _ = told(engine, prompt, chosen, also=asking(logit_bias=ASCII))
    answer = text_of(plain)
    stop = next(answer[at : at + 3] for at in range(40, 90) if answer.find(answer[at : at + 3]) == at)
    also = asking(logit_bias=ASCII, prediction=answer, stops=(stop,))
    got, finished = told(engine, prompt, chosen, also=also)
    assert finished.stopped_by == stop
    assert text_of(got) == answer[: answer.find(stop)]
    assert finished.stats.prediction_accepted == len(got)
    assert finished.stats.prediction_rejected == TOKENS - len(got)
