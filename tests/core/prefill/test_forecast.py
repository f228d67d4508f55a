"""Forecasts: within the context, resting on timed chunks, and a progress that never falls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.events import ReadingPace
from core.prefill.forecast import PrefillClock, forecast
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


Work = tuple[str, int, int]  # scoring or reading, tokens reused, tokens to read


@given(
    st.lists(st.tuples(st.sampled_from(["score", "read"]), TOKENS, st.integers(1, 5000)), max_size=4),
    st.integers(0, 3000),
    PACES,
)
def test_progress_never_falls_and_time_left_is_that_of_what_is_left(
    works: list[Work], draft_tokens: int, pace: ReadingPace
) -> None:
    """Whatever follows: scoring twice, a sparse reading that failed and is made again, a draft model."""
    clock = PrefillClock(pace.seconds)
    if draft_tokens:
        clock.expect_draft(draft_tokens, pace.seconds)
    fraction = 0.0
    for kind, reused, tokens in [*works, ("read", 10, 700)]:
        before_s = float("inf")
        for done in range(0, tokens + 1, max(1, tokens // 7)):
            if kind == "score":
                clock.scored(done, tokens)
            else:
                left_s = clock.read(reused + done, reused + tokens, reused)
                assert left_s is not None
                draft_s = pace.seconds(draft_tokens)
                expected_s = pace.seconds(tokens - done, reused + done) + draft_s
                assert abs(left_s - expected_s) <= 1e-9 * expected_s
                assert left_s <= before_s
                before_s = left_s
            assert fraction <= clock.fraction <= 1.0
            fraction = clock.fraction
    if draft_tokens:
        assert clock.fraction < 1.0
        assert clock.read_by_draft(draft_tokens) == 0.0
    assert clock.fraction == 1.0


def test_without_timed_chunks_there_is_no_time() -> None:
    clock = PrefillClock(lambda tokens, context_tokens: None)
    clock.scored(500, 1000)
    assert clock.read(100, 200, 0) is None
    known = PrefillClock(lambda tokens, context_tokens: 1.0)
    known.expect_draft(100, lambda tokens, context_tokens: None)
    assert known.read(100, 200, 0) is None  # how fast the draft model reads is unknown
