"""auto: well-formed trees in the best order, budgets, poisoned evidence, and no trace of the last request."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.auto import AutoDrafter
from core.drafting.draft import Draft
from tests.core.drafting.support import (
    PASSAGE,
    any_ids,
    assert_well_formed,
    budgets,
    few_ids,
    observe_in_pieces,
    survives,
)

rows = st.lists(st.lists(st.integers(0, 4), max_size=8), max_size=3)


def reached(draft: Draft) -> list[float]:
    chances: list[float] = []
    for parent, confidence in zip(draft.parents, draft.confidence):
        chances.append(confidence * (chances[parent] if parent >= 0 else 1.0))
    return chances


@given(few_ids, st.lists(st.tuples(few_ids, rows), max_size=8), budgets, st.booleans())
def test_every_tree_is_well_formed_and_grown_best_first(
    prompt: list[int], steps: list[tuple[list[int], list[list[int]]]], budget: int, tree: bool
) -> None:
    drafter = AutoDrafter(1000, tree=tree)
    drafter.begin(prompt)
    for emitted, ranked in steps:
        drafter.observe(emitted[:5])
        drafter.observe_top(ranked)
        draft = drafter.draft(budget)
        assert_well_formed(draft, min(budget, 16))
        assert len(draft.confidence) == len(draft)
        assert tree or draft.is_chain
        chances = reached(draft)
        assert all(chance >= 0.02 for chance in chances)
        assert chances == sorted(chances, reverse=True)
        for node in range(-1, len(draft)):
            children = draft.children(node)
            assert len(children) <= 3
            assert sum(draft.confidence[child] for child in children) <= 1.0 + 1e-9


@given(few_ids, few_ids, st.integers(0, 24))
def test_a_smaller_budget_gives_the_beginning_of_a_larger_one(
    prompt: list[int], answer: list[int], budget: int
) -> None:
    drafter = AutoDrafter(1000)
    drafter.begin(prompt)
    drafter.observe(answer)
    assert drafter.draft(budget) == drafter.draft(100).prefix(budget)


@given(few_ids, few_ids, st.lists(st.integers(0, 9), max_size=20))
def test_pieces_and_requests_leave_no_trace(before: list[int], tokens: list[int], cuts: list[int]) -> None:
    used, fresh = AutoDrafter(1000), AutoDrafter(1000)
    used.begin(before)
    used.observe(before)
    used.observe_top([before])
    used.draft(9)
    used.begin(tokens[:10])
    fresh.begin(tokens[:10])
    observe_in_pieces(used, tokens[10:], cuts)
    fresh.observe(tokens[10:])
    assert used.draft(20) == fresh.draft(20)
    assert used.occupancy() == fresh.occupancy()


@given(any_ids, any_ids, st.booleans())
def test_no_token_sequence_raises(prompt: list[int], answer: list[int], tree: bool) -> None:
    survives(AutoDrafter(40, tree=tree), prompt, answer)


@pytest.mark.parametrize("tree", [True, False])
def test_a_repeated_passage_is_drafted(tree: bool) -> None:
    drafter = AutoDrafter(1000, tree=tree)
    drafter.begin([*PASSAGE, 1, 2, *PASSAGE[:10]])
    draft = drafter.draft(8)
    assert draft.tokens == PASSAGE[10:18]
    assert draft.is_chain
    assert min(draft.confidence) > 0.5


def test_a_loop_is_drafted_past_the_end_of_the_text() -> None:
    drafter = AutoDrafter(1000)
    drafter.begin([1, 2, 3] * 4)
    assert drafter.draft(9).tokens[:6] == (1, 2, 3, 1, 2, 3)


def test_two_continuations_make_a_fork_and_one_alternative_a_chain() -> None:
    prompt = [5, 6, 1, 9, 5, 6, 2, 8, 5, 6]
    drafter, chain = AutoDrafter(1000), AutoDrafter(1000, tree=False)
    drafter.begin(prompt)
    chain.begin(prompt)
    draft = drafter.draft(16)
    assert {draft.tokens[child] for child in draft.children(-1)} >= {1, 2}
    assert chain.draft(16).is_chain


def test_what_was_drafted_is_learned_from_as_if_it_had_not_been() -> None:
    """The guesses a draft has made are used again; a text without rankings shows that nothing differs."""
    drafting, silent = AutoDrafter(1000), AutoDrafter(1000)
    for drafter in (drafting, silent):
        drafter.begin([*PASSAGE, 1])
        drafter.observe(PASSAGE[:4])
    for start in range(4, 40, 4):
        drafting.draft(8)
        for drafter in (drafting, silent):
            drafter.observe(PASSAGE[start : start + 4])
    ours, theirs = drafting.draft(6), silent.draft(6)
    assert ours.tokens == theirs.tokens
    assert ours.confidence == pytest.approx(theirs.confidence, abs=0.02)


def test_rankings_of_rejected_nodes_are_used() -> None:
    drafter = AutoDrafter(1000)
    drafter.begin([1, 2, 3])
    assert not len(drafter.draft(9))
    drafter.observe_top([], [(3, [40, 41])])
    assert {40, 41} <= set(drafter.draft(9).tokens)


def test_occupancy_is_the_text_within_the_capacity() -> None:
    drafter = AutoDrafter(100)
    drafter.begin(list(accumulate([1] * 60)))
    assert (drafter.occupancy().used, drafter.occupancy().capacity) == (60, 100)
    drafter.observe(range(60))
    assert drafter.occupancy().used <= 100
