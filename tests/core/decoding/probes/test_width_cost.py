"""T(w): measured in pieces, cached, interpolated, corrected by the steps' own times."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest
from msgspec.structs import replace

from core.decoding.probes.width_cost import (
    WIDTHS,
    ContextCost,
    CostProfile,
    LiveCost,
    load_profile,
    save_profile,
)
from core.decoding.top_ids import top_ids
from core.engine.engine import Engine

PROFILE = CostProfile(
    "key",
    (ContextCost(256, {1: 0.04, 2: 0.044, 4: 0.05, 8: 0.06}), ContextCost(1024, {1: 0.05, 8: 0.1})),
)


def test_costs_are_of_the_nearest_context_and_between_widths() -> None:
    near, far = PROFILE.at(100), PROFILE.at(9000)
    assert near(1) == far(1) == 1.0
    assert near(2) == pytest.approx(1.1)
    assert near(3) == pytest.approx(1.175)
    assert far(8) == pytest.approx(2.0)
    assert far(16) == pytest.approx(2.0 + 8 / 7)


def test_live_times_move_the_cost_and_one_pause_does_not() -> None:
    cost = LiveCost(lambda width: 2.0)
    for _ in range(50):
        cost.step(1, 0.040)
        cost.step(8, 0.056)
    assert cost(8) == pytest.approx(1.4, abs=0.08)
    assert cost(4) == 2.0
    before = cost(8)
    cost.step(8, 4.0)
    cost.step(1, 3.0)
    assert cost(8) == before


def test_without_a_plain_step_there_is_no_unit() -> None:
    cost = LiveCost(lambda width: 1.5)
    cost.step(8, 1.0)
    assert cost(8) == 1.5


def test_it_is_measured_while_idle_and_kept(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    engine = Engine()
    engine.use(toy_engine.loaded)
    pieces = 0
    while engine.idle_work():
        pieces += 1
    assert pieces > len(WIDTHS)
    assert not engine.idle_work()
    held = load_profile(toy_engine.loaded.info)
    assert held is not None
    assert set(held.contexts[0].seconds) == set(WIDTHS)
    assert all(seconds > 0 for seconds in held.contexts[0].seconds.values())
    again = Engine()
    again.use(toy_engine.loaded)
    assert not again.idle_work(), "a cached profile needs no measuring"
    assert again.measure_cost().key == held.key


def test_a_spoilt_profile_is_measured_again(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    info = replace(toy_engine.loaded.info, dtype="other")
    assert load_profile(info) is None
    held = toy_engine.measure_cost()
    save_profile(held)
    (path,) = (tmp_path / "cache" / "profiles").iterdir()
    assert load_profile(toy_engine.loaded.info) == held
    path.write_bytes(path.read_bytes()[:40])
    assert load_profile(toy_engine.loaded.info) is None


def test_top_ids_are_the_best_in_order() -> None:
    mx.random.seed(0)
    logits = mx.random.normal((5, 5000)) * 4
    expected = mx.argsort(-logits, axis=-1)[:, :8].tolist()
    assert top_ids(logits, [0, 3, 4]) == [expected[0], expected[3], expected[4]]


def test_top_ids_of_flat_and_of_certain_rows() -> None:
    assert len(top_ids(mx.zeros((1, 5000)), [0])[0]) == 8
    certain = mx.where(mx.arange(5000) == 77, 50.0, 0.0)[None]
    assert top_ids(certain, [0]) == [[77]]
    assert top_ids(certain.astype(mx.bfloat16), [0]) == [[77]]
