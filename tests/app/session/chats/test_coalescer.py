"""Batches for the screen: thirty a second, whole steps, nothing lost. The clock is ours."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.session.chats.coalescer import INTERVAL_S, LEAST_TOKENS, LONGEST_PERIOD, Coalescer, Repetition
from core.events import Origin, Token
from tests.app.session.words import token


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_first_step_goes_through_at_once() -> None:
    coalescer = Coalescer(Clock())
    assert coalescer.due_in_s() is None
    coalescer.add(token(0))
    assert coalescer.due_in_s() == 0.0
    assert coalescer.take() == (token(0),)
    assert coalescer.due_in_s() is None


def test_the_next_waits_for_its_time() -> None:
    clock = Clock()
    coalescer = Coalescer(clock)
    coalescer.add(token(0))
    coalescer.take()
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


def test_draining_gives_what_is_left_and_starts_afresh() -> None:
    clock = Clock()
    coalescer = Coalescer(clock)
    coalescer.add(token(0))
    coalescer.take()
    coalescer.add(token(1, origin="accepted"))
    assert coalescer.drain() == (token(1, origin="accepted"),)
    assert coalescer.drain() == ()
    coalescer.add(token(0))
    assert coalescer.take() == (token(0),)


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


ROOT = Path(__file__).parents[4]


def alarm(ids: list[int]) -> int | None:
    """After how many tokens."""
    repetition = Repetition()
    return next((count for count, each in enumerate(ids, start=1) if repetition.add(each)), None)


@given(
    st.lists(st.integers(0, 9), max_size=60),
    st.lists(st.integers(10, 99), min_size=1, max_size=LONGEST_PERIOD),
)
def test_a_loop_is_found_as_soon_as_it_is_certain(before: list[int], loop: list[int]) -> None:
    found = alarm(before + loop * 1000)
    assert found is not None
    assert found <= len(before) + max(LEAST_TOKENS, 4 * len(loop))


@pytest.mark.sweep
@given(st.integers(1, LONGEST_PERIOD))
def test_one_token_that_differs_in_each_round_is_no_loop(period: int) -> None:
    ids = [token for round_ in range(60) for token in (*range(1000, 1000 + period), 2000 + round_)]
    assert alarm(ids) is None


@pytest.mark.sweep
@pytest.mark.parametrize("ending", ["py", "md", "json", "toml", "svg"])
def test_no_file_of_this_project_is_taken_for_a_loop(ending: str) -> None:
    """Word by word, which repeats more than tokens do."""
    files = [
        path
        for folder in ("app", "core", "docs", "resources")
        for path in (ROOT / folder).rglob(f"*.{ending}")
    ]
    files += ROOT.glob(f"*.{ending}")
    assert files
    for path in files:
        words: dict[str, int] = {}
        ids = [words.setdefault(word, len(words)) for word in path.read_text("utf-8")[:200_000].split()]
        assert alarm(ids) is None, path
