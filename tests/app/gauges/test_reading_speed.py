"""ReadingSpeed: tokens a second out of progress reports."""

from __future__ import annotations

import pytest

from app.gauges.reading_speed import ReadingSpeed


def test_two_reports_make_a_speed() -> None:
    speed = ReadingSpeed()
    assert speed.add(0, 10.0) is None
    assert speed.add(512, 12.0) == pytest.approx(256)


def test_only_the_last_seconds_count() -> None:
    speed = ReadingSpeed()
    for second in range(11):
        latest = speed.add(100 * second if second < 5 else 400 + 10 * (second - 4), float(second))
    assert latest == pytest.approx(10)


def test_slow_reports_still_make_a_speed() -> None:
    speed = ReadingSpeed()
    speed.add(0, 0.0)
    assert speed.add(1000, 20.0) == pytest.approx(50)
    assert speed.add(3000, 40.0) == pytest.approx(100)


def test_a_new_prompt_starts_over() -> None:
    speed = ReadingSpeed()
    speed.add(0, 0.0)
    speed.add(5000, 1.0)
    assert speed.add(0, 2.0) is None
    assert speed.add(100, 3.0) == pytest.approx(100)


def test_the_same_moment_gives_none() -> None:
    speed = ReadingSpeed()
    speed.add(0, 1.0)
    assert speed.add(100, 1.0) is None
