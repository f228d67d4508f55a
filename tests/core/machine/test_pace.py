"""Pace: a prediction from what was timed, none from nothing."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.machine.profile import Chunk, KeptPace, MachineProfile, TimedPace, finished, measure_pace


def fed(a: float, b: float, chunks: int = 12, width: int = 512) -> TimedPace:
    """A pace that was told chunks, one behind the other, of a machine with these two parts."""
    pace = TimedPace("k")
    for number in range(chunks):
        seconds = a * width + b * width * (number * width + width / 2)
        pace = pace.read(width, number * width, seconds)
    return pace


@pytest.mark.parametrize(("a", "b"), [(0.002, 0.0), (0.002, 1e-7), (0.0, 1e-7)])
@pytest.mark.parametrize(("tokens", "context"), [(100, 0), (5000, 0), (30_000, 0), (200, 8000)])
def test_both_parts_are_found(a: float, b: float, tokens: int, context: int) -> None:
    expected = a * tokens + b * tokens * (context + tokens / 2)
    assert fed(a, b).seconds(tokens, context) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("power", [-1, 3])
def test_it_never_says_less_than_nothing(power: int) -> None:
    """Later chunks that were quicker, as after another program ended, or ever slower."""
    pace = TimedPace("k")
    for number in range(12):
        pace = pace.read(512, 512 * number, 2.0 * (number + 1) ** power)
    for tokens, context in ((100, 0), (5000, 0), (5000, 30_000)):
        assert (pace.seconds(tokens, context) or -1) > 0


def test_chunks_of_one_kind_are_enough() -> None:
    pace = TimedPace("k").read(512, 0, 1.0).read(512, 0, 1.0)
    assert pace.seconds(1024) == pytest.approx(2.0)


def test_few_chunks_or_short_contexts_that_were_slow_are_no_law_yet() -> None:
    """As another program made it: the prompt's other 13 chunks do not take an hour and three quarters."""
    pace = TimedPace("k").read(512, 0, 52.0)
    for context in (512, 1024, 1536, 2048):
        pace = pace.read(512, context, 52.0 + context / 10)
        found = pace.fitted()
        assert found is not None
        assert found.seconds(512, 4096) < 2 * found.seconds(512, 0)
        assert context > 512 or found.seconds(512, 0) == pytest.approx(52, rel=0.01)
    two = TimedPace("k").read(512, 0, 52.0).read(512, 7168, 770.0)
    assert two.seconds(512, 7168) != pytest.approx(770, rel=0.2)
    # What goes on being so is believed.
    for context in range(2560, 5120, 512):
        pace = pace.read(512, context, 52.0 + context / 10)
    assert pace.seconds(512, 8192) == pytest.approx(52 + 819.2, rel=0.02)


@pytest.mark.parametrize(
    "chunks",
    [
        [(1, 3000, 0.4)],  # a follow-up that read its last token
        [(27, 3500, 0.9), (64, 3600, 77.0)],  # the model was paged in meanwhile
        [(96, 120, 116.0)],
    ],
)
def test_a_handful_of_tokens_says_nothing_about_a_long_text(chunks: list[tuple[int, int, float]]) -> None:
    """It said 19 hours for a minute and a half."""
    pace = TimedPace("k")
    for tokens, context, seconds in chunks:
        pace = pace.read(tokens, context, seconds)
    assert pace.seconds(56_779) is None


def test_a_machine_that_became_slower_is_noticed() -> None:
    pace = fed(0.001, 0.0)
    for number in range(40):
        pace = pace.read(512, 512 * (number % 12), 512 * 0.004)
    assert pace.seconds(1000) == pytest.approx(4.0, rel=0.2)


@pytest.mark.parametrize(("tokens", "seconds"), [(63, 1.0), (512, 0.0), (512, -1.0)])
def test_what_says_nothing_is_left_out(tokens: int, seconds: float) -> None:
    assert TimedPace("k").read(tokens, 0, seconds).seconds(100) is None


def test_it_is_measured_on_the_model(toy_engine: Engine) -> None:
    loaded = toy_engine.loaded
    now = itertools.count()
    clock = partial(next, now)
    steps = measure_pace(TimedPace("k"), loaded.model, loaded.new_cache, loaded.info, clock)
    found = finished(steps)
    assert len(found.chunks) == loaded.info.context_tokens // 256 - 1
    assert found.seconds(1000) == pytest.approx(1000 / 256)  # by that clock a chunk takes a second


def test_a_busy_machine_is_not_kept_as_the_pace(toy_engine: Engine) -> None:
    """The second chunk took three times as long when it was read again."""
    loaded = toy_engine.loaded
    clock = iter([0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 6.0])
    steps = measure_pace(TimedPace("k"), loaded.model, loaded.new_cache, loaded.info, lambda: next(clock))
    assert finished(steps) == TimedPace("k")


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_readings_replace_a_probe_that_was_wrong(factor: float) -> None:
    pace = TimedPace("k")
    for number in (1, 2):
        pace = pace.read(256, 256 * number, 256 * 0.002 * factor)
    for number in range(2):
        pace = pace.read(512, 512 * number, 512 * 0.002)
    assert pace.seconds(4000) == pytest.approx(8.0, rel=0.05)


@pytest.mark.parametrize("at", range(10))
def test_a_chunk_during_which_the_machine_slept_does_not_count(at: int) -> None:
    pace = TimedPace("k")
    for number in range(10):
        seconds = 0.002 * 512 + 1e-7 * 512 * (512 * number + 256)
        pace = pace.read(512, 512 * number, 600.0 if number == at else seconds)
    expected = 0.002 * 8000 + 1e-7 * 8000 * 4000
    assert pace.seconds(8000) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("a", "b"), [(0.006, 8e-6), (0.01, 1e-6)])
def test_attention_that_three_short_readings_show_is_believed(a: float, b: float) -> None:
    """With small models it costs more than everything else long before 4,096 tokens."""
    pace = TimedPace("k")
    for _ in range(3):
        for context in (0, 512):
            pace = pace.read(512, context, 512 * (a + b * (context + 256)))
    for tokens, context in ((500, 0), (1500, 0), (9000, 0), (500, 2000)):
        expected = tokens * (a + b * (context + tokens / 2))
        assert pace.seconds(tokens, context) == pytest.approx(expected, rel=0.02)


def test_scorers_have_speeds_of_their_own_and_old_scorings_count_less() -> None:
    pace, chunk = fed(0.02, 0.0), Chunk(512, 0, 512 * 0.02)
    chunks = pace.chunks
    pace = pace.scored("fusion", 4000, 40.0, chunk).scored("lexical", 4000, 0.4, chunk)
    assert pace.scoring_s("fusion") == pytest.approx(0.01)
    assert pace.scoring_s("lexical") == pytest.approx(0.0001)
    for _ in range(4):
        pace = pace.scored("fusion", 8000, 160.0, chunk)
    assert pace.scoring_s("fusion") == pytest.approx(0.02, rel=0.05)
    assert pace.scored("fusion", 10, 50.0, chunk) is pace  # a handful of tokens says nothing
    assert pace.chunks == chunks


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No other test's measurements of the same model."""
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))


@pytest.mark.parametrize("load", [1.0, 2.4, 8.0])
def test_scoring_beside_another_program_is_no_slower_scorer(load: float) -> None:
    """Chunk and scoring are slowed alike; once readings are slow for good, so is the predicted scoring."""
    pace = fed(0.02, 1e-6)
    pace = pace.scored("fusion", 4000, load * 40.0, Chunk(512, 1000, load * 512 * (0.02 + 1e-6 * 1256)))
    assert pace.scoring_s("fusion") == pytest.approx(0.01, rel=0.01)
    for chunk in fed(0.02 * load, 1e-6 * load, 24).chunks:
        pace = pace.read(chunk.tokens, chunk.context_tokens, chunk.seconds)
    assert pace.scoring_s("fusion") == pytest.approx(0.01 * load, rel=0.01)


@pytest.mark.usefixtures("nothing_kept")
def test_speeds_of_scoring_are_kept_beside_those_of_reading(toy_engine: Engine) -> None:
    info = toy_engine.loaded.info
    kept = KeptPace(info)
    kept.scored("fusion", 4000, 40.0)
    kept.timed(512, 0, 10.0)
    kept.keep_pace()
    assert KeptPace(info).scoring_s("fusion") == pytest.approx(0.01)
    assert KeptPace(info).scoring_s("lexical") is None


@pytest.mark.usefixtures("nothing_kept")
def test_a_short_timing_gives_a_pace_that_is_not_kept(toy_engine: Engine) -> None:
    profile = MachineProfile(toy_engine.loaded)
    before = profile.pace
    found = profile.probe()
    assert found.token_s > 0
    assert found.attention_s > 0
    assert profile.pace == before
