"""Proposals in `auto`: well-formed drafts, gains with a good model, next to no loss with a bad one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decoding.planner import Planner, walk
from core.drafting.auto import AutoDrafter
from core.drafting.draft import EMPTY
from core.drafting.draft_model import Proposal, Proposals
from tests.core.drafting.support import assert_well_formed, few_ids
from tests.thinned import thinned

VOCABULARY = 2000
TOKENS = 1000
# Costs of a guessed token and of a verified row, in plain steps: a head on a CPU, and on a slow GPU.
COSTS = [(0.05, 0.06), (0.12, 0.25)]


class Guessing:
    """Guesses the answer's tokens, or wrong ones, with a probability that it states for every guess."""

    def __init__(self, text: Sequence[int], right: Callable[[int], bool], states: float = 0.9) -> None:
        self._text, self._right, self._states = text, right, states
        self.asked = 0

    def propose(self, context: Sequence[int], count: int) -> Proposal:
        at, self.asked = len(context), self.asked + 1
        ahead = [
            token if self._right(place) else (token + 1) % VOCABULARY
            for place, token in enumerate(self._text[at : at + count], at)
        ]
        return Proposal(ahead, [self._states] * len(ahead), 5, 0.05)


def prose(seed: int, tokens: int) -> list[int]:
    """New words, with a phrase of before now and then."""
    rng = random.Random(seed)
    text = [rng.randrange(VOCABULARY) for _ in range(60)]
    while len(text) < tokens:
        if rng.random() < 0.08:
            at = rng.randrange(len(text) - 8)
            text += text[at : at + rng.randint(3, 8)]
        text.append(min(VOCABULARY - 1, int(rng.paretovariate(0.7))))
    return text[:tokens]


def spent(
    text: Sequence[int], prompt: int, costs: tuple[float, float], guessing: Guessing | None, after: int = 0
) -> float:
    """Planned time of the answer `text[prompt:]` from its token `after` on, in plain steps."""
    token_cost, row_cost = costs
    block_cost = lambda width, tree=False: 1.0 + row_cost * (width - 1)  # noqa: E731
    proposals = Proposals(guessing, lambda count: token_cost * count, block_cost) if guessing else None
    drafter = AutoDrafter(1 << 14, proposals=proposals)
    drafter.begin(text[:prompt])
    planner = Planner(block_cost)
    at, total = prompt, 0.0
    while at < len(text):
        budget = len(text) - at - 1
        draft = drafter.draft(budget) if budget else EMPTY
        asked = drafter.proposal_cost if budget else 0.0
        draft = planner.shape(draft, budget)
        # The target's choice after node i is the text's token if all of the path to it was right.
        choices = _choices(draft.tokens, draft.parents, text, at)
        walked = walk(draft, choices)
        emitted = list(text[at : at + len(walked.path) + 1])
        if len(draft):
            drafter.feedback(draft, len(walked.path))
        drafter.observe(emitted)
        planner.record(1 + len(draft), not draft.is_chain, len(emitted), asked)
        if at - prompt >= after:
            total += asked + block_cost(1 + len(draft))
        at += len(emitted)
    return total


def _choices(tokens: Sequence[int], parents: Sequence[int], text: Sequence[int], at: int) -> list[int]:
    reached = {-1: at}
    choices = [text[at]]
    for node, (token, parent) in enumerate(zip(tokens, parents)):
        if parent in reached and text[reached[parent]] == token:
            reached[node] = reached[parent] + 1
        choices.append(text[reached[node]] if node in reached else -1)
    return choices


@pytest.mark.sweep
@pytest.mark.parametrize("costs", COSTS, ids=str)
@pytest.mark.parametrize("states", thinned([0.3, 0.99], keep=[0.99]))
def test_a_model_that_is_always_wrong_costs_next_to_nothing(
    costs: tuple[float, float], states: float
) -> None:
    text = prose(1, 60 + TOKENS)
    wrong = Guessing(text, lambda at: False, states)
    without = spent(text, 60, costs, None, after=200)
    assert spent(text, 60, costs, wrong, after=200) <= 1.02 * without
    assert wrong.asked < 80
    # The first tokens, in which it is recognised, included.
    assert spent(text, 60, costs, Guessing(text, lambda at: False, states)) <= 1.02 * spent(
        text, 60, costs, None
    )


@pytest.mark.sweep
@pytest.mark.parametrize("costs", COSTS, ids=str)
def test_a_good_model_gains(costs: tuple[float, float]) -> None:
    text = prose(2, 60 + TOKENS)
    luck = random.Random(3)
    lucky = [luck.random() < 0.8 for _ in text]
    with_it = spent(text, 60, costs, Guessing(text, lambda at: lucky[at], 0.8))
    assert with_it < 0.85 * spent(text, 60, costs, None)


def test_a_model_that_becomes_good_is_asked_again() -> None:
    text = prose(4, 60 + 2 * TOKENS)
    late = Guessing(text, lambda at: at > TOKENS)
    without = spent(text, 60, COSTS[0], None, after=TOKENS)
    assert spent(text, 60, COSTS[0], late, after=TOKENS) < 0.85 * without


@pytest.mark.parametrize(("most", "per_token"), [(4, 0.05), (15, 0.0)])
def test_as_many_are_asked_for_as_pay(most: int, per_token: float) -> None:
    text = [token % VOCABULARY for token in range(0, 14 * TOKENS, 7)]
    asked: list[int] = []

    class Counted(Guessing):
        def propose(self, context: Sequence[int], count: int) -> Proposal:
            asked.append(count)
            return super().propose(context, count)

    proposals = Proposals(Counted(text, lambda at: True), lambda count: 0.1 + per_token * count, most=most)
    drafter = AutoDrafter(1 << 14, proposals=proposals)
    drafter.begin(text[:60])
    at = 60
    for _ in range(100):
        draft = drafter.draft(40)
        walked = walk(draft, _choices(draft.tokens, draft.parents, text, at))
        drafter.feedback(draft, len(walked.path))
        drafter.observe(text[at : at + len(walked.path) + 1])
        at += len(walked.path) + 1
    assert min(6, most) <= max(asked) <= most
    assert at - 60 > 100 * min(5, most)


def test_fewer_are_asked_for_where_steps_emit_more_without_them() -> None:
    """A step's time is worth as many tokens as the last ones emitted."""
    text = list(range(1000))

    def asked(tokens_a_step: int) -> int:
        proposals = Proposals(Guessing(text, lambda at: True), lambda count: 0.15 * count)
        proposals.begin(text[:60])
        for at in range(60, 60 + 40 * tokens_a_step, tokens_a_step):
            proposals.observe(text[at : at + tokens_a_step])
        proposals.ask([], 40)
        return round(proposals.asked_cost / 0.15)

    assert 1 == asked(6) < asked(1)


def test_confident_evidence_asks_nothing() -> None:
    phrase = list(range(100, 140))
    text = phrase * 8
    guessing = Guessing(text, lambda at: True)
    spent(text, 80, COSTS[0], guessing)
    assert guessing.asked <= 6


def test_a_guess_is_of_the_head_where_its_probability_counts() -> None:
    phrase = [7, 8, 9, 10]
    for states, source in ((0.99, "head"), (0.01, "n-gram")):
        head = Guessing([*phrase, 11, *phrase, 11], lambda at: True, states)
        proposals = Proposals(head, lambda count: 0.01, source="head")
        drafter = AutoDrafter(1000, proposals=proposals)
        drafter.begin([*phrase, 11, *phrase])
        draft = drafter.draft(1)
        assert (draft.tokens, draft.sources) == ((11,), (source,))


def test_guesses_after_a_wrong_one_teach_nothing() -> None:
    """They follow another text, also where the answer happens to have the same token."""

    class Fixed:
        def propose(self, context: Sequence[int], count: int) -> Proposal:
            return Proposal([1, 2, 3][:count], [0.6] * min(3, count), -1, 0.0)

    def probabilities(answer: list[int]) -> list[float]:
        proposals = Proposals(Fixed(), lambda count: 0.01 * count, lambda width: 100.0)
        proposals.begin([9])
        for step in ([*answer], []):
            proposals.ask([], 3)
            found = [proposals.join([], [1, 2, 3][:depth])[0].probability for depth in range(3)]
            proposals.observe(step)
        return found

    assert probabilities([8, 2, 3]) == probabilities([8, 5, 5])
    assert probabilities([1, 2, 8]) != probabilities([1, 5, 8])


@given(few_ids, few_ids, st.lists(st.integers(0, 4), max_size=6), st.floats(0, 1), st.integers(0, 12))
def test_drafts_are_well_formed(
    prompt: list[int], answer: list[int], chain: list[int], stated: float, budget: int
) -> None:
    class Fixed:
        def propose(self, context: Sequence[int], count: int) -> Proposal:
            return Proposal(chain[:count], [stated] * len(chain[:count]), 3, 1 - stated)

    drafter = AutoDrafter(1000, proposals=Proposals(Fixed(), lambda count: 0.1 * count))
    drafter.begin(prompt)
    for token in answer:
        draft = drafter.draft(budget)
        assert_well_formed(draft, budget)
        assert len(draft.sources) == len(draft)
        assert draft.part(range(len(draft) // 2)) == draft.prefix(len(draft) // 2)
        for node in range(-1, len(draft)):
            assert sum(draft.confidence[child] for child in draft.children(node)) <= 1.0 + 1e-9
        drafter.feedback(draft, 0)
        drafter.observe([token])
