"""Predicted answers: the gate opens for them, and an interrupted answer goes on by the same one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.drafting.draft import NO_FACTS, Drafter, Facts
from core.drafting.registry import DRAFTERS
from core.engine.engine import Engine
from core.events import Generate, Message, Token
from tests.core.engine.support import settings, told
from tests.core.engine.test_shaped import asking, ids, prompt_of

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

TOKENS = 100
# Ids of more than a byte's worth are parts of characters; so what is written can be predicted as text.
ASCII = {token: -100.0 for token in range(260) if token < 4 or token > 97}


def text_of(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("mode", ["auto", "always"])
def test_the_gate_opens_for_a_prediction(
    engine: Engine, architecture: str, mode: str, toy_folder: Path
) -> None:
    prompt = list(range(10, 60))  # nothing repeats
    values = {"gate.mode": mode, "sampling.max_tokens": TOKENS}
    chosen = settings("ngram-simple", toy_folder, **values)
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
    chosen = settings("auto", toy_folder, **{"sampling.max_tokens": TOKENS})

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
def test_what_a_stop_text_cuts_off_has_not_come(engine: Engine, architecture: str, toy_folder: Path) -> None:
    chosen = settings("auto", toy_folder, **{"sampling.max_tokens": TOKENS})
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


@pytest.mark.parametrize("architecture", ["llama"])
def test_a_drafter_gets_the_text_of_the_prompt(
    engine: Engine, architecture: str, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []

    class Reader(Drafter):
        def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
            texts.append(facts.text_of(prompt))

    spec = replace(DRAFTERS["ngram-simple"], build=lambda settings, resources: Reader())
    monkeypatch.setitem(DRAFTERS, "ngram-simple", spec)
    prompt = list(range(10, 60))
    told(engine, prompt, settings("ngram-simple", toy_folder, **{"sampling.max_tokens": 4}))
    assert texts == [engine.loaded.tokenizer.decode(prompt)]
    assert texts[0]
