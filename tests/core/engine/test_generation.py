"""The statistics of an answer, against what its steps add up to."""

from __future__ import annotations

import random
from typing import Any

import pytest

from core.decoding.loop import Step
from core.engine.generation import Tally
from core.events import PositionStat, Stats


def step_of(emitted: int, drafted: int = 0, tested: int = 0, **more: Any) -> Step:
    return Step((7,) * emitted, drafted, emitted - 1, tested, 1e-3, **more)


@pytest.mark.parametrize("seed", range(4))
def test_a_tally_counts_every_step(seed: int) -> None:
    rng = random.Random(seed)
    stats = Stats()
    tally, now_s, steps, times = Tally(stats), 0.5, list[Step](), list[float]()
    assert tally.live_tokens_per_s == 0.0
    for _ in range(rng.randint(1, 40)):
        drafted = rng.choice((0, 0, 3, 5))
        accepted = rng.randint(0, drafted)
        tested = min(drafted, accepted + rng.randint(0, 1))
        kind = rng.choice(("single", "enters", "ahead", "leaves"))
        host_s = rng.random()
        steps.append(step_of(accepted + 1, drafted, tested, pipeline=kind, host_s=host_s))
        times.append(now_s)
        tally.add(steps[-1], now_s)
        recent = [at for at, time_s in enumerate(times) if now_s - time_s <= 2.0]
        later = sum(len(steps[at].tokens) for at in recent[1:])
        span_s = now_s - times[recent[0]]
        assert tally.live_tokens_per_s == pytest.approx(later / span_s if span_s else 0.0)
        now_s += rng.choice((0.1, 0.4, 0.9, 2.0, 3.0))
    tally.sum_up()
    counts = [len(step.tokens) for step in steps]
    assert (stats.steps, stats.tokens) == (len(steps), sum(counts))
    assert stats.bonus == sum(step.drafted > 0 for step in steps)
    assert stats.normal == sum(not step.drafted for step in steps)
    assert (stats.drafted, stats.accepted) == (
        sum(step.drafted for step in steps), sum(step.accepted for step in steps)
    )  # fmt: skip
    assert stats.ttft_s == times[0]
    assert stats.decode_s == pytest.approx(times[-1] - times[0])
    assert stats.tokens_per_s == pytest.approx(sum(counts[1:]) / (times[-1] - times[0] or 1.0))
    assert stats.mean_per_step == pytest.approx(sum(counts) / len(steps))
    assert stats.acceptance == pytest.approx(stats.accepted / (stats.tested or 1))
    assert stats.positions == tuple(
        PositionStat(sum(step.tested > at for step in steps), sum(step.accepted > at for step in steps))
        for at in range(max(step.tested for step in steps))
    )
    waits = sorted(
        [step.host_s * 1e3 for step in steps if step.pipeline in ("single", "enters")][1:] or [0.0]
    )
    middle = len(waits) // 2
    median = waits[middle] if len(waits) % 2 else (waits[middle - 1] + waits[middle]) / 2
    assert stats.host_ms_median == pytest.approx(median)
