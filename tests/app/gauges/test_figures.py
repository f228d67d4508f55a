"""Figures: numbers as the strip writes them."""

from __future__ import annotations

import pytest

from app.gauges.figures import DASH, Figure, count, gigabytes, percent, seconds, short_count, speed


@pytest.mark.parametrize(
    ("value", "written"), [(0, "0.0"), (58.44, "58.4"), (99.94, "99.9"), (99.96, "100"), (1204.4, "1,204")]
)
def test_speeds(value: float, written: str) -> None:
    assert speed(value) == written


@pytest.mark.parametrize(
    ("value_s", "written"),
    [(0.414, "0.41"), (9.994, "9.99"), (9.996, "10.0"), (24.31, "24.3"), (99.96, "100"), (1204.0, "1,204")],
)
def test_seconds(value_s: float, written: str) -> None:
    assert seconds(value_s) == written


def test_shares_counts_and_bytes() -> None:
    assert percent(0.6407) == "64%"
    assert count(412306) == "412,306"
    assert [short_count(n) for n in (8192, 999_999, 4_190_000)] == ["8,192", "999,999", "4.19 M"]
    assert gigabytes(int(11.2 * 2**30)) == "11.2"


def test_a_figure_is_one_phrase() -> None:
    assert Figure("58.4", "tok/s").text == "58.4 tok/s"
    assert Figure("58.4", "tok/s").is_known
    assert Figure().text == DASH
    assert not Figure().is_known
