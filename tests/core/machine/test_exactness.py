"""Exactness modes: rare differences are found, nothing is promised before, and use goes on checking."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import KVCache
from msgspec.structs import replace

import core.engine.engine as engine_module
import core.machine.compare as compare
import core.machine.compare as exact_widths
import core.machine.exactness as exactness_module
from core.decoding.answer import Exactness
from core.engine.engine import Engine
from core.events import ModelInfo
from core.machine.compare import compare_widths, same_bits
from core.machine.exactness import (
    LEAST_ROWS,
    PROFILES,
    WIDTHS,
    Profile,
    WidthRows,
    exactness,
    load_profile,
    machine_key,
    summaries,
)
from core.models.loader import LoadedModel
from tests.core.architectures import ARCHITECTURES, build
from tests.core.decoding.test_loop import Oracle, assert_cache_equals_cold_start, decode, plain, tokens_of
from tests.core.toy import toy_model


@pytest.mark.parametrize("limit", [2, 5])
def test_exact_takes_only_proven_widths(limit: int) -> None:
    model, rng = toy_model(), random.Random(limit)
    prompt = [rng.randrange(4, 260) for _ in range(40)]
    expected = plain(model, prompt, 60)
    exact = Exactness("exact", limit)
    steps, sequence = decode(model, prompt, Oracle(expected, 0.05, rng), count=60, exactness=exact)
    assert tokens_of(steps) == expected
    assert max(step.width for step in steps) == limit
    assert_cache_equals_cold_start(model, sequence)


class Body(nn.Module):
    """Small whole numbers only, whose sums have the same bits in any order, and one fault.

    In blocks of `width` tokens and more, rows of a token divisible by `every` are off by one unit in the last
    place: in the `cache` or the `logits`.
    """

    def __init__(self, place: str, width: int, every: int) -> None:
        super().__init__()
        self.place, self.width, self.every = place, width, every
        numbers = random.Random(0)
        self.embedding = mx.array([[float(numbers.randrange(-8, 8)) for _ in range(8)] for _ in range(200)])

    def off(self, rows: mx.array, ids: mx.array, place: str) -> mx.array:
        if place != self.place or ids.shape[1] < self.width:
            return rows
        return mx.where((ids[0] % self.every == 0)[:, None], rows * (1 + 2.0**-20), rows)

    def __call__(self, ids: mx.array, cache: Any) -> mx.array:
        rows = self.embedding[ids[0]]
        held = self.off(rows, ids, "cache")[None, None]
        keys, _ = cache[0].update_and_fetch(held, held)
        # What the cache holds does not show in these logits, as a rounded-away difference does not.
        return (rows + 0.0 * mx.round(keys[0, 0, 0]))[None]


class Faulty(nn.Module):
    def __init__(self, place: str, width: int = 99, every: int = 1) -> None:
        super().__init__()
        self.model = Body(place, width, every)
        self.layers = [0]

    def __call__(self, ids: mx.array, cache: Any) -> mx.array:
        rows = self.model(ids, cache)
        logits = self.model.off(mx.round(rows[0]) @ self.model.embedding.T, ids, "logits")
        return logits[None]


INFO = ModelInfo("x", "", "f", "F", "llama", "float32", "", 10, 20, 4096, 200, 1, True)


def compared(model: Any) -> Profile:
    *_, found = compare_widths(Profile("k"), model, lambda: [KVCache()], INFO)
    return found


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exactness_module, compare):
        monkeypatch.setattr(module, "LEAST_ROWS", 96)
    monkeypatch.setattr(compare, "_CONTEXTS", (20, 7, 60))


@pytest.mark.parametrize("place", ["cache", "logits"])
def test_a_rare_difference_is_found_wherever_it_is(place: str, few_rows: None) -> None:
    found = compared(Faulty(place, 3, 50))
    assert found.exact_width == 2, found.summary
    assert found.is_complete
    assert (found.noise > 0) == (place == "logits")


def test_a_model_without_a_difference_is_exact_and_says_on_how_many_rows(few_rows: None) -> None:
    found = compared(Faulty("none"))
    assert found.exact_width == WIDTHS[-1]
    assert found.rows >= 96 * len(WIDTHS)
    assert f"{found.rows:,} compared rows" in found.summary
    assert found.noise == 0.0


def test_nothing_is_promised_before_enough_rows() -> None:
    few = Profile("k", "m", tuple(WidthRows(width, LEAST_ROWS - 1) for width in WIDTHS))
    assert exactness(few).width_limit == 1
    assert f"{few.rows:,} of {LEAST_ROWS * len(WIDTHS):,} rows" in few.summary
    enough = Profile("k", "m", tuple(WidthRows(width, LEAST_ROWS) for width in WIDTHS))
    assert exactness(enough).width_limit == WIDTHS[-1]
    one = enough.with_comparison(6, 3, identical=False)
    assert exactness(one).width_limit == 5
    assert one.is_complete


def test_equal_numbers_are_not_equal_bits() -> None:
    zero = mx.array([0.0, 1.0])
    assert same_bits(zero, mx.array([0.0, 1.0]))
    assert not same_bits(zero, mx.array([-0.0, 1.0]))
    assert not same_bits(zero, zero.astype(mx.float16))


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    return tmp_path


def complete(info: ModelInfo, window_tokens: int = 0) -> Profile:
    rows = tuple(WidthRows(width, LEAST_ROWS) for width in WIDTHS)
    return Profile(
        machine_key(info), info.name, rows, window_tokens=window_tokens, longest_tokens=300, streams=99
    )


def test_a_profile_is_kept_and_older_ones_are_not_trusted(home: Path) -> None:
    assert load_profile(INFO) == Profile(machine_key(INFO), INFO.name)
    PROFILES.save(complete(INFO))
    assert load_profile(INFO) == complete(INFO)
    assert load_profile(replace(INFO, dtype="x")).exact_width == 1
    assert [each.model for each in PROFILES.all()] == [INFO.name]
    (path,) = (home / "cache" / "profiles").iterdir()
    path.rename(path.with_name(path.name.removeprefix("exact-v3-")))  # as earlier versions named it
    assert load_profile(INFO).exact_width == 1


def test_what_was_found_is_told_of_the_model_and_of_this_machine_as_it_is_now(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = replace(INFO, path="/models/x")
    PROFILES.save(replace(complete(info), folder=info.path))
    uncompared = Profile(machine_key(replace(info, dtype="y")), "y", folder="/models/y")
    PROFILES.save(uncompared)
    told = summaries()
    assert list(told) == [("/models/x", "x")]
    assert "up to 16 tokens at once gave the bits of plain steps" in told["/models/x", "x"]
    monkeypatch.setattr(exactness_module, "system_build", lambda: "25B78")
    assert summaries() == {}


M4 = {"device_name": "Apple M4 Max", "architecture": "applegpu_g16s"}
ANOTHER = {
    "threads_at_start": lambda: 64,  # sums that are cut up differently differ in other bits
    "physical_bytes": lambda: 7 << 40,
    "system_build": lambda: "25B78",
    "version": lambda name: "0.99",
    "mx.device_info": lambda: M4,
}


def test_what_kernels_depend_on_is_in_the_key_and_the_name_of_the_host_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = machine_key(INFO)
    monkeypatch.setattr("platform.node", lambda: "Macs-MacBook-Pro-2.local")
    monkeypatch.setattr("socket.gethostname", lambda: "Macs-MacBook-Pro-2.local")
    assert machine_key(INFO) == one
    for name, value in ANOTHER.items():
        with monkeypatch.context() as patch:
            patch.setattr(f"core.machine.exactness.{name}", value)
            assert machine_key(INFO) != one, name
    monkeypatch.setattr(exactness_module.mx, "device_info", lambda: M4)
    assert "Apple M4 Max applegpu_g16s" in machine_key(INFO)


def bfloat16_engine(toy_engine: Engine, model: nn.Module, name: str) -> Engine:
    """Of a toy whose sums round to the same bits at any width on a CPU."""
    model.set_dtype(mx.bfloat16)
    mx.eval(model.parameters())
    info = replace(toy_engine.loaded.info, name=name, path=name, dtype="bfloat16", architecture="llama")
    engine = Engine()
    engine.use(LoadedModel(model, toy_engine.loaded.tokenizer, info))
    engine.loaded.eos = frozenset()
    return engine


PROMPT = [5, 6, 7, 8] * 8


@pytest.mark.sweep
def test_exact_waits_for_rows_and_drafts_then(
    toy_engine: Engine, home: Path, few_rows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.core.engine.test_engine import run, settings

    monkeypatch.setattr(exact_widths, "_UP_FRONT_S", 0.0)
    engine = bfloat16_engine(toy_engine, toy_model(), "waits")
    asked = settings(**{"decoding.exactness": "exact", "gate.mode": "always"})
    _, finished = run(engine, PROMPT, asked)
    assert finished.effective.drafter == "off"
    (change,) = [each for each in finished.effective.changes if each.setting == "drafting.drafter"]
    assert "rows compared; nothing is drafted before" in change.reason
    monkeypatch.setattr(engine_module, "_MEASURES_AFTER_S", 0.0)
    while engine.idle_work():
        pass
    _, finished = run(engine, PROMPT, asked)
    assert finished.stats.drafted > 0
    assert "compared rows" in finished.effective.exactness
    again = bfloat16_engine(toy_engine, toy_model(), "waits")
    assert run(again, PROMPT, asked)[1].stats.drafted > 0, "the comparisons are kept"


def test_an_answer_says_up_to_which_width_exact_drafts(toy_engine: Engine, home: Path) -> None:
    from tests.core.engine.test_engine import run, settings

    engine = bfloat16_engine(toy_engine, toy_model(), "narrow")
    PROFILES.save(complete(engine.loaded.info).with_comparison(6, 9, identical=False))
    _, finished = run(engine, PROMPT, settings(**{"decoding.exactness": "exact", "gate.mode": "always"}))
    assert finished.stats.drafted > 0
    (change,) = [each for each in finished.effective.changes if each.setting == "decoding.exactness"]
    assert change.used == "exact, 5 tokens at a time"


@pytest.mark.sweep
def test_exact_does_not_draft_past_a_sliding_window(toy_engine: Engine, home: Path) -> None:
    from tests.core.engine.test_engine import ids, run, settings

    config = {**ARCHITECTURES["gemma3_text"].config, "sliding_window": 64}
    model = build(config, ARCHITECTURES["gemma3_text"].weight_scale)
    engine = bfloat16_engine(toy_engine, model, "window")
    PROFILES.save(complete(engine.loaded.info, 64))
    asked = {"decoding.exactness": "exact", "gate.mode": "always", "sampling.max_tokens": 80}
    tokens, finished = run(engine, PROMPT, settings(**asked))
    assert finished.stats.drafted > 0
    past = [token.origin for token in tokens if len(PROMPT) + token.position > 64]
    assert past
    assert set(past) == {"normal"}
    assert "no drafts past the sliding window of 64 tokens" in finished.effective.exactness
    engine.forget(tables=True)
    expected, _ = run(engine, PROMPT, settings(**{**asked, "drafting.drafter": "off"}))
    assert ids(tokens) == ids(expected)
    engine.forget(tables=True)
    _, finished = run(engine, PROMPT * 2, settings(**asked))
    assert finished.effective.drafter == "off"
    assert "sliding window of 64" in finished.effective.changes[0].reason
