"""The acceptor on hand-made drafts."""

from __future__ import annotations

from core.decoding.planner import Walk, walk
from core.drafting.draft import EMPTY, Draft


def test_no_draft_gives_the_verifiers_token() -> None:
    assert walk(EMPTY, [7]) == Walk((), 7, 0)


def test_whole_chain_accepted() -> None:
    assert walk(Draft.chain([1, 2, 3]), [1, 2, 3, 4]) == Walk((0, 1, 2), 4, 3)


def test_chain_ends_at_the_first_difference() -> None:
    assert walk(Draft.chain([1, 2, 3]), [1, 9, 3, 4]) == Walk((0,), 9, 2)


def test_nothing_accepted() -> None:
    assert walk(Draft.chain([1, 2]), [5, 2, 3]) == Walk((), 5, 1)


def test_a_later_match_after_a_rejection_counts_for_nothing() -> None:
    assert walk(Draft.chain([1, 2]), [2, 2, 3]) == Walk((), 2, 1)


def test_tree_takes_the_branch_that_was_chosen() -> None:
    #        root → 1 → 3
    #             → 2 → 4 → 5
    tree = Draft((1, 2, 3, 4, 5), (-1, -1, 0, 1, 3))
    assert walk(tree, [2, 0, 4, 0, 5, 6]) == Walk((1, 3, 4), 6, 3)
    assert walk(tree, [1, 8, 4, 0, 5, 6]) == Walk((0,), 8, 2)
    assert walk(tree, [9, 0, 0, 0, 0, 0]) == Walk((), 9, 1)
