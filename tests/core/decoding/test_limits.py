"""Limits of blocks, and figures of plans, against what they mean."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.decoding.answer import Exactness
from core.decoding.loop import DecodeLoop
from core.decoding.planner import Planner, walk
from core.decoding.sampling import logprobs
from core.drafting.draft import Draft, Drafter
from core.events import FIRST_IMAGE_ROW, Change
from core.settings import assign
from tests.core.decoding.test_loop import Oracle, decode, plain, prompt_with_repetition, tokens_of
from tests.core.drafters import answer_of
from tests.core.toy import toy_model

TOKENS = 60


@pytest.fixture(scope="module")
def model() -> Any:
    return toy_model()


@pytest.mark.sweep
@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_blocks_are_no_wider_than_the_limit(model: Any, limit: int) -> None:
    rng = random.Random(5)
    prompt = prompt_with_repetition(rng)
    answer = plain(model, prompt, TOKENS)
    exactness = Exactness("strict", width_limit=limit)
    steps, _ = decode(model, prompt, Oracle(answer, 0.1, rng), count=TOKENS, exactness=exactness)
    assert tokens_of(steps) == answer
    assert max(step.width for step in steps) == limit
    assert any(step.drafted for step in steps) == (limit > 1)


@pytest.mark.sweep
@pytest.mark.parametrize("more", [0, 1, 15])
def test_no_block_is_verified_behind_the_limit_of_length(model: Any, more: int) -> None:
    rng = random.Random(5)
    prompt = prompt_with_repetition(rng)
    answer = plain(model, prompt, TOKENS)
    exactness = Exactness("strict", length_limit=len(prompt) + more)
    most: Any = SimpleNamespace(randint=lambda least, most: most, random=lambda: 1.0)
    steps, _ = decode(model, prompt, Oracle(answer, 0.0, most), count=TOKENS, exactness=exactness)
    assert tokens_of(steps) == answer
    ends, reached = [len(prompt)], 0
    for step in steps:
        if step.drafted:
            reached = max(reached, ends[-1] + step.drafted)
        ends.append(ends[-1] + len(step.tokens))
    assert reached == (len(prompt) + more if more else 0)


@pytest.mark.parametrize("top", [0, 2])
def test_logprobs_of_drafted_steps_are_those_of_their_rows(model: Any, top: int) -> None:
    """Of chains and trees; the stop token has one, too."""
    prompt = prompt_with_repetition(random.Random(3))
    expected = plain(model, prompt, 12)

    class Trees(Drafter):
        """A wrong first guess, then the right ones, as a branch of its own."""

        def __init__(self) -> None:
            self._done = 0

        def observe(self, tokens: Sequence[int]) -> None:
            self._done += len(tokens)

        def draft(self, budget: int) -> Draft:
            right = expected[self._done : self._done + 2]
            wrong = (expected[self._done] + 1) % 260
            return Draft((wrong, *right), (-1, -1, 1)[: 1 + len(right)]).prefix(budget)

    answer = answer_of(model, prompt, Trees(), top_logprobs=top)
    steps = list(DecodeLoop(answer).steps(12))
    assert tokens_of(steps) == expected
    assert sum(step.accepted for step in steps) > 4
    rows = model(mx.array([*prompt, *expected])[None])[0, len(prompt) - 1 : -1]
    for got, wanted in zip(
        [each for step in steps for each in step.logprobs], logprobs(rows, expected, top), strict=True
    ):
        assert got.own == pytest.approx(wanted.own, abs=1e-3)
        assert [token for token, _ in got.likely] == [token for token, _ in wanted.likely]
    silent = answer_of(model, prompt, Trees())
    assert all(step.logprobs == () for step in DecodeLoop(silent).steps(12))


# ---- plans and walks


DRAFTS = st.lists(st.tuples(st.floats(0.05, 1.0), st.integers(0, 9)), max_size=9).map(
    lambda nodes: Draft(
        tuple(range(len(nodes))),
        tuple(back % (at + 1) - 1 for at, (_, back) in enumerate(nodes)),
        tuple(round(chance, 2) for chance, _ in nodes),
    )
)


def test_the_rate_is_an_average_of_recent_steps() -> None:
    planner = Planner(lambda width, tree: 1.0 + 0.5 * (width - 1) + tree)
    emitted, spent = 12.0, 8.0
    assert planner.rate == pytest.approx(1.5)
    for width, tree, tokens, asking in ((1, False, 1, 0.0), (4, True, 4, 0.25), (3, False, 1, 0.5)):
        planner.record(width, tree, tokens, asking)
        emitted, spent = 0.97 * emitted + tokens, 0.97 * spent + 1.0 + 0.5 * (width - 1) + tree + asking
        assert planner.rate == pytest.approx(emitted / spent)
    planner.rested(2)
    emitted, spent = 0.97 * emitted + 2, 0.97 * spent + 2
    assert planner.rate == pytest.approx(emitted / spent)
    for _ in range(200):
        planner.record(1, False, 0)
    assert planner.rate == 1.0


@settings(max_examples=60)
@given(DRAFTS, st.lists(st.integers(0, 3), min_size=10, max_size=10), st.booleans())
def test_a_walk_follows_the_choices_from_the_root(draft: Draft, choices: list[int], stops: bool) -> None:
    draft = Draft(tuple(token % 3 for token in draft.tokens), draft.parents)
    eos = frozenset({2}) if stops else frozenset[int]()
    path, node, tested = list[int](), -1, 0
    while True:
        children = [at for at, parent in enumerate(draft.parents) if parent == node]
        if choices[node + 1] in eos:
            tested = len(path)
            break
        right = next((at for at in children if draft.tokens[at] == choices[node + 1]), None)
        if right is None:
            tested = len(path) + bool(children)
            break
        path.append(right)
        node = right
    found = walk(draft, choices, eos)
    assert (list(found.path), found.last) == (path, choices[node + 1])
    assert found.tested == tested


# ---- an answer's figures


def test_what_an_answer_holds_and_reaches(model: Any) -> None:
    answer = answer_of(model, [5, 6, 7, 8, 9], Drafter())
    answer.context_tokens, answer.shown = 100, [1, 2]
    assert (answer.planned_tokens, answer.held_tokens, answer.context_used_tokens) == (5, 5, 7)
    assert answer.reach_tokens == 100
    answer.context_tokens = 5000
    assert answer.reach_tokens == 5 + answer.settings.sampling.max_tokens
    answer.most_tokens = 3
    assert (answer.planned_tokens, answer.context_used_tokens) == (3, 7), "all of it was read"
    answer.sequence.truncate(2)
    assert (answer.planned_tokens, answer.context_used_tokens) == (3, 5), "the reading was stopped"
    assert answer.reach_tokens == 3 + answer.settings.sampling.max_tokens
    answer.unattended = 4
    assert answer.held_tokens == 9
    answer.ids = [5, FIRST_IMAGE_ROW - 1, FIRST_IMAGE_ROW, FIRST_IMAGE_ROW + 1, 9]
    assert answer.text_ids == [5, FIRST_IMAGE_ROW - 1, 9]
    assert list(answer.begun) == []
    answer.continued_tokens = 2
    assert list(answer.begun) == answer.ids[3:]


def test_a_draft_model_that_cannot_read_the_text_does_not_draft(model: Any) -> None:
    class Reader:
        """A draft model with a short context."""

        class loaded:
            @staticmethod
            def why_not_read(ids: Sequence[int]) -> str:
                return "it is too long" if len(ids) > 3 else ""

    answer = answer_of(model, [5, 6, 7], Drafter())
    answer.settings = assign(answer.settings, "draft_model.model", "/models/draft")
    assert answer.proposer_for([1]) is None
    reader: Any = Reader()
    answer.proposer = reader
    assert answer.proposer_for([1, 2, 3]) is reader
    assert answer.changes == []
    assert answer.proposer_for([1, 2, 3, 4]) is None
    assert answer.proposer is None
    assert answer.settings.draft_model.model == "/models/draft"
    assert answer.changes == [
        Change("draft_model.model", "/models/draft", "not for the whole prompt", "it is too long")
    ]
