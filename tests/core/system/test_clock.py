"""The clock, on clocks that are set by hand: what counts, and what is a pause."""

from __future__ import annotations

import itertools

import pytest

from core.system.clock import MOST_S, TICK_S, Clock


class Hands:
    """A wall clock and the processor's work."""

    def __init__(self) -> None:
        self.wall_s = 1000.0
        self.worked_s = 5.0
        self.clock = Clock(lambda: self.wall_s, lambda: self.worked_s)

    def go(self, seconds: float, worked: float = 1.0) -> None:
        """Time passes, of which the share `worked` is work, and nobody ticks."""
        self.wall_s += seconds
        self.worked_s += seconds * worked


def test_it_goes_as_the_wall_clock_while_it_ticks() -> None:
    hands = Hands()
    for _ in range(8):
        hands.go(TICK_S, worked=0.0)  # waiting for a graphics processor is no pause
        hands.clock.tick()
    assert hands.clock() == pytest.approx(8 * TICK_S)


def test_a_pause_hardly_counts() -> None:
    hands = Hands()
    hands.go(TICK_S)
    hands.clock.tick()
    hands.go(3600.0, worked=0.0)
    assert hands.clock() == pytest.approx(TICK_S + MOST_S)
    hands.clock.tick()
    hands.go(0.1)
    assert hands.clock() == pytest.approx(TICK_S + MOST_S + 0.1)


def test_a_busy_process_that_ticks_late_loses_nothing() -> None:
    hands = Hands()
    hands.go(7.0, worked=1.0)
    assert hands.clock() == pytest.approx(7.0)
    hands.clock.tick()
    hands.go(7.0, worked=2.0)  # on two cores
    assert hands.clock() == pytest.approx(14.0)


def test_it_never_goes_back_and_moves_on_with_any_work() -> None:
    hands = Hands()
    read = []
    for seconds, worked in itertools.product((0.1, 0.3, 2.0), (0.01, 0.5, 1.0)):
        hands.go(seconds, worked)
        read.append(hands.clock())
        if worked == 0.5:
            hands.clock.tick()
            read.append(hands.clock())
    assert read == sorted(read)
    hands.go(9.0, worked=0.0)
    before = hands.clock()
    hands.go(0.01)
    assert hands.clock() > before
