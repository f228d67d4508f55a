"""Batches for the screen: thirty a second, whole steps, nothing lost. The clock is ours."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.session.chats.coalescer import INTERVAL_S, Coalescer
from core.events import Origin, Token
from tests.app.session.words import token


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_first_step_goes_through_at_once_and_the_next_waits_for_its_time() -> None:
    clock = Clock()
    coalescer = Coalescer(clock)
    coalescer.add(token(0))
    assert coalescer.due_in_s() == 0.0
    assert coalescer.take() == (token(0),)
    assert coalescer.due_in_s() is None
    coalescer.add(token(1))
    assert coalescer.take() == ()
    clock.now_s += INTERVAL_S / 4
    due_in_s = coalescer.due_in_s()
    assert due_in_s is not None
    assert abs(due_in_s - INTERVAL_S * 3 / 4) < 1e-9
    clock.now_s += INTERVAL_S
    assert coalescer.take() == (token(1),)


def test_accepted_tokens_wait_for_the_end_of_their_step() -> None:
    coalescer = Coalescer(Clock())
    run = [token(0, origin="accepted", step=1), token(1, origin="accepted", step=1)]
    for one in run:
        coalescer.add(one)
    assert coalescer.due_in_s() is None
    assert coalescer.take() == ()
    bonus = token(2, origin="bonus", step=1)
    coalescer.add(bonus)
    begun = token(3, origin="accepted", step=2)
    coalescer.add(begun)
    assert coalescer.take() == (*run, bonus)
    assert coalescer.drain() == (begun,)
    assert coalescer.drain() == ()
    coalescer.add(token(4))  # after it, at once
    assert coalescer.take() == (token(4),)


@given(st.lists(st.tuples(st.sampled_from(["accepted", "bonus", "normal"]), st.floats(0, 0.1)), max_size=60))
def test_nothing_is_lost_reordered_or_too_often(arrivals: list[tuple[Origin, float]]) -> None:
    clock = Clock()
    coalescer = Coalescer(clock)
    given_in: list[Token] = []
    out: list[Token] = []
    taken_at: list[float] = []
    for position, (origin, pause_s) in enumerate(arrivals):
        clock.now_s += pause_s
        one = token(position, origin=origin)
        given_in.append(one)
        coalescer.add(one)
        if batch := coalescer.take():
            assert batch[-1].origin != "accepted"
            out += batch
            taken_at.append(clock.now_s)
    out += coalescer.drain()
    assert out == given_in
    assert all(later - sooner >= INTERVAL_S - 1e-9 for sooner, later in itertools.pairwise(taken_at))
