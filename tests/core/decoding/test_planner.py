"""Planner against every sub-tree there is; the rate; budgets, pending rows, silent drafts; the walk."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decoding.planner import Planner, Walk, walk
from core.drafting.draft import EMPTY, Draft, Guess, grow, sanitise


@st.composite
def drafts(draw: st.DrawFn, most: int = 8) -> Draft:
    size = draw(st.integers(0, most))
    parents = tuple(draw(st.integers(-1, node - 1)) for node in range(size))
    confidence = tuple(draw(st.floats(0, 1)) for _ in range(size))
    return Draft(tuple(range(100, 100 + size)), parents, confidence)


costs = st.lists(st.floats(0.0, 1.5), min_size=12, max_size=12).map(
    lambda steps: [1.0 + sum(steps[:width]) for width in range(len(steps) + 1)]
)


def worth(draft: Draft, nodes: tuple[int, ...], rate: float, cost: list[float], pending: int = 1) -> float:
    """Expected tokens less what their time is worth; −1 for a set that is no tree."""
    reached: dict[int, float] = {-1: 1.0}
    for node in nodes:
        if draft.parents[node] not in reached:
            return float("-inf")
        reached[node] = reached[draft.parents[node]] * draft.confidence[node]
    return sum(reached.values()) - rate * cost[pending + len(nodes) - 1]


def nodes_of(part: Draft) -> tuple[int, ...]:
    """Tokens name the nodes of `drafts`."""
    return tuple(token - 100 for token in part.tokens)


@given(drafts(), costs, st.integers(0, 9), st.integers(1, 3))
def test_no_sub_tree_is_worth_more(draft: Draft, cost: list[float], budget: int, pending: int) -> None:
    planner = Planner(lambda width, tree: cost[width - 1])
    part = planner.shape(draft, budget, pending)
    assert len(part) <= budget
    assert sanitise(part, vocabulary=200, budget=budget) == part
    everything = range(len(draft))
    best = max(
        worth(draft, nodes, planner.rate, cost, pending)
        for size in range(min(budget, len(draft)) + 1)
        for nodes in combinations(everything, size)
    )
    assert worth(draft, nodes_of(part), planner.rate, cost, pending) == pytest.approx(best)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=12), costs, st.integers(1, 3), st.booleans())
def test_growth_ends_only_where_no_part_with_more_would_pay(
    likely: list[float], cost: list[float], pending: int, chain: bool
) -> None:
    """Guesses at a depth have the probabilities of an element and of what remains."""
    planner = Planner(lambda width, tree: cost[min(width, len(cost)) - 1] + 0.1 * tree)

    def guesses(depth: int) -> list[Guess]:
        one = likely[depth % len(likely)]
        return [Guess(token, p, 0.0, 0) for token, p in enumerate(sorted([one, 1.0 - one], reverse=True))]

    def grown(least_probability: Callable[[int, bool], float] | None) -> Draft:
        found = grow(
            0,
            lambda depth, token: depth + 1,
            guesses,
            max_nodes=11,
            min_probability=0.02,
            alternatives=1 if chain else 2,
            least_probability=least_probability,
        )
        return found.draft

    whole, ended = grown(None), grown(planner.least_probabilities(pending))
    assert ended == whole.prefix(len(ended))
    assert planner.shape(ended, 11, pending) == planner.shape(whole, 11, pending)


def test_growth_ends_where_every_further_node_loses() -> None:
    """Tokens as probable as each other, of which the third costs more than it can bring."""
    planner = Planner(lambda width, tree: 1.0 if width <= 3 else 10.0 * width)
    least_probability = planner.least_probabilities()
    assert least_probability(0, False) <= 0.0
    assert least_probability(2, False) > 1.0
    found = grow(
        0,
        lambda depth, token: depth + 1,
        lambda depth: [Guess(7, 0.9, 0.0, 0)],
        max_nodes=11,
        min_probability=0.02,
        alternatives=1,
        least_probability=least_probability,
    )
    assert len(found.draft) == 2
    assert set(found.guesses_after) == {-1, 0, 1}  # the guesses after node 1 were looked up to know that


@given(drafts(), st.integers(0, 9))
def test_a_part_keeps_tokens_paths_and_confidences(draft: Draft, budget: int) -> None:
    part = Planner(lambda width, tree: 1.0 + 0.1 * width).shape(draft, budget)
    for at, node in enumerate(nodes_of(part)):
        parent, whole = part.parents[at], draft.parents[node]
        assert (parent if parent < 0 else nodes_of(part)[parent]) == whole
        assert part.confidence[at] == draft.confidence[node]


def test_nothing_is_drafted_where_nothing_pays() -> None:
    draft = Draft((1, 2, 3), (-1, 0, 1), (0.5, 0.5, 0.5))
    assert Planner(lambda width, tree: float(width)).shape(draft, 9) == EMPTY
    assert Planner(lambda width, tree: 1.0).shape(draft, 9) == draft


def test_free_rows_behind_a_dear_one_are_reached() -> None:
    """T need not be convex: one node alone never pays here, three do."""
    cost = {1: 1.0, 2: 1.7, 3: 1.7, 4: 1.7}
    draft = Draft((1, 2, 3), (-1, 0, 1), (0.9, 0.9, 0.9))
    planner = Planner(lambda width, tree: cost[width])
    assert planner.shape(draft, 1) == EMPTY
    assert planner.shape(draft, 3) == draft


@pytest.mark.parametrize(("factor", "kept"), [(1.0, (1, 2, 3)), (1.5, (1, 3))])
def test_a_branch_is_verified_only_where_trees_cost_little_more_than_chains(
    factor: float, kept: tuple[int, ...]
) -> None:
    draft = Draft((1, 2, 3), (-1, -1, 0), (0.9, 0.3, 0.8))
    planner = Planner(lambda width, tree: (1.0 + 0.01 * width) * (factor if tree else 1.0))
    assert planner.shape(draft, 9).tokens == kept
    for _ in range(200):
        planner.record(4, True, 2)
    assert planner.rate == pytest.approx(2 / (1.04 * factor), rel=0.02)


def test_the_price_of_time_follows_the_answer() -> None:
    planner = Planner(lambda width, tree: 1.0 + 0.2 * (width - 1))
    sure, unsure = Draft((1,), (-1,), (0.5,)), Draft((1,), (-1,), (0.31,))
    assert len(planner.shape(unsure, 9)) == 1
    for _ in range(100):
        planner.record(9, False, 9)
    assert planner.rate == pytest.approx(9 / 2.6, rel=0.05)
    assert planner.shape(sure, 9) == EMPTY
    for _ in range(200):
        planner.record(4, False, 1)
    # Drafting that loses is no reason to value time at less than plain decoding gives.
    assert planner.rate == 1.0
    assert len(planner.shape(sure, 9)) == 1


def test_a_draft_without_confidences_comes_back_whole() -> None:
    draft = Draft.chain([1, 2, 3])
    planner = Planner(lambda width, tree: float(width))
    assert planner.shape(draft, 9) == draft
    assert planner.shape(draft, 2) == draft.prefix(2)
    assert planner.shape(draft, -1) == EMPTY


@pytest.mark.parametrize("confidence", [float("nan"), -3.0, 0.0])
def test_confidences_that_cannot_be_promise_nothing(confidence: float) -> None:
    draft = Draft((1,), (-1,), (confidence,))
    assert Planner(lambda width, tree: 1.0 + 0.01 * width).shape(draft, 9) == EMPTY


@given(drafts(), st.data())
def test_the_walk_follows_the_choices_as_far_as_they_were_drafted(draft: Draft, data: st.DataObject) -> None:
    choices = data.draw(st.lists(st.sampled_from([7, *draft.tokens]), min_size=9, max_size=9))
    path: list[int] = []
    tested, node = 0, -1
    while children := draft.children(node):
        tested += 1
        chosen = [child for child in children if draft.tokens[child] == choices[node + 1]]
        if not chosen:
            break
        (node,) = chosen
        path.append(node)
    assert walk(draft, choices) == Walk(tuple(path), choices[node + 1], tested)


def test_the_worth_of_a_draft_is_what_it_emits_more_than_plain_steps_in_its_time() -> None:
    planner = Planner(lambda width, tree: 1.3 + 0.1 * (width - 1) + 0.5 * tree)
    chain = Draft.chain([5, 6], [0.8, 0.5])
    assert planner.worth(chain) == pytest.approx(0.8 + 0.4 - 0.2 - 0.3)
    assert planner.worth(Draft((5, 6), (-1, -1), (0.6, 0.3))) == pytest.approx(0.9 - 0.7 - 0.3)
    assert planner.worth(EMPTY) == pytest.approx(-0.3)
    # Known tokens are read in either case.
    assert planner.worth(chain, 3) == pytest.approx(planner.worth(chain))
    # Where the second row is free, a chain after one pending token is worth a row more than after two.
    stepped = Planner(lambda width, tree: 1.0 + 0.1 * max(0, width - 2))
    assert stepped.worth(chain) == stepped.worth(chain, 1) == pytest.approx(stepped.worth(chain, 2) + 0.1)
    assert Planner(lambda width, tree: 1.0).worth(EMPTY) == 0.0


def test_plain_steps_without_the_drafter_bring_the_rate_to_one() -> None:
    planner = Planner(lambda width, tree: 2.0)
    for _ in range(20):
        planner.record(4, False, 6)
    assert planner.rate > 2.5
    for _ in range(400):
        planner.rested(1)
    assert planner.rate == pytest.approx(1.0, abs=0.01)
