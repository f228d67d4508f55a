"""The engine on the toy model: endings, the next turn, bad requests, and what the figures add up to."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from core.engine.engine import Engine, never
from core.errors import EmptyPromptError, ModelError, NoModelError, PromptTooLongError, SettingError
from core.events import Finished, Generate, Message, Token
from core.settings import Settings, assign
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.support import written
from tests.core.toy import CONTEXT_TOKENS


def settings(**values: object) -> Settings:
    result = Settings()
    for key, value in {
        "sampling.max_tokens": 60,
        "ngram_simple.n_min": 1,
        "gate.mode": "always",
        **values,
    }.items():
        result = assign(result, key, value)
    return result


def run(
    engine: Engine, prompt: Sequence[int], chosen: Settings, cancelled: Callable[[], bool] = never
) -> tuple[list[Token], Finished]:
    return written(engine.generate_ids(prompt, chosen, cancelled))


def ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]


def test_cancel_between_prefill_chunks(toy_engine: Engine) -> None:
    prompt = prompt_with_repetition(random.Random(2), 300)[:300]
    calls = 0

    def cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > 3

    chosen = settings(**{"prefill.chunk_tokens": 32})
    tokens, finished = run(toy_engine, prompt, chosen, cancelled)
    assert (tokens, finished.reason) == ([], "cancelled")
    assert toy_engine.sequence.tokens == prompt[: 3 * 32]
    warm, finished = run(toy_engine, prompt, chosen)
    assert finished.stats.reused_tokens == 96
    toy_engine.forget()
    assert ids(warm) == ids(run(toy_engine, prompt, chosen)[0])


def test_max_tokens_beyond_the_context_is_cut_and_said(toy_engine: Engine) -> None:
    prompt = prompt_with_repetition(random.Random(6), CONTEXT_TOKENS - 20)[: CONTEXT_TOKENS - 20]
    tokens, finished = run(toy_engine, prompt, settings(**{"sampling.max_tokens": 5000}))
    assert len(tokens) == 20
    (change,) = finished.effective.changes
    assert (change.setting, change.asked, change.used) == ("sampling.max_tokens", "5000", "20")
    assert "context" in change.reason
    assert finished.effective.settings.sampling.max_tokens == 20


def test_prompt_over_the_context_says_by_how_much(toy_engine: Engine) -> None:
    first, _ = run(toy_engine, [5, 6, 7, 8], settings())
    with pytest.raises(PromptTooLongError, match=r"8 more than the 511") as caught:
        run(toy_engine, [5] * (CONTEXT_TOKENS + 7), settings())
    assert (caught.value.tokens, caught.value.limit_tokens) == (CONTEXT_TOKENS + 7, CONTEXT_TOKENS - 1)
    assert ids(run(toy_engine, [5, 6, 7, 8], settings())[0]) == ids(first)


def test_a_smaller_context_than_the_models_holds_for_prompt_and_answer(toy_engine: Engine) -> None:
    limited = {"prefill.context_tokens": 100, "sampling.max_tokens": 5000}
    tokens, finished = run(toy_engine, [5] * 90, settings(**limited))
    assert len(tokens) == 10
    assert finished.stats.context_tokens == 100
    with pytest.raises(
        PromptTooLongError, match="1 more than the 99 that the context limit allows"
    ) as caught:
        run(toy_engine, [5] * 100, settings(**limited))
    assert "raise the limit" in caught.value.hint
    more = settings(**{**limited, "prefill.context_tokens": CONTEXT_TOKENS + 1})
    with pytest.raises(PromptTooLongError, match="that fit this model"):
        run(toy_engine, [5] * CONTEXT_TOKENS, more)


@pytest.mark.parametrize("messages", [(), (Message("user", "  \n"),)])
def test_nothing_to_answer(toy_engine: Engine, messages: tuple[Message, ...]) -> None:
    with pytest.raises(EmptyPromptError):
        list(toy_engine.generate(Generate("r", messages)))
    with pytest.raises(EmptyPromptError):
        list(toy_engine.generate_ids([], settings()))


def test_settings_that_contradict_each_other(toy_engine: Engine) -> None:
    from core.settings.drafting import NgramSimple

    bad = Settings(ngram_simple=NgramSimple(n_max=2, n_min=3))
    with pytest.raises(SettingError, match="n_min"):
        list(toy_engine.generate(Generate("r", (Message("user", "hi"),), bad)))


def test_forgetting_tables_too_makes_a_run_cold(toy_engine: Engine) -> None:
    prompt = prompt_with_repetition(random.Random(3))
    chosen = settings(**{"drafting.drafter": "ngram-mod", "ngram_mod.n": 4})
    first, cold = run(toy_engine, prompt, chosen)
    toy_engine.forget()
    again, warm = run(toy_engine, prompt, chosen)
    toy_engine.forget(tables=True)
    third, cold_again = run(toy_engine, prompt, chosen)
    assert ids(first) == ids(again) == ids(third)
    assert warm.stats.accepted > cold.stats.accepted == cold_again.stats.accepted


def test_no_model() -> None:
    engine = Engine()
    with pytest.raises(NoModelError):
        list(engine.generate(Generate("r", (Message("user", "hi"),))))
    with pytest.raises(NoModelError):
        engine.count_tokens("hi")


def test_a_failed_load_keeps_the_model_in_use(toy_engine: Engine, tmp_path: Path) -> None:
    before, _ = run(toy_engine, [5, 6, 7, 8], settings())
    with pytest.raises(ModelError):
        toy_engine.load(str(tmp_path))
    assert ids(run(toy_engine, [5, 6, 7, 8], settings())[0]) == ids(before)


def test_a_forward_that_fails_leaves_a_clean_cache(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = prompt_with_repetition(random.Random(8))
    expected, _ = run(toy_engine, prompt, settings())
    toy_engine.forget()
    events = toy_engine.generate_ids(prompt, settings())
    for _ in range(5):
        next(events)
    layer = type(toy_engine.loaded.model.model.layers[1])

    def fail(*arguments: object, **named: object) -> None:
        raise ValueError("half-way")

    with monkeypatch.context() as patch:
        patch.setattr(layer, "__call__", fail)
        with pytest.raises(ValueError, match="half-way"):
            list(events)
    assert toy_engine.sequence.tokens == []
    assert ids(run(toy_engine, prompt, settings())[0]) == ids(expected)
