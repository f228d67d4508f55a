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
