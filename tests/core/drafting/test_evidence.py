"""Evidence: sources of guesses, assumed positions, learning; the copy cursor; recycled rankings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.draft import Guess
from core.drafting.evidence import ROW_IDS, Evidence, RecycledRankings
from tests.core.drafting.support import PASSAGE, any_ids, few_ids


def evidence_of(prompt: list[int] | tuple[int, ...], answer: list[int] | tuple[int, ...] = ()) -> Evidence:
    evidence = Evidence(1000)
    evidence.read(prompt)
    for token in answer:
        evidence.observe(token)
    return evidence


def chances(guesses: list[Guess]) -> dict[int, float]:
    return {guess.token: guess.probability for guess in guesses}


@given(few_ids, st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 9), max_size=9)), max_size=30))
def test_guesses_are_probabilities_in_order(prompt: list[int], answer: list[tuple[int, list[int]]]) -> None:
    evidence = evidence_of(prompt)
    for token, row in answer:
        evidence.observe(token)
        evidence.observe_ranking([row])
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
    guesses = chances(evidence_of(text).current_guesses())
    # 9 followed all three tokens, 5 followed the last one twice.
    assert guesses[9] > guesses[5]
    often = chances(evidence_of([1, 7, 1, 7, 1, 7, 1, 6, 1]).current_guesses())
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
    (best,) = evidence.current_guesses()
    assert best.token == PASSAGE[13]
    short = evidence_of([*PASSAGE, 1], [*PASSAGE[:3], 7])
    assert [guess.token for guess in short.current_guesses()] == [PASSAGE[4]]
    assert best.probability > 1.2 * short.current_guesses()[0].probability
    assert evidence_of([*PASSAGE, 1], [7]).current_guesses() == []


def test_rows_of_the_verifier_bring_guesses_of_their_own() -> None:
    evidence = evidence_of([1, 2, 3], [4])
    assert evidence.current_guesses() == []
    evidence.observe_ranking([[4, 50, 51]])
    # Passed over one place ago.
    assert [guess.token for guess in evidence.current_guesses()][:2] == [50, 51]
    evidence.observe(60)
    evidence.observe_ranking([[60, 61]])
    for token in (5, 3):
        evidence.observe(token)
    # 3 was the last token when 4, 50 and 51 ranked high.
    assert {50, 51} <= set(chances(evidence.current_guesses()))


def test_a_ranking_that_is_old_is_not_taken_for_the_newest() -> None:
    evidence = evidence_of([1, 2, 3], [4])
    evidence.observe_ranking([[4, 50, 51]])
    fresh = chances(evidence.current_guesses())[50]
    evidence.observe(5)
    assert chances(evidence.current_guesses())[50] < fresh
    evidence.observe(6)
    assert 50 not in chances(evidence.current_guesses())


def test_what_comes_again_and_again_is_trusted_more() -> None:
    evidence = evidence_of(PASSAGE, PASSAGE[:6])
    before = evidence.current_guesses()[0].probability
    for token in PASSAGE[6:50]:
        evidence.observe(token)
    assert evidence.current_guesses()[0].probability > before
    assert evidence.current_guesses()[0].probability > 0.95


@pytest.mark.parametrize("given_guesses", [True, False])
def test_learning_from_guesses_made_earlier_is_the_same(given_guesses: bool) -> None:
    evidence = evidence_of(PASSAGE, PASSAGE[:6])
    known = evidence.current_guesses() if given_guesses else None
    plain = evidence_of(PASSAGE, PASSAGE[:6])
    evidence.observe(PASSAGE[6], known)
    plain.observe(PASSAGE[6])
    assert evidence.current_guesses() == plain.current_guesses()


@given(any_ids, any_ids, st.lists(any_ids, max_size=4))
def test_no_ids_raise(prompt: list[int], answer: list[int], rows: list[list[int]]) -> None:
    evidence = evidence_of(prompt)
    evidence.observe_ranking(rows)
    for token in answer[:20]:
        evidence.observe(token)
        evidence.observe_ranking(rows)
        evidence.guesses(evidence.after(evidence.position(), token))


def test_the_newest_row_counts() -> None:
    recycled = RecycledRankings()
    recycled.record(1, [5, 6, 7], 5)
    recycled.record(1, list(range(20)), 0)
    recycled.record_rejected(2, [9])
    assert recycled.after(1) == tuple(range(ROW_IDS))
    assert recycled.after(2) == (9,)
    assert recycled.after(3) == ()


def test_what_was_passed_over_is_forgotten_once_it_is_said() -> None:
    recycled = RecycledRankings()
    recycled.record(1, [5, 6, 7, 8], 5)
    assert recycled.passed_over(1) == (6, 7, 8)
    assert recycled.passed_over(2) == ()
    recycled.record(5, [7, 9], 7)
    assert recycled.passed_over(1) == (9,)
    assert recycled.passed_over(2) == (6, 8)
    # A rejected place is not part of the answer, so nothing was passed over there.
    recycled.record_rejected(9, [1, 2, 3])
    assert recycled.passed_over(1) == (9,)
