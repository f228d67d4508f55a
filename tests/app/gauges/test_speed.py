"""Speed: the line of the last 20 seconds."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF

from app.gauges.speed import SPAN_S, Sparkline

BOX = QRectF(0, 0, 100, 33)  # 30 px under the headroom


@pytest.fixture
def line() -> Sparkline:
    return Sparkline()


def test_it_starts_left_and_takes_20_seconds_to_the_right(line: Sparkline) -> None:
    for at_s in (100.0, 105.0, 110.0, 120.0):
        line.add(10.0, at_s)
    assert [point.x() for point in line.points(BOX)] == [0, 25, 50, 100]


def test_then_it_scrolls(line: Sparkline) -> None:
    for second in range(41):
        line.add(float(second), float(second))
    points = line.points(BOX)
    assert len(points) == SPAN_S + 1
    assert points[0].x() == 0
    assert points[-1].x() == 100


def test_heights_are_in_proportion_to_zero(line: Sparkline) -> None:
    assert line.points(BOX) == []
    for at_s, value in enumerate((-5.0, 20.0, 40.0)):
        line.add(value, float(at_s))
    assert [point.y() for point in line.points(BOX)] == [33, 18, 3]
    line.reference = 80.0
    assert [point.y() for point in line.points(BOX)] == [33, 25.5, 18]


def test_samples_are_bounded_however_often_they_come(line: Sparkline) -> None:
    for i in range(5000):
        line.add(1.0, i / 1000)
    assert len(line) == 240
    line.clear()
    assert len(line) == 0
