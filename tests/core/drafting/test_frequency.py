"""frequency against a recount of its window; ties, chaining, and counts that leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting import frequency
from core.drafting.frequency import FrequencyDrafter
from core.settings.drafting import Frequency
from tests.core.drafting.support import (
    PASSAGE,
    any_ids,
    assert_well_formed,
    budgets,
    few_ids,
    observe_in_pieces,
    survives,
)

settings = st.builds(Frequency, order_max=st.integers(2, 5), k=st.integers(1, 10))
WINDOW_TOKENS = 24


@pytest.fixture(autouse=True, scope="module")
def short_window() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frequency, "_WINDOW_TOKENS", WINDOW_TOKENS)
        yield


def recount(history: Sequence[int], settings: Frequency, budget: int) -> tuple[int, ...]:
    """The rule on the bare window: longest context, most frequent, most recent among equals."""
    window = list(history[-WINDOW_TOKENS:])
    text = list(window)
    while len(text) < len(window) + min(settings.k, budget):
        for length in range(settings.order_max - 1, 0, -1):
            seen = [
                window[i]
                for i in range(length, len(window))
                if length <= len(text) and window[i - length : i] == text[-length:]
            ]
            if seen:
                latest = {token: i for i, token in enumerate(seen)}
                text.append(max(latest, key=lambda token: (seen.count(token), latest[token])))
                break
        else:
            break
    return tuple(text[len(window) :])


def runs(history: Sequence[int], settings: Frequency) -> int:
    window = history[-WINDOW_TOKENS:]
    return sum(
        len({tuple(window[i : i + order]) for i in range(len(window) - order + 1)})
        for order in range(2, settings.order_max + 1)
    )


@given(settings, few_ids, few_ids, budgets)
def test_equals_a_recount_after_every_token(
    settings: Frequency, prompt: list[int], answer: list[int], budget: int
) -> None:
    drafter = FrequencyDrafter(settings)
    drafter.begin(prompt)
    history = list(prompt)
    for token in [*answer, 0]:
        draft = drafter.draft(budget)
        assert draft.tokens == recount(history, settings, budget)
        assert draft.is_chain
        assert_well_formed(draft, budget)
        assert drafter.occupancy().used == runs(history, settings)
        drafter.observe([token])
        history.append(token)


@given(settings, few_ids, few_ids, st.lists(st.integers(0, 50), max_size=20))
def test_pieces_and_requests_leave_no_trace(
    settings: Frequency, before: list[int], tokens: list[int], cuts: list[int]
) -> None:
    used, fresh = FrequencyDrafter(settings), FrequencyDrafter(settings)
    used.begin(before)
    used.begin(())
    observe_in_pieces(used, tokens, cuts)
    fresh.begin(tokens)
    assert used.draft(20) == fresh.draft(20)
    assert used.occupancy() == fresh.occupancy()


@given(settings, any_ids, any_ids)
def test_no_token_sequence_raises(settings: Frequency, prompt: list[int], answer: list[int]) -> None:
    survives(FrequencyDrafter(settings), prompt, answer)


def test_a_repeated_passage_is_drafted() -> None:
    drafter = FrequencyDrafter(Frequency())
    drafter.begin([*PASSAGE[:14], 1, 2, *PASSAGE[:8]])
    assert drafter.draft(64).tokens == PASSAGE[8:12]
    assert drafter.draft(2).tokens == PASSAGE[8:10]


def test_the_longest_context_decides() -> None:
    drafter = FrequencyDrafter(Frequency(k=1))
    # After 3 alone, 9 is three times as frequent; after 1 2 3 only 4 was ever seen.
    drafter.begin([1, 2, 3, 4, 7, 3, 9, 8, 3, 9, 7, 3, 9, 1, 2, 3])
    assert drafter.draft(8).tokens == (4,)


def test_the_recent_one_wins_a_tie_and_the_frequent_one_wins_otherwise() -> None:
    drafter = FrequencyDrafter(Frequency(order_max=2, k=1))
    drafter.begin([5, 1, 5, 2, 5])
    assert drafter.draft(8).tokens == (2,)
    drafter.observe([1, 5])
    assert drafter.draft(8).tokens == (1,)


def test_what_leaves_the_window_no_longer_counts() -> None:
    drafter = FrequencyDrafter(Frequency(order_max=2, k=1))
    drafter.begin([5, 1] * 4)
    drafter.observe([5, 2, 5])
    assert drafter.draft(8).tokens == (1,)
    drafter.observe([7, *range(8, 24), 5])
    # Twenty-four tokens are left, and of the followers of 5 in them 1 is gone.
    assert drafter.draft(8).tokens == (7,)


def test_memory_is_bounded_by_the_window() -> None:
    drafter = FrequencyDrafter(Frequency())
    drafter.begin(range(20_000))
    drafter.observe(range(20_000, 40_000))
    held = drafter.occupancy()
    assert held.capacity == sum(WINDOW_TOKENS - n for n in (1, 2, 3))
    assert held.used == held.capacity
