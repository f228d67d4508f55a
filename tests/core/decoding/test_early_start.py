"""Early start: the same tokens and caches, and nothing left in the entries."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, RotatingKVCache, make_prompt_cache

from core.decoding import early_start
from core.decoding.early_start import EVERY_LAYERS, LEAST_LAYERS, EarlyStart, early_entries
from core.decoding.loop import DecodeLoop
from core.drafting.draft import Draft, Drafter
from core.drafting.registry import DRAFTERS
from core.kv.positions import Columns, Positioned
from tests.core.architectures import ARCHITECTURES, VOCABULARY, tiny
from tests.core.decoding.test_loop import (
    Oracle,
    Scripted,
    assert_cache_equals_cold_start,
    decode,
    plain,
    prompt_with_repetition,
    tokens_of,
)
from tests.core.drafters import answer_of, build
from tests.core.toy import toy_model, toy_sequence

LAYERS = 16
EARLY_STARTS = 1 + LAYERS // EVERY_LAYERS


@pytest.fixture(scope="module")
def deep() -> Any:
    return toy_model(num_hidden_layers=LAYERS)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of arrays of each start."""
    found: list[int] = []
    start = mx.async_eval

    def counted(*arrays: Any) -> None:
        found.append(len(arrays))
        start(*arrays)

    monkeypatch.setattr(mx, "async_eval", counted)
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("spoil", [0.0, 0.3])
def test_drafts_on_a_deep_model_equal_plain_decoding(deep: Any, spoil: float) -> None:
    rng = random.Random(7)
    prompt = prompt_with_repetition(rng)
    expected = plain(deep, prompt, 60)
    steps, sequence = decode(deep, prompt, Oracle(expected, spoil, rng), count=60)
    assert tokens_of(steps) == expected
    assert_cache_equals_cold_start(deep, sequence)


def test_a_block_is_started_before_all_of_it_is_built(deep: Any, started: list[int]) -> None:
    prompt = prompt_with_repetition(random.Random(7))
    expected = plain(deep, prompt, 6)
    started.clear()
    drafter = Scripted([Draft.chain(expected[:3]), Draft((expected[4], 5), (-1, -1))])
    decode(deep, prompt, drafter, count=6)
    # Of a chain and a tree, and at last the choices of each.
    assert len(started) == 2 * (EARLY_STARTS + 1)


def test_a_pass_that_runs_ahead_is_started_as_a_whole(deep: Any, started: list[int]) -> None:
    prompt = prompt_with_repetition(random.Random(7))
    expected = plain(deep, prompt, 10)
    started.clear()
    steps, _ = decode(deep, prompt, Drafter(), drafts=False, count=10)
    assert tokens_of(steps) == expected
    # The first pass early, and then the choices of each.
    assert len(started) == EARLY_STARTS + 10


@pytest.mark.sweep
@pytest.mark.parametrize("drafts", ["chains", "trees"])
@pytest.mark.parametrize(
    "architecture",
    [
        name
        if name in ("gemma3_text", "qwen3_5", "deepseek_v3")
        else pytest.param(name, marks=pytest.mark.sweep)
        for name in ARCHITECTURES
        if name != "llama4"
    ],
)
def test_every_kind_of_cache_equals_plain_decoding(
    architecture: str, drafts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_start, "EVERY_LAYERS", 1)
    monkeypatch.setattr(early_start, "LEAST_LAYERS", 1)
    model: Any = tiny(architecture)
    rng = random.Random(11)
    phrase = [rng.randrange(4, VOCABULARY) for _ in range(6)]
    prompt = phrase * 4
    expected = plain(model, prompt, 40)
    spec = DRAFTERS["cacheback"]
    trees = drafts == "trees" and not any(isinstance(each, ArraysCache) for each in make_prompt_cache(model))
    drafter = build(spec, trees=trees) if drafts == "trees" else Oracle(expected, 0.3, rng)
    answer = answer_of(model, prompt, drafter, vocabulary=VOCABULARY, drafts="cacheback")
    assert tokens_of(list(DecodeLoop(answer).steps(40))) == expected


def test_nothing_is_left_in_the_entries_also_after_an_error() -> None:
    kept, window, positioned = KVCache(), RotatingKVCache(8), Positioned(KVCache(), Columns())
    cache: list[Any] = [kept, window, CacheList(positioned)] * 8  # an entry may occur several times
    assert {id(entry) for entry in early_entries(cache)} == {id(kept), id(window), id(positioned)}
    held = (kept, window, positioned.entry)
    before = [dict(vars(entry)) for entry in held]

    def failing() -> None:
        with EarlyStart().within(cache):
            assert all("update_and_fetch" in vars(entry) for entry in held)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert [dict(vars(entry)) for entry in held] == before


@pytest.mark.parametrize(
    "cache",
    [[KVCache() for _ in range(LEAST_LAYERS - 1)], [ArraysCache(2) for _ in range(LAYERS)], []],
    ids=["few layers", "recurrent", "none"],
)
def test_models_that_gain_nothing_start_nothing_early(cache: Sequence[Any]) -> None:
    assert not early_entries(cache)


@pytest.mark.parametrize("early", [True, False])
def test_starting_counts_as_waiting_and_host_time_ends_at_the_first_start(
    deep: Any, early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    start, body = mx.async_eval, type(deep.model)

    def slow(*arrays: Any) -> None:
        nonlocal now_s
        now_s += 0.5
        start(*arrays)

    def built(self: Any, *given: Any, **options: Any) -> Any:
        nonlocal now_s
        found = build(self, *given, **options)
        now_s += 4.0  # after the last layer
        return found

    clock = SimpleNamespace(perf_counter=lambda: now_s)
    build = body.__call__
    monkeypatch.setattr(body, "__call__", built)
    monkeypatch.setattr(mx, "async_eval", slow)
    monkeypatch.setattr(early_start, "LEAST_LAYERS", LAYERS + (not early))
    monkeypatch.setattr(early_start, "time", clock)
    monkeypatch.setattr("core.decoding.loop.time", clock)
    prompt = prompt_with_repetition(random.Random(7))
    expected = plain(deep, prompt, 4)
    now_s = 0.0
    (step,), _ = decode(deep, prompt, Scripted([Draft.chain(expected[:3])]), count=4)
    assert step.waited_s == 0.5 * (EARLY_STARTS * early + 1)
    assert step.host_s == (0.0 if early else 4.0)
    assert step.took_s == step.waited_s + 4.0


def test_a_block_takes_no_second_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second handle of a cache's array would make its update a copy of all of it."""
    model = toy_model(num_hidden_layers=LAYERS)
    rows = mx.zeros((1, 2, 3000, 8))

    def peak_bytes(within: Callable[[Any], Any]) -> int:
        sequence = toy_sequence(model)
        for entry in sequence.cache:
            entry.update_and_fetch(rows, rows)
        mx.eval([entry.state for entry in sequence.cache])
        block = mx.array([[1, 2, 3, 4]])
        for _ in range(2):
            mx.reset_peak_memory()
            held = mx.get_active_memory()
            with within(sequence.cache):
                logits = model(block, cache=sequence.cache)
            mx.eval(logits)
        return int(mx.get_peak_memory()) - held

    of_a_layer = 2 * 2 * 3072 * 8 * 4  # keys and values of two heads of size 8, float32
    whole = peak_bytes(lambda cache: EarlyStart().within(()))
    assert peak_bytes(lambda cache: EarlyStart().within(cache)) < whole + of_a_layer
