"""Times count from when an answer was asked for; those to come go by the pace of reading, which slows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from core.engine import engine as module
from core.engine.engine import Engine
from core.events import Finished, Generate, Message, PrefillProgress, Token
from core.machine.profile import TimedPace
from tests.core.engine.test_engine import settings

_RENDERED_S = 100.0
_SHORT_S, _LONG_S = 1.0, 9.0


class _Clock:
    """Hardly goes on unless it is moved."""

    def __init__(self) -> None:
        self.now_s = 7.0

    def __call__(self) -> float:
        self.now_s += 1e-9
        return self.now_s


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def engine(toy_folder: Path, clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """One whose template takes long."""
    render = module.render

    def slowly(*given: Any) -> Any:
        clock.now_s += _RENDERED_S
        return render(*given)

    monkeypatch.setattr(module, "render", slowly)
    made = Engine(clock=clock)
    made.load(str(toy_folder))
    return made


def asked() -> Generate:
    return Generate("r", (Message("user", "hello"),), settings(**{"sampling.max_tokens": 3}))


def test_the_template_is_waited_for(engine: Engine) -> None:
    *before, last = engine.generate(asked())
    assert isinstance(last, Finished)
    told = [event.time_s for event in before if isinstance(event, Token | PrefillProgress)]
    told += [last.stats.ttft_s, last.stats.prefill_s, last.stats.total_s]
    assert told == pytest.approx([_RENDERED_S] * len(told))


def test_who_asked_before_waits_longer(engine: Engine, clock: _Clock) -> None:
    requested_s = clock.now_s
    clock.now_s += 10
    *_, last = engine.generate(asked(), requested_s=requested_s)
    assert isinstance(last, Finished)
    assert last.stats.ttft_s == pytest.approx(10 + _RENDERED_S)


def _pace() -> TimedPace:
    """A machine where a chunk of 1,000 tokens takes 1 s at first and 9 s behind 8,000 others."""
    pace = TimedPace("toy")
    for _ in range(10):
        pace = pace.read(1000, 0, _SHORT_S).read(1000, 8000, _LONG_S)
    return pace


def test_the_time_left_grows_with_what_is_looked_back_on(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace, profile = _pace(), toy_engine._session.profile
    monkeypatch.setattr(profile, "_held_pace", lambda: pace)
    monkeypatch.setattr(profile, "timed", lambda *chunk: None)
    rng = random.Random(0)
    prompt = [rng.randrange(20, 80) for _ in range(400)]
    wanted = settings(**{"prefill.mode": "off", "prefill.chunk_tokens": 128, "sampling.max_tokens": 1})
    told = [e for e in toy_engine.generate_ids(prompt, wanted) if isinstance(e, PrefillProgress)]
    assert [e.done_tokens for e in told] == [0, 128, 256, 384, 399]
    assert told[0].seconds_left == pytest.approx(pace.seconds(399))
    assert (told[-1].seconds_left, told[-1].fraction) == (0.0, 1.0)
    assert all((event.seconds_left or 0) > 0 for event in told[:-1])
