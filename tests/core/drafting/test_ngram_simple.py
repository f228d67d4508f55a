"""ngram-simple equals the seed's scan of the whole history, at a cost that does not grow with it."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.drafting.ngram_simple import NgramSimpleDrafter
from core.settings.drafting import NgramSimple
from tests.core.drafting.support import assert_well_formed, budgets, few_ids, observe_in_pieces


def scan(history: Sequence[int], settings: NgramSimple, budget: int) -> tuple[int, ...]:
    """The seed's rule, literally: longest suffix first, most recent earlier occurrence, k tokens on."""
    end = len(history)
    for n in range(settings.n_max, settings.n_min - 1, -1):
        for start in range(end - n - 1, -1, -1):
            if list(history[start : start + n]) == list(history[end - n :]):
                return tuple(history[start + n : start + n + min(settings.k, budget)])
    return ()


@st.composite
def ranges(draw: st.DrawFn) -> NgramSimple:
    n_min = draw(st.integers(1, 5))
    return NgramSimple(n_max=draw(st.integers(n_min, 7)), n_min=n_min, k=draw(st.integers(1, 10)))


@given(ranges(), few_ids, few_ids, budgets)
def test_equals_the_scan_after_every_token(
    settings: NgramSimple, prompt: list[int], answer: list[int], budget: int
) -> None:
    drafter = NgramSimpleDrafter(settings, 1000)
    drafter.begin(prompt)
    history = list(prompt)
    for token in [*answer, 0]:
        draft = drafter.draft(budget)
        assert draft.tokens == scan(history, settings, budget)
        assert draft.is_chain
        assert_well_formed(draft, budget)
        drafter.observe([token])
        history.append(token)


@given(few_ids, few_ids, st.lists(st.integers(0, 9), max_size=20))
def test_pieces_and_requests_leave_no_trace(before: list[int], tokens: list[int], cuts: list[int]) -> None:
    used, fresh = NgramSimpleDrafter(NgramSimple(), 1000), NgramSimpleDrafter(NgramSimple(), 1000)
    used.begin(before)
    used.begin(())
    observe_in_pieces(used, tokens, cuts)
    fresh.begin(tokens)
    assert used.draft(8) == fresh.draft(8)
    assert used.occupancy() == fresh.occupancy()


@given(st.lists(st.integers(0, 2**24 - 1), min_size=4, max_size=40))
def test_large_ids_do_not_collide(tokens: list[int]) -> None:
    drafter = NgramSimpleDrafter(NgramSimple(n_min=1), 1000)
    drafter.begin(tokens)
    assert drafter.draft(8).tokens == scan(tokens, NgramSimple(n_min=1), 8)


def _long(length: int) -> NgramSimpleDrafter:
    drafter = NgramSimpleDrafter(NgramSimple(), length)
    # A rare beginning and no other occurrence of it: a scan would have to walk all the way.
    middle = random.Random(7).choices(range(50_000), k=length)
    drafter.begin([60_000, 60_001, 60_002, 60_003, *middle, 60_000, 60_001, 60_002, 60_003])
    return drafter


def _lines_run(drafter: NgramSimpleDrafter) -> int:
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        drafter.draft(8)
        drafter.observe([60_000])
    finally:
        sys.settrace(before)
    return lines


def test_a_token_costs_the_same_after_any_history() -> None:
    short, long = _long(1_000), _long(64_000)
    assert len(short.draft(7)) == len(long.draft(7)) == 7
    assert _lines_run(long) == _lines_run(short) < 60
