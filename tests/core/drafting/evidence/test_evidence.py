"""Evidence: which source brings what, what an assumed place knows, what is learned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.evidence.evidence import Evidence, Guess
from tests.core.drafting.support import PASSAGE, any_ids, few_ids


def evidence_of(prompt: list[int] | tuple[int, ...], answer: list[int] | tuple[int, ...] = ()) -> Evidence:
    evidence = Evidence(1000)
    evidence.read(prompt)
    for token in answer:
        evidence.hear(token)
    return evidence


def chances(guesses: list[Guess]) -> dict[int, float]:
    return {guess.token: guess.probability for guess in guesses}


@given(few_ids, st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 9), max_size=9)), max_size=30))
def test_guesses_are_probabilities_in_order(prompt: list[int], answer: list[tuple[int, list[int]]]) -> None:
    evidence = evidence_of(prompt)
    for token, row in answer:
        evidence.hear(token)
        evidence.hear_top([row])
        position = evidence.position()
        for _ in range(3):
            guesses = evidence.guesses(position)
            likely = [guess.probability for guess in guesses]
            assert likely == sorted(likely, reverse=True)
            assert all(0.0 <= p <= 1.0 for p in likely)
            assert sum(likely) <= 1.0 + 1e-9
            assert len({guess.token for guess in guesses}) == len(guesses)
            if not guesses:
                break
            position = evidence.after(position, guesses[-1].token)


def test_longer_commoner_and_undisputed_contexts_weigh_more() -> None:
    text = [1, 2, 3, 9, 8, 3, 5, 8, 3, 5, 1, 2, 3]
    guesses = chances(evidence_of(text).here())
    # 9 followed all three tokens, 5 followed the last one twice.
    assert guesses[9] > guesses[5]
    often = chances(evidence_of([1, 7, 1, 7, 1, 7, 1, 6, 1]).here())
    assert often[7] > 2 * often[6]


@given(few_ids, few_ids)
def test_an_assumed_place_knows_what_the_index_will_know_there(prompt: list[int], path: list[int]) -> None:
    """Walking the index by guesses finds the longest known suffix of context plus guesses."""
    evidence = evidence_of(prompt)
    position = evidence.position()
    context = list(prompt)
    for token in path[:8]:
        position = evidence.after(position, token)
        context.append(token)
        longest = 0
        for length in range(1, len(context) + 1):
            tail = context[-length:]
            if any(prompt[i : i + length] == tail for i in range(len(prompt) - length + 1)):
                longest = length
        assert position.matched == longest


def test_the_thread_goes_on_behind_a_changed_token() -> None:
    evidence = evidence_of([*PASSAGE, 1], [*PASSAGE[:12], 7])
    (best,) = evidence.here()
    assert best.token == PASSAGE[13]
    short = evidence_of([*PASSAGE, 1], [*PASSAGE[:3], 7])
    assert [guess.token for guess in short.here()] == [PASSAGE[4]]
    assert best.probability > 1.2 * short.here()[0].probability
    assert evidence_of([*PASSAGE, 1], [7]).here() == []


def test_rows_of_the_verifier_bring_guesses_of_their_own() -> None:
    evidence = evidence_of([1, 2, 3], [4])
    assert evidence.here() == []
    evidence.hear_top([[4, 50, 51]])
    # Passed over one place ago.
    assert [guess.token for guess in evidence.here()][:2] == [50, 51]
    evidence.hear(60)
    evidence.hear_top([[60, 61]])
    for token in (5, 3):
        evidence.hear(token)
    # 3 was the last token when 4, 50 and 51 ranked high.
    assert {50, 51} <= set(chances(evidence.here()))


def test_a_ranking_that_is_old_is_not_taken_for_the_newest() -> None:
    evidence = evidence_of([1, 2, 3], [4])
    evidence.hear_top([[4, 50, 51]])
    fresh = chances(evidence.here())[50]
    evidence.hear(5)
    assert chances(evidence.here())[50] < fresh
    evidence.hear(6)
    assert 50 not in chances(evidence.here())


def test_what_comes_again_and_again_is_trusted_more() -> None:
    evidence = evidence_of(PASSAGE, PASSAGE[:6])
    before = evidence.here()[0].probability
    for token in PASSAGE[6:50]:
        evidence.hear(token)
    assert evidence.here()[0].probability > before
    assert evidence.here()[0].probability > 0.95


@pytest.mark.parametrize("given_guesses", [True, False])
def test_learning_from_guesses_made_earlier_is_the_same(given_guesses: bool) -> None:
    evidence = evidence_of(PASSAGE, PASSAGE[:6])
    known = evidence.here() if given_guesses else None
    plain = evidence_of(PASSAGE, PASSAGE[:6])
    evidence.hear(PASSAGE[6], known)
    plain.hear(PASSAGE[6])
    assert evidence.calibration.state().tolist() == plain.calibration.state().tolist()


@given(any_ids, any_ids, st.lists(any_ids, max_size=4))
def test_no_ids_raise(prompt: list[int], answer: list[int], rows: list[list[int]]) -> None:
    evidence = evidence_of(prompt)
    evidence.hear_top(rows)
    for token in answer[:20]:
        evidence.hear(token)
        evidence.hear_top(rows)
        evidence.guesses(evidence.after(evidence.position(), token))
