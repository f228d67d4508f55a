"""Forecasts: within the context, resting on timed chunks; the words of displays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.events import PrefillProgress, ReadingPace
from core.prefill.forecast import display, duration, forecast, time_left
from core.settings.prefill import DOCUMENT_TAIL_TOKENS, Prefill

PACES = st.builds(ReadingPace, st.floats(1e-4, 1.0), st.floats(0.0, 1e-4))
TOKENS = st.integers(0, 100_000)


@given(
    new_tokens=TOKENS,
    cached_tokens=TOKENS,
    context_tokens=st.integers(256, 131_072),
    max_tokens=st.integers(1, 8192),
    mode=st.sampled_from(["auto", "on", "off"]),
    keep_pct=st.sampled_from([1.0, 12.0, 60.0, 100.0]),
    pace=st.none() | PACES,
)
def test_nothing_is_promised_that_the_context_cannot_hold(
    new_tokens: int,
    cached_tokens: int,
    context_tokens: int,
    max_tokens: int,
    mode: str,
    keep_pct: float,
    pace: ReadingPace | None,
) -> None:
    prefill = Prefill(mode=mode, keep_pct=keep_pct)  # type: ignore[arg-type]
    will = forecast(new_tokens, cached_tokens, context_tokens, prefill, max_tokens=max_tokens, pace=pace)
    assert 0 <= will.read_tokens <= new_tokens
    assert will.all_fits == (cached_tokens + new_tokens < context_tokens)
    if not will.all_fits:
        assert will.dense_s is None
        assert will.read_tokens < context_tokens
        assert will.reads_some <= prefill.reads_beyond
    if pace is None:
        assert will.read_s is None
        assert will.dense_s is None
    elif will.dense_s is not None:
        assert will.dense_s == pace.seconds(new_tokens, cached_tokens)
        assert (will.read_s or 0.0) <= will.dense_s


def test_what_automatic_mode_reads() -> None:
    def read(tokens: int, token_s: float | None, **settings: object) -> int:
        pace = None if token_s is None else ReadingPace(token_s, 0.0)
        prefill = Prefill(**settings)  # type: ignore[arg-type]
        return forecast(tokens, 0, 0, prefill, max_tokens=1024, pace=pace).read_tokens

    assert read(10_000, None, keep_pct=20.0) == 2_000 + DOCUMENT_TAIL_TOKENS
    assert read(2_047, 1.0) == 2_047  # below the threshold
    assert read(5_000, 0.01, keep_pct=20.0) == 1_000 + DOCUMENT_TAIL_TOKENS  # 50 s
    assert read(5_000, 0.001) == 5_000  # 5 s
    assert read(1_000, None, mode="on", keep_pct=30.0) == 300 + DOCUMENT_TAIL_TOKENS
    assert read(50_000, 1.0, mode="off") == 50_000


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (8.4, "8 s"),
        (59.6, "1 min 0 s"),
        (112, "1 min 52 s"),
        (3600, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (7512, "2 h 5 min 12 s left"),
        (100.4, "1 min 40 s left"),
        (40, "40 s left"),
        (3, "3 s left"),
        (2.4, "a few seconds left"),
        (0, "a few seconds left"),
        (-1.4, "a few seconds left"),
        (-2, "2 s longer than expected"),
        (-75, "1 min 15 s longer than expected"),
    ],
)
def test_time_left_in_words(seconds: float, words: str) -> None:
    assert time_left(seconds) == words


@given(st.floats(-4000, 20_000))
def test_no_words_hold_for_longer_than_five_seconds(seconds: float) -> None:
    assert time_left(seconds) != time_left(seconds - 5)


def test_words_of_a_prefill() -> None:
    scoring = PrefillProgress("r", 0, 4000, 0, 100.0, "scoring", 1000, at_s=50.0)
    assert display(scoring, 50.0).words == "Choosing passages… 1 min 40 s left"
    assert display(scoring, 53.0).words == "Choosing passages… 1 min 37 s left"
    assert display(replace(scoring, seconds_left=None), 50.0).words == "Choosing passages…"
    sparse = PrefillProgress("r", 200, 800, 0, 40.0, "reading", 4000, 600, passages=18)
    assert display(sparse, 0.0).words == "Reading 18 passages, 40 s left"
    assert display(replace(sparse, passages=1), 0.0).title == "Reading 1 passage"
    dense = PrefillProgress("r", 1000, 5000, 800, 40.0)
    assert display(dense, 0.0).words == "Reading 4,200 tokens, 40 s left"
    assert display(replace(dense, seconds_left=None), 0.0).words == "Reading 4,200 tokens"
    # At the end nothing is counted on.
    done = PrefillProgress("r", 5000, 5000, 800, 0.0, time_s=60.0, fraction=1.0, at_s=50.0)
    assert display(done, 90.0) == display(done, 50.0)
    assert (display(done, 50.0).left, display(done, 50.0).percent) == ("a few seconds left", "100%")
    assert display(replace(done, fraction=0.999), 50.0).percent == "99%"
