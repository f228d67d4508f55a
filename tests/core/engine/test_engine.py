"""The engine on the toy model: endings, the next turn, bad requests, and what the figures add up to."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import ChunkedKVCache, KVCache

from core.engine.engine import Engine, never
from core.errors import EmptyPromptError, ModelError, NoModelError, PromptTooLongError, SettingError
from core.events import Attachment, Finished, Gauges, Generate, Message, PrefillProgress, Token
from core.models.loader import LoadedModel
from core.settings import Settings, assign
from tests.core.decoding.test_loop import assert_cache_equals_cold_start, prompt_with_repetition
from tests.core.toy import CONTEXT_TOKENS, write_toy_model


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
    events = list(engine.generate_ids(prompt, chosen, cancelled))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event for event in events if isinstance(event, Token)], finished


def ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]


def test_figures_add_up(toy_engine: Engine) -> None:
    prompt = prompt_with_repetition(random.Random(0))
    tokens, finished = run(toy_engine, prompt, settings())
    stats = finished.stats
    assert finished.reason == "length"
    assert stats.tokens == len(tokens) == 60
    assert stats.tokens == stats.accepted + stats.bonus + stats.normal
    assert stats.steps == stats.bonus + stats.normal == tokens[-1].step
    assert stats.accepted == sum(t.origin == "accepted" for t in tokens) > 0
    assert stats.accepted == sum(p.accepted for p in stats.positions)
    assert stats.tested == sum(p.tested for p in stats.positions)
    assert stats.accepted <= stats.tested <= stats.drafted
    assert stats.mean_per_step == pytest.approx(stats.tokens / stats.steps)
    assert stats.acceptance == pytest.approx(stats.accepted / stats.tested)
    assert [t.position for t in tokens] == list(range(60))
    assert stats.prompt_tokens == stats.reused_tokens + stats.read_tokens == len(prompt)
    assert 0 < stats.occupancy.used < stats.occupancy.capacity
    assert finished.effective.changes == ()
    for step in range(1, stats.steps + 1):
        origins = [t.origin for t in tokens if t.step == step]
        assert set(origins[:-1]) <= {"accepted"}
        assert origins[-1] in ("bonus", "normal")


def test_second_turn_reuses_and_equals_a_cold_start(toy_engine: Engine) -> None:
    rng = random.Random(1)
    first = prompt_with_repetition(rng)
    answer, _ = run(toy_engine, first, settings())
    second = [*first, *ids(answer), *prompt_with_repetition(rng, 20)]
    warm, finished = run(toy_engine, second, settings())
    assert finished.stats.reused_tokens >= len(first) + len(answer) - 1
    toy_engine.forget()
    cold, finished = run(toy_engine, second, settings())
    assert finished.stats.reused_tokens == 0
    assert ids(warm) == ids(cold)


def test_a_second_chat_about_the_same_document_reads_none_of_it_again(toy_engine: Engine) -> None:
    """A document comes before the question, so that chats about it begin alike, whatever is asked."""
    document = Attachment("tides", "The tide turns at noon. " * 8)
    toy_engine.forget()

    def ask(question: str, *before: Message) -> Finished:
        asked = Message("user", question, () if before else (document,))
        chosen = settings(**{"sampling.max_tokens": 8, "prefill.mode": "off"})
        finished = list(toy_engine.generate(Generate("r", (*before, asked), chosen)))[-1]
        assert isinstance(finished, Finished)
        return finished

    first = ask("When does it turn?")
    assert first.stats.reused_tokens == 0
    # One token a letter; the user's mark comes before the document's name.
    tokens = len(f"{document.name}:\n\n{document.text.strip()}\n\n") + 1
    second = ask("Who says so?")
    assert second.stats.reused_tokens >= tokens
    assert second.stats.read_tokens <= second.stats.prompt_tokens - tokens
    # And back in the first one.
    assert ask("When does it turn?").stats.reused_tokens >= tokens


@pytest.mark.parametrize("seed", range(6))
def test_stop_token_inside_a_draft_leaves_what_was_shown(toy_engine: Engine, seed: int) -> None:
    """Any token of the answer is made the stop token: the shown text ends before it, exactly."""
    rng = random.Random(seed)
    prompt = prompt_with_repetition(rng)
    full, _ = run(toy_engine, prompt, settings())
    stop = rng.choice(ids(full)[3:])
    cut = ids(full).index(stop)
    toy_engine.forget()
    toy_engine.loaded.eos = frozenset({stop})
    try:
        tokens, finished = run(toy_engine, prompt, settings())
    finally:
        toy_engine.loaded.eos = frozenset({0})
    assert finished.reason == "stop"
    assert ids(tokens) == ids(full)[: cut + 1]
    assert tokens[-1].text == ""
    assert tokens[-1].origin in ("bonus", "normal")
    stats = finished.stats
    assert stats.tokens == stats.accepted + stats.bonus + stats.normal == cut + 1
    assert stats.steps == stats.bonus + stats.normal
    shown = prompt + ids(full)[:cut]
    sequence = toy_engine.sequence
    assert sequence.tokens == shown[: len(sequence.tokens)]
    assert len(sequence.tokens) >= len(shown) - 1
    assert_cache_equals_cold_start(toy_engine.loaded.model, sequence)
    follow = [*shown, *prompt_with_repetition(rng, 12)]
    warm, finished = run(toy_engine, follow, settings())
    assert finished.stats.reused_tokens >= len(shown) - 1
    toy_engine.forget()
    assert ids(warm) == ids(run(toy_engine, follow, settings())[0])


@pytest.mark.parametrize("drafter", ["off", "ngram-simple"])
@pytest.mark.parametrize("after", [1, 2, 5, 11])
def test_cancel_leaves_what_was_shown(toy_engine: Engine, drafter: str, after: int) -> None:
    rng = random.Random(after)
    prompt = prompt_with_repetition(rng)
    chosen = settings(**{"drafting.drafter": drafter})
    calls = 0

    def cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > after

    tokens, finished = run(toy_engine, prompt, chosen, cancelled)
    assert finished.reason == "cancelled"
    assert finished.stats.tokens == len(tokens)
    sequence = toy_engine.sequence
    shown = prompt + ids(tokens)
    assert sequence.tokens == shown[: len(sequence.tokens)]
    assert_cache_equals_cold_start(toy_engine.loaded.model, sequence)
    follow = [*shown, 7, 8, 9]
    warm, _ = run(toy_engine, follow, chosen)
    toy_engine.forget()
    assert ids(warm) == ids(run(toy_engine, follow, chosen)[0])


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


def test_an_abandoned_iterator_counts_as_cancelled(toy_engine: Engine) -> None:
    prompt = prompt_with_repetition(random.Random(3))
    events = toy_engine.generate_ids(prompt, settings())
    seen = [event for event, _ in zip(events, range(20)) if isinstance(event, Token)]
    events.close()  # type: ignore[attr-defined]
    sequence = toy_engine.sequence
    assert sequence.tokens[: len(prompt)] == prompt[: len(sequence.tokens)]
    assert len(sequence.tokens) <= len(prompt) + len(seen) + 32
    assert_cache_equals_cold_start(toy_engine.loaded.model, sequence)


def test_prefill_progress_is_monotonic_and_complete(toy_engine: Engine) -> None:
    prompt = prompt_with_repetition(random.Random(4), 200)
    events = toy_engine.generate_ids(prompt, settings(**{"prefill.chunk_tokens": 32}))
    seen = [event for event in events if isinstance(event, PrefillProgress)]
    done = [event.done_tokens for event in seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == seen[-1].total_tokens == len(prompt) - 1


def test_gauges_follow_the_tokens(toy_engine: Engine) -> None:
    events = list(toy_engine.generate_ids(prompt_with_repetition(random.Random(5)), settings()))
    gauges = [event for event in events if isinstance(event, Gauges)]
    assert gauges[-1].tokens == 60
    assert gauges[-1].occupancy.used > 0


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


@pytest.mark.parametrize("drafter", ["off", "ngram-simple"])
def test_a_sliding_window_past_its_wrap(tmp_path: Path, drafter: str) -> None:
    write_toy_model(tmp_path, layer_types=["full_attention", "sliding_attention"], sliding_window=16)
    engine = Engine()
    assert engine.load(str(tmp_path)).speculates
    assert "8 dimensions" in engine.loaded.info.kv_why_not
    prompt = prompt_with_repetition(random.Random(9))
    expected = [int(t) for t, _ in generate_step(mx.array(prompt), engine.loaded.model, max_tokens=60)]
    chosen = settings(**{"drafting.drafter": drafter})
    tokens, finished = run(engine, prompt, chosen)
    assert ids(tokens) == expected
    assert (finished.stats.accepted > 0) == (drafter != "off")
    follow = [*prompt, *ids(tokens), 9, 10]
    warm, finished = run(engine, follow, chosen)
    assert finished.stats.reused_tokens >= len(prompt) + 59
    engine.forget()
    assert ids(warm) == ids(run(engine, follow, chosen)[0])


def test_a_cache_that_cannot_roll_back_is_not_speculated_on(toy_folder: Path) -> None:
    engine = Engine()
    engine.load(str(toy_folder))
    model = engine.loaded.model
    model.make_cache = lambda: [ChunkedKVCache(CONTEXT_TOKENS), KVCache()]
    loaded = LoadedModel(model, engine.loaded.tokenizer, engine.loaded.info)
    engine.use(loaded)
    prompt = prompt_with_repetition(random.Random(9))
    tokens, finished = run(engine, prompt, settings())
    assert {t.origin for t in tokens} == {"normal"}
    assert finished.effective.drafter == "off"
    assert "ChunkedKVCache" in finished.effective.changes[0].reason


@pytest.mark.parametrize("drafter", ["auto", "ngram-simple", "off"])
@pytest.mark.parametrize("seed", range(4))
def test_a_stop_text_ends_the_answer_before_it(toy_engine: Engine, drafter: str, seed: int) -> None:
    """Any piece of the answer is made a stop text, also inside drafts: all told and cached ends before."""
    rng = random.Random(seed)
    prompt = prompt_with_repetition(rng)
    chosen = settings(**{"drafting.drafter": drafter})
    toy_engine.forget(tables=True)
    whole, _ = run(toy_engine, prompt, chosen)
    text = "".join(token.text for token in whole)
    start = rng.randrange(8, len(text) - 6)
    stop = text[start : start + rng.randrange(1, 5)]
    toy_engine.forget(tables=True)
    request = Generate("stopped", (), chosen, stops=("never said", stop))
    events = list(toy_engine.generate_ids(prompt, chosen, also=request))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert (finished.reason, finished.stopped_by) == ("stop", stop)
    told = [event for event in events if isinstance(event, Token)]
    assert "".join(token.text for token in told) == text[: text.index(stop)]
    assert ids(told) == ids(whole)[: len(told)]
    held = toy_engine.sequence.tokens[len(prompt) :]
    assert held == ids(told)[: len(held)]
    assert len(told) - len(held) <= 1
    assert_cache_equals_cold_start(toy_engine.loaded.model, toy_engine.sequence)
