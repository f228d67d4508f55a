"""T(w): measured in pieces, cached, interpolated, corrected by the steps' own times."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from msgspec.structs import replace

import core.machine.profile as machine_profile
from core.decoding.planner import Planner
from core.decoding.sampling import top_ids
from core.decoding.tree import tree_pass
from core.drafting.draft import Draft
from core.drafting.gate import default_cost
from core.engine.engine import Engine
from core.machine.exactness import machine_key
from core.machine.profile import MachineProfile, Measurement, measure_pace
from core.machine.trials import Verdict, load_verdict
from core.machine.width_cost import (
    COSTS,
    WIDTHS,
    ContextCost,
    CostProfile,
    LiveCost,
    load_costs,
    low_times,
    measure,
    monotone,
    why_unreliable,
)
from core.models.loader import LoadedModel

PROFILE = CostProfile(
    "key",
    (
        ContextCost(256, {1: 0.04, 2: 0.044, 4: 0.05, 8: 0.06}, {1: 0.04, 8: 0.09}),
        ContextCost(1024, {1: 0.05, 8: 0.1}),
    ),
)


def test_costs_are_of_the_nearest_context_and_between_widths() -> None:
    near, far = PROFILE.at(100), PROFILE.at(9000)
    assert near(1) == far(1) == 1.0
    assert near(2) == pytest.approx(1.1)
    assert near(3) == pytest.approx(1.175)
    assert far(8) == pytest.approx(2.0)
    assert far(16) == pytest.approx(2.0 + 8 / 7)


def times(costs: dict[int, float], *, noise: float = 0.0) -> list[dict[int, float]]:
    """Rounds of a machine on which width w costs `costs[w]` plain steps of 40 ms."""
    rng = random.Random(0)
    return [{w: 0.04 * cost * (1 + noise * rng.random()) for w, cost in costs.items()} for _ in range(8)]


HEALTHY = {1: 1.0, 2: 1.1, 3: 1.2, 4: 1.3, 6: 1.5, 8: 1.7, 12: 2.6, 16: 2.7}


def shape(seconds: dict[int, float]) -> dict[int, float]:
    return {width: each / seconds[1] for width, each in seconds.items()}


def test_a_quiet_machine_is_measured_as_it_is() -> None:
    rounds = times(HEALTHY, noise=0.1)
    assert why_unreliable(rounds) == ""
    assert shape(monotone(low_times(rounds))) == pytest.approx(HEALTHY, rel=0.1)


def test_widths_that_seem_a_little_faster_are_levelled() -> None:
    fitted = monotone({1: 1.0, 2: 1.2, 3: 1.1, 4: 1.5})
    assert fitted[2] == fitted[3] == pytest.approx((1.2 * 1.1) ** 0.5)
    assert why_unreliable(times({**HEALTHY, 3: 1.0})) == ""


def test_a_plain_step_that_was_paged_in_or_one_dear_width_is_no_measurement() -> None:
    """Gemma 3 270M, as it was found: a cached profile of this kind made every wide block seem free."""
    nonsense = {1: 1.0, 2: 0.43, 3: 0.05, 4: 0.05, 6: 0.05, 8: 0.06, 12: 0.07, 16: 0.08}
    assert "out of order" in why_unreliable(times(nonsense))
    assert "width 16 took 40.0 plain steps" in why_unreliable(times({**HEALTHY, 16: 40.0}))


def test_a_slow_first_round_does_not_count() -> None:
    rounds = times(HEALTHY, noise=0.05)
    rounds[0] = {width: 12 * seconds for width, seconds in rounds[0].items()}
    assert why_unreliable(rounds) == ""
    assert shape(monotone(low_times(rounds))) == pytest.approx(HEALTHY, rel=0.1)


def test_a_machine_that_is_busy_for_the_first_half_gives_the_right_costs_or_none() -> None:
    even = times(HEALTHY, noise=0.05)
    for early in even[:4]:
        early.update({width: 3 * seconds for width, seconds in early.items()})
    assert why_unreliable(even) or shape(monotone(low_times(even))) == pytest.approx(HEALTHY, rel=0.1)
    # Busy between the widths: the plain steps of the first half look dear, or the wide blocks do.
    for slowed in ((1,), (6, 8, 12, 16)):
        rounds = times(HEALTHY, noise=0.05)
        for early in rounds[:4]:
            early.update({width: 3 * early[width] for width in slowed})
        assert "in the first rounds" in why_unreliable(rounds)


def test_times_that_agree_with_none_are_no_measurement() -> None:
    rng = random.Random(3)
    rounds = [{width: 0.04 * cost * 4 ** rng.random() for width, cost in HEALTHY.items()} for _ in range(8)]
    assert why_unreliable(rounds)


def answer(cost: LiveCost, true: dict[int, float], steps: int, *, plain_every: int = 2) -> None:
    widths = [width for width in true if width > 1]
    for number in range(steps):
        width = 1 if number % plain_every == 0 else widths[number // plain_every % len(widths)]
        cost.step(width, 0.04 * true[width])


@pytest.mark.parametrize("factor", [10.0, 3.0, 0.33, 0.1, 0.01])
def test_steps_overrule_a_prior_that_is_wrong_by_any_factor(factor: float) -> None:
    cost = LiveCost(lambda width: factor * HEALTHY[width] if width > 1 else 1.0)
    answer(cost, HEALTHY, 100)
    assert {width: cost(width) for width in HEALTHY} == pytest.approx(HEALTHY, rel=0.15)


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_widths_without_steps_follow_those_that_disproved_the_prior(factor: float) -> None:
    cost = LiveCost(lambda width: factor * HEALTHY[width])
    answer(cost, {1: 1.0, 8: 1.7}, 40)
    assert cost(12) == pytest.approx(HEALTHY[12], rel=0.6)
    assert cost(6) == pytest.approx(HEALTHY[6], rel=0.6)


def test_a_healthy_prior_is_hardly_moved() -> None:
    cost = LiveCost(HEALTHY.__getitem__)
    rng = random.Random(1)
    for number in range(300):
        width = rng.choice([1, 1, 2, 4, 8])
        pause = 20.0 if number % 37 == 0 else 1.0
        cost.step(width, 0.04 * HEALTHY[width] * (1 + 0.1 * rng.random()) * pause)
    assert {width: cost(width) for width in HEALTHY} == pytest.approx(HEALTHY, rel=0.08)


def test_live_times_move_the_cost_and_one_pause_does_not() -> None:
    cost = LiveCost(lambda width: 2.0 if width > 1 else 1.0)
    for _ in range(50):
        cost.step(1, 0.040)
        cost.step(8, 0.056)
    assert cost(8) == pytest.approx(1.4, abs=0.15)
    assert cost(4) == pytest.approx(2.0)
    before = cost(8)
    cost.step(8, 4.0)
    cost.step(1, 3.0)
    assert cost(8) == pytest.approx(before)


def test_plain_speed_is_that_of_recent_steps_or_as_measured_before() -> None:
    assert LiveCost().plain_tokens_per_s == 0.0
    cost = LiveCost(measured_plain_s=0.1)
    cost.step(4, 0.3)
    assert cost.plain_tokens_per_s == 10.0
    cost.step(1, 0.05)
    assert cost.plain_tokens_per_s == 20.0


def test_the_unit_is_a_plain_step_that_runs_ahead() -> None:
    cost = LiveCost(HEALTHY.__getitem__)
    assert cost.overhead is None
    assert not cost.is_priced()
    for _ in range(10):
        cost.step(1, 0.010, pipeline="ahead")
        cost.step(1, 0.013)
        cost.step(1, 0.030, pipeline="enters")
        cost.step(1, 0.020, pipeline="leaves")
    assert cost.is_priced()
    assert cost.overhead == pytest.approx(0.3)
    assert cost.plain_tokens_per_s == pytest.approx(100.0)
    assert {width: cost(width) for width in HEALTHY} == pytest.approx(
        {w: t + 0.3 for w, t in HEALTHY.items()}
    )
    for _ in range(100):
        cost.step(8, 0.030)
    assert cost(8) == pytest.approx(3.0, rel=0.1)


def test_what_asking_takes_is_at_first_that_of_an_earlier_answer() -> None:
    cost = LiveCost(HEALTHY.__getitem__, first_overhead=0.5)
    assert cost.is_priced()
    assert cost(1) == 1.5
    assert cost(8) == pytest.approx(HEALTHY[8] + 0.5)
    for _ in range(40):
        cost.step(1, 0.015)
        cost.step(8, 0.010 * (HEALTHY[8] + 0.5))
    assert cost(8) == pytest.approx(HEALTHY[8] + 0.5, rel=0.02)
    for _ in range(20):
        cost.step(1, 0.015, pipeline="ahead")
    assert cost(1) == 1.0
    assert cost.overhead == 0.0


def test_a_profile_hands_what_asking_takes_to_the_next_answer(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))  # nothing was measured before
    profile = MachineProfile(toy_engine.loaded)
    assert not profile.cost(100).is_priced()
    first = profile.cost(100)
    for _ in range(5):
        first.step(1, 0.010, pipeline="ahead")
        first.step(1, 0.012)
    assert profile.cost(100)(1) == pytest.approx(1.2)
    assert profile.cost(100)(1) == pytest.approx(1.2)  # also of an answer that timed nothing
    assert profile.cost(100, runs_ahead=False)(1) == 1.0  # as with a grammar
    assert profile.cost(100)(1) == pytest.approx(1.2)
    profile.keep_pace()
    assert MachineProfile(toy_engine.loaded).cost(100)(1) == pytest.approx(1.2)


def test_a_first_plain_step_that_was_paged_in_does_not_set_the_unit() -> None:
    cost = LiveCost(HEALTHY.__getitem__)
    cost.step(1, 4.0)
    answer(cost, HEALTHY, 60)
    assert cost(8) == pytest.approx(HEALTHY[8], rel=0.1)


def test_without_a_plain_step_there_is_no_unit_until_one_is_made() -> None:
    cost = LiveCost(lambda width: 1.5)
    cost.step(8, 1.0)
    assert cost(8) == 1.5
    assert not cost.needs_plain()
    for _ in range(40):
        cost.step(8, 1.0)
    assert cost.needs_plain()
    planner = Planner(cost, cost.needs_plain)
    draft = Draft((1, 2), (-1, 0), (0.9, 0.9))
    assert not len(planner.shape(draft, 8))
    cost.step(1, 0.1)
    assert not cost.needs_plain()
    assert cost(8) == pytest.approx(10.0)


def test_blocks_that_a_prior_forbids_are_tried_now_and_then() -> None:
    cost = LiveCost(lambda width: 10.0 * default_cost(width) if width > 1 else 1.0)
    planner = Planner(cost, cost.needs_plain)
    draft = Draft((1, 2, 3, 4, 5), (-1, 0, 1, 2, 3), (0.95,) * 5)
    widths = []
    for _ in range(400):
        width = 1 + len(planner.shape(draft, 8))
        cost.step(width, 0.04 * (1 + 0.1 * (width - 1)))
        planner.record(width, False, width)
        widths.append(width)
    assert widths[:100] == [1] * 100
    assert widths[-1] == 6, "the costs of this machine allow the whole draft"


def ticking(*steps_s: float) -> Callable[[], float]:
    """A clock that advances by `steps_s` in turn with each call."""
    turn, now = itertools.cycle(steps_s), 0.0

    def clock() -> float:
        nonlocal now
        now += next(turn)
        return now

    return clock


@pytest.fixture
def engine(toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """Of an empty home, on a machine on which every forward takes 10 ms."""
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(machine_profile, "measure", partial(measure, clock=ticking(0.01)))
    monkeypatch.setattr(machine_profile, "measure_pace", partial(measure_pace, clock=ticking(0.01)))
    engine = Engine()
    engine.use(toy_engine.loaded)
    return engine


@pytest.mark.sweep
def test_it_is_measured_while_idle_and_kept(engine: Engine) -> None:
    pieces = 0
    while engine.idle_work():
        pieces += 1
    assert pieces > len(WIDTHS)
    assert not engine.idle_work()
    held = load_costs(engine.loaded.info)
    assert held is not None
    assert set(held.contexts[0].seconds) == set(WIDTHS)
    assert all(seconds > 0 for seconds in held.contexts[0].seconds.values())
    again = Engine()
    again.use(engine.loaded)
    assert not again.idle_work(), "a cached profile needs no measuring"
    assert again.measure_cost().key == held.key


def test_profiles_of_older_versions_and_nonsense_are_not_trusted(engine: Engine, tmp_path: Path) -> None:
    info = engine.loaded.info
    COSTS.save(CostProfile(machine_key(info), (ContextCost(256, {1: 1.0, 2: 0.43, 3: 0.05}),)))
    assert load_costs(info) is None
    COSTS.save(CostProfile(machine_key(info), (ContextCost(256, {1: 0.04, 2: 0.05}),)))
    assert load_costs(info) is not None
    (path,) = (tmp_path / "cache" / "profiles").iterdir()
    path.rename(path.with_name(path.name.replace("cost-v3-", "cost-")))
    assert load_costs(info) is None


@pytest.mark.sweep
def test_a_measurement_that_fails_its_check_is_made_again_later(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    profile = MachineProfile(engine.loaded, lambda: now)
    busy = partial(measure, clock=ticking(0.01, 0.01, 0.01, 0.09, 0.02, 0.3, 0.05))
    monkeypatch.setattr(machine_profile, "measure", busy)

    def idle() -> None:
        while profile.some():
            pass

    idle()
    assert load_costs(engine.loaded.info) is None
    assert profile.cost(300)(8) == default_cost(8)
    assert profile.due_s() == 60.0
    assert not profile.some(), "not before it is due"
    now = 61.0
    monkeypatch.setattr(machine_profile, "measure", partial(measure, clock=ticking(0.01)))
    idle()
    assert load_costs(engine.loaded.info) is not None
    assert profile.due_s() is None
    assert profile.cost(300)(8) == pytest.approx(1.0)


def test_a_measurement_that_fails_waits_longer_and_is_then_given_up() -> None:
    now, result = 0.0, 7

    def begin() -> Generator[None, None, int]:
        yield
        return result

    measurement = Measurement(lambda: now, lambda: None, begin, lambda found: found != 7)

    def fails() -> bool:
        return measurement.some() and measurement.some()

    for wait_s in (60.0, 240.0):
        assert fails()
        assert measurement.due_s == wait_s
        now += wait_s - 1.0
        assert not measurement.some()
        now += 1.0
    assert fails()
    assert measurement.due_s is None
    now += 1e6
    assert not measurement.some()
    measurement.forget_failures()
    assert fails()
    now, result = now + 60.0, 8
    assert measurement.some()
    assert measurement.some()
    assert measurement.due_s is None


def test_a_value_measured_anew_is_not_replaced_by_a_half_measured_one() -> None:
    values = iter((1, 2))

    def begin() -> Generator[None, None, int]:
        value = next(values)
        yield
        return value

    measurement = Measurement(lambda: 0.0, lambda: None, begin, lambda found: True)
    assert measurement.some()
    assert measurement.anew() == 2
    assert not measurement.some()
    assert measurement.value == 2


def test_a_context_too_short_for_the_pace_fails_not(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.loaded, "info", replace(engine.loaded.info, context_tokens=511))
    profile = MachineProfile(engine.loaded)
    while profile.some():
        pass
    assert profile.due_s() is None


def test_memory_that_ran_out_is_no_verdict_on_the_model(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exhausted:
        def __call__(self, *arguments: object, **keywords: object) -> object:
            raise MemoryError("malloc")

    loaded = LoadedModel(Exhausted(), engine.loaded.tokenizer, engine.loaded.info)
    monkeypatch.setattr(loaded, "new_cache", engine.loaded.new_cache)
    profile = MachineProfile(loaded)
    with pytest.raises(MemoryError):
        profile.try_out()
    assert load_verdict(engine.loaded.info) is None
    assert profile.due_s() is not None
    monkeypatch.setattr(machine_profile, "try_readings", lambda *_: (Exhausted()() for _ in "x"))
    profile = MachineProfile(loaded)
    with pytest.raises(MemoryError):
        profile.some_readings()
    assert profile.due_s() is not None


def test_a_tree_costs_what_trees_cost_and_its_time_is_that_of_a_tree() -> None:
    cost = LiveCost(PROFILE.at(256), PROFILE.tree_factor(256))
    assert (cost(8), cost(8, True)) == pytest.approx((1.5, 2.25))
    assert PROFILE.tree_factor(1024)(8) == 1.0, "not measured there"
    for _ in range(20):
        cost.step(1, 0.04)
        cost.step(8, 0.18, tree=True)  # twice the profile's
    assert (cost(8), cost(8, True)) == pytest.approx((3.0, 4.5), rel=0.05)


@pytest.mark.sweep
def test_trees_are_measured_as_trees(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their masks are arrays, for which Metal has other kernels."""
    widths: list[int] = []

    def counted(model: object, cache: object, parents: list[int], *others: object) -> Any:
        widths.append(1 + len(parents))
        assert all(parent < node for node, parent in enumerate(parents))
        return tree_pass(model, cache, parents, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("core.machine.width_cost.tree_pass", counted)
    loaded = engine.loaded
    list(measure(loaded.model, loaded.new_cache, loaded.info, (128,)))
    assert widths == []
    monkeypatch.setattr(machine_profile, "measure", partial(measure, clock=ticking(0.01)))
    kept = engine.measure_cost((128,)).contexts[0]
    assert sorted(set(widths)) == list(WIDTHS[1:])
    assert set(kept.trees) == set(kept.seconds) == set(WIDTHS)
    monkeypatch.setattr(Verdict, "why_no_trees", "they differ")
    assert engine.measure_cost((128,)).contexts[0].trees == {}


def test_top_ids_are_the_best_in_order() -> None:
    mx.random.seed(0)
    logits = mx.random.normal((5, 5000)) * 4
    expected = mx.argsort(-logits, axis=-1)[:, :8].tolist()
    assert top_ids(logits, [0, 3, 4]) == [expected[0], expected[3], expected[4]]
    assert len(top_ids(mx.zeros((1, 5000)), [0])[0]) == 8
    certain = mx.where(mx.arange(5000) == 77, 50.0, 0.0)[None]
    assert top_ids(certain, [0]) == [[77]]


@pytest.mark.sweep
def test_the_pace_is_known_before_the_costs(engine: Engine) -> None:
    """Until the pace is known, the first document of a new user is read whole."""
    profile = MachineProfile(engine.loaded)
    while profile.dense_s(100) is None:
        assert load_costs(engine.loaded.info) is None
        assert profile.some()
    while profile.some() and load_costs(engine.loaded.info) is None:
        pass
    assert load_costs(engine.loaded.info) is not None
