"""ThreadChoice on a simulated machine: the right number of threads with and without other programs."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from core.models.blas import ThreadChoice

_LOOK_S = 0.3


class Machine:
    """`cores` cores; `neighbours` busy loops beside the steps. A thread that shares its core holds all up."""

    def __init__(self, cores: int, *, sharing: float = 2.5) -> None:
        self.cores = cores
        self.neighbours = 0
        self.sharing = sharing
        self.time_s = 0.0
        self._looked_s = 0.0

    def step_s(self, threads: int) -> float:
        shared = threads + self.neighbours > self.cores
        return 0.1 / math.sqrt(threads) * (self.sharing if shared else 1.0)

    def others(self, threads: int) -> float:
        """A busy loop on a core of its own has it whole; the kernel shares the rest fairly."""
        asked = threads + self.neighbours
        return self.neighbours * min(1.0, self.cores / asked)

    def run(self, choice: ThreadChoice, seconds: float, *, decodes: bool = True) -> float:
        """Steps for so long; how many there were a second."""
        began_s, steps = self.time_s, 0
        while self.time_s < began_s + seconds:
            took_s = self.step_s(choice.threads)
            self.time_s += took_s
            steps += 1
            if decodes:
                choice.step(took_s)
            if self.time_s >= self._looked_s + _LOOK_S:
                self._looked_s = self.time_s
                choice.load(self.others(choice.threads))
        return steps / (self.time_s - began_s)


def test_nothing_changes_on_a_quiet_machine() -> None:
    machine, choice = Machine(2), ThreadChoice(2, 2)
    alone = 1 / machine.step_s(2)
    assert machine.run(choice, 60) > 0.999 * alone
    assert choice.threads == 2


def test_one_fewer_beside_a_neighbour_and_all_again_when_it_is_gone() -> None:
    machine, choice = Machine(2), ThreadChoice(2, 2)
    machine.run(choice, 5)
    machine.neighbours = 1
    held = 1 / machine.step_s(2)
    machine.run(choice, 3)
    assert choice.threads == 1
    assert machine.run(choice, 60) > 1.7 * held
    machine.neighbours = 0
    machine.run(choice, 2)
    assert choice.threads == 2


def test_reading_goes_by_what_others_use() -> None:
    machine, choice = Machine(2), ThreadChoice(2, 2)
    machine.neighbours = 1
    machine.run(choice, 2, decodes=False)
    assert choice.threads == 1
    machine.neighbours = 0
    machine.run(choice, 2, decodes=False)
    assert choice.threads == 2


def test_what_is_slower_is_not_kept_and_tried_less_and_less_often() -> None:
    # Sharing a core costs nothing here, so one thread is always the slower.
    machine, choice = Machine(2, sharing=1.0), ThreadChoice(2, 2)
    machine.neighbours = 1
    best = 1 / machine.step_s(2)
    machine.run(choice, 30)
    tried = [machine.run(choice, 1.0) < 0.999 * best for _ in range(100)]
    assert sum(tried) <= 6
    assert any(tried), "it is looked at again"
    assert machine.run(choice, 60) > 0.97 * best


def test_a_short_burst_of_others_changes_nothing() -> None:
    choice = ThreadChoice(2, 2)
    for others in (0.0, 1.0, 0.0, 1.0, 0.1):
        choice.load(others)
        assert choice.threads == 2


def test_the_way_back_is_not_left_to_noise() -> None:
    """On cores that share their memory two threads may be hardly faster than one."""
    choice = ThreadChoice(2, 2)
    for others in (1.0, 1.0):
        choice.load(others)
    assert choice.threads == 1
    for others in (0.1, 0.1):
        choice.load(others)
        choice.step(1.0)
        choice.step(1.0)
    for _ in range(8):
        choice.step(1.1)
    assert choice.threads == 2


def test_several_neighbours_take_several_threads() -> None:
    machine, choice = Machine(8), ThreadChoice(8, 8)
    machine.neighbours = 3
    machine.run(choice, 30)
    assert choice.threads == 5


@given(
    st.integers(1, 16),
    st.lists(st.tuples(st.floats(0.0, 20.0), st.lists(st.floats(0.001, 5.0), max_size=6)), max_size=60),
)
def test_the_number_is_always_possible(most: int, run: list[tuple[float, list[float]]]) -> None:
    choice = ThreadChoice(most, most)
    for others, steps in run:
        choice.load(others)
        for step in steps:
            choice.step(step)
        assert 1 <= choice.threads <= most


@given(
    st.integers(2, 16),
    st.lists(st.floats(0.0, 0.29), max_size=80),
    st.lists(st.floats(0.01, 9.0), min_size=1, max_size=9),
)
def test_without_others_slow_steps_alone_change_nothing(
    most: int, loads: list[float], steps: list[float]
) -> None:
    choice = ThreadChoice(most, most)
    for number, others in enumerate(loads):
        choice.load(others)
        choice.step(steps[number % len(steps)])
        assert choice.threads == most
