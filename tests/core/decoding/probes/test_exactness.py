"""Exactness modes on a model whose logits really depend on the block's width."""

from __future__ import annotations

import random
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import make_prompt_cache
from msgspec.structs import replace

from core.decoding.probes.exactness import (
    FAST,
    Exactness,
    Profile,
    WidthProbe,
    exactness,
    machine_key,
    probe,
    profile,
)
from core.engine.engine import Engine
from core.engine.machine_profile import MachineProfile
from tests.core.decoding.test_loop import Oracle, assert_cache_equals_cold_start, decode, plain, tokens_of
from tests.core.toy import toy_model

NOISE = 0.2


class Wobbly(nn.Module):
    """The toy, with logits moved by up to NOISE in blocks of three or more tokens, as wide kernels do."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        # Small weights make close calls; the noise must be able to flip some of them.
        self.inner = toy_model()
        self.scale = scale

    @property
    def layers(self) -> Any:
        return self.inner.layers

    def __call__(self, ids: mx.array, cache: Any = None) -> mx.array:
        logits = self.inner(ids, cache=cache) * self.scale
        width = ids.shape[1]
        if not 3 <= width <= 20:
            return logits
        wave = mx.sin(mx.arange(logits.shape[-1]) * 12.9898 + width + ids.sum().astype(mx.float32))
        return logits + NOISE * wave


@pytest.fixture(scope="module")
def wobbly() -> Wobbly:
    return Wobbly(0.25)


def runs(model: Any, mode: Exactness) -> tuple[int, int, int]:
    """Of eight prompts: answers that differ from plain, tokens accepted, re-checks."""
    different = accepted = rechecked = 0
    for seed in range(8):
        rng = random.Random(seed)
        prompt = [rng.randrange(4, 260) for _ in range(40)]
        expected = plain(model, prompt, 60)
        steps, sequence = decode(model, prompt, Oracle(expected, 0.05, rng), count=60, exactness=mode)
        different += tokens_of(steps) != expected
        accepted += sum(step.accepted for step in steps)
        rechecked += sum(step.rechecked for step in steps)
        assert sum(len(step.tokens) for step in steps) == 60
        assert_cache_equals_cold_start(model.inner, sequence)
    return different, accepted, rechecked


@pytest.mark.sweep
def test_fast_can_differ_and_guarded_does_not(wobbly: Wobbly) -> None:
    different, accepted, rechecked = runs(wobbly, FAST)
    assert different > 0, "the noise is too small to test anything"
    assert rechecked == 0
    different, guarded_accepted, rechecked = runs(wobbly, Exactness("guarded", None, 2 * NOISE))
    assert different == 0
    assert rechecked > 0
    assert guarded_accepted > accepted // 4, "guarding must not end all drafting"


def test_exact_takes_only_proven_widths(wobbly: Wobbly) -> None:
    different, accepted, _ = runs(wobbly, Exactness("exact", 2))
    assert different == 0
    assert accepted > 100


def test_the_probe_finds_what_is_there(wobbly: Wobbly) -> None:
    found = probe(wobbly, lambda: make_prompt_cache(wobbly.inner), "wobbly")
    assert found.inputs >= 3
    assert found.exact_width == 2
    assert NOISE * 0.9 < found.noise < NOISE * 1.1
    assert exactness("exact", lambda: found) == Exactness("exact", 2)
    assert exactness("guarded", lambda: found) == Exactness("guarded", None, 2 * found.noise)


def test_fast_asks_for_no_probe() -> None:
    def never() -> Profile:
        raise AssertionError("nothing should be measured")

    assert exactness("fast", never) == FAST


def test_no_exact_width_means_no_drafts_and_says_so(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.core.engine.test_engine import run, settings

    noisy = Profile("k", 3, (WidthProbe(2, False, 1e-3),))
    monkeypatch.setattr(MachineProfile, "exactness", lambda self: noisy)
    prompt = [5, 6, 7, 8] * 10
    _, finished = run(toy_engine, prompt, settings(**{"decoding.exactness": "exact"}))
    assert finished.effective.drafter == "off"
    assert "same bits" in finished.effective.changes[0].reason
    assert finished.stats.drafted == 0


def test_the_profile_is_measured_once_and_kept(toy_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.decoding.probes import exactness as module

    loaded = toy_engine.loaded
    first = profile(loaded.model, loaded.new_cache, loaded.info)

    def fail(*arguments: object) -> Profile:
        raise AssertionError("measured again")

    monkeypatch.setattr(module, "probe", fail)
    assert profile(loaded.model, loaded.new_cache, loaded.info) == first
    other = replace(loaded.info, dtype="x")
    with pytest.raises(AssertionError, match="measured again"):
        profile(loaded.model, loaded.new_cache, other)


def test_another_number_of_threads_is_measured_anew(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums that are cut up differently differ in other bits."""
    info = toy_engine.loaded.info
    one = machine_key(info)
    monkeypatch.setattr("core.decoding.probes.exactness.threads_at_start", lambda: 64)
    assert machine_key(info) != one
