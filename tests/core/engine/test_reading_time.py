"""How long reading will take is said by the pace, which knows that later chunks look back on more."""

from __future__ import annotations

import random

import pytest

from core.engine.engine import Engine
from core.events import PrefillProgress
from core.prefill.pace import Pace
from tests.core.engine.test_engine import settings

_SHORT_S, _LONG_S = 1.0, 9.0


def _pace() -> Pace:
    """A machine where a chunk of 1,000 tokens takes 1 s at first and 9 s behind 8,000 others."""
    pace = Pace("toy")
    for _ in range(10):
        pace = pace.read(1000, 0, _SHORT_S).read(1000, 8000, _LONG_S)
    return pace


def test_the_time_left_grows_with_what_is_looked_back_on(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace, profile = _pace(), toy_engine._here.profile
    monkeypatch.setattr(profile, "_held_pace", lambda: pace)
    monkeypatch.setattr(profile, "timed", lambda *chunk: None)
    rng = random.Random(0)
    prompt = [rng.randrange(20, 80) for _ in range(400)]
    wanted = settings(**{"prefill.mode": "off", "prefill.chunk_tokens": 128, "sampling.max_tokens": 1})
    told = [e for e in toy_engine.generate_ids(prompt, wanted) if isinstance(e, PrefillProgress)]
    assert [e.done_tokens for e in told] == [0, 128, 256, 384, 399]
    for event in told[:-1]:
        left = event.total_tokens - event.done_tokens
        assert event.seconds_left == pytest.approx(pace.seconds(left, event.done_tokens))
    # At the pace of the first chunk alone the rest would seem shorter than it is.
    assert (told[1].seconds_left or 0) > 271 / 128 * (pace.seconds(128) or 0)
    assert told[-1].seconds_left == 0.0
