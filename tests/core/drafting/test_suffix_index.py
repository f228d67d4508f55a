"""SuffixIndex against a recount of the text; its two bounds; that any int is a token."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from core.drafting.suffix_index import ABSENT, ROOT, SuffixIndex
from tests.core.drafting.support import any_ids, few_ids

ALL = 10**6
short = st.lists(st.integers(0, 2), max_size=40)

# length → (count, latest, before, followers with their counts)
Known = dict[int, tuple[int, int, int, dict[int, int]]]


def index_of(text: Sequence[int], refreshed: int = ALL) -> SuffixIndex:
    index = SuffixIndex(1000, refreshed)
    index.extend(text)
    return index


def chain(index: SuffixIndex) -> list[int]:
    places, state = [], index.longest_suffix()
    while state > ROOT:
        places.append(state)
        state = index.suffix_link(state)
    return places


def told(index: SuffixIndex) -> Known:
    known: Known = {}
    for state in chain(index):
        followers = {token: index.count[onward] for token, onward in index.followers(state)}
        facts = (index.count[state], index.latest[state], index.before[state], followers)
        for length in range(index.length(index.suffix_link(state)) + 1, index.length(state) + 1):
            known[length] = facts
    return known


def recount(text: Sequence[int]) -> Known:
    known: Known = {}
    for length in range(1, len(text)):
        suffix = list(text[-length:])
        ends = [end for end in range(length, len(text) + 1) if list(text[end - length : end]) == suffix]
        if len(ends) > 1:
            nexts = [text[end] for end in ends[:-1]]
            followers = {token: nexts.count(token) for token in nexts}
            known[length] = (len(ends), ends[-1], ends[-2], followers)
    return known


@given(short)
def test_equals_a_recount_of_every_suffix(text: list[int]) -> None:
    assert told(index_of(text)) == recount(text)


@given(few_ids, few_ids)
def test_steps_lead_where_the_text_goes(text: list[int], path: list[int]) -> None:
    index = index_of(text)
    state = ROOT
    for length, token in enumerate(path, 1):
        state = index.transition(state, token)
        said = any(text[i : i + length] == path[:length] for i in range(len(text)))
        assert (state != ABSENT) == said
        if not said:
            return
        assert (token in text) == (index.transition(ROOT, token) != ABSENT)


@given(short)
def test_the_newest_continuation_is_the_last_one_said(text: list[int]) -> None:
    index = index_of(text)
    for state in chain(index):
        length = index.length(state)
        starts = [i for i in range(len(text) - length) if text[i : i + length] == text[-length:]]
        assert index.newest_follower(state) == starts[-1] + length
        assert index.follower_count(state) == len({text[i + length] for i in starts})


@given(st.lists(st.integers(0, 1), max_size=60), st.integers(1, 6))
def test_the_longest_suffixes_are_exact_whatever_is_skipped(text: list[int], refreshed: int) -> None:
    exact, bounded = index_of(text), index_of(text, refreshed)
    assert [exact.length(state) for state in chain(exact)] == [bounded.length(p) for p in chain(bounded)]
    for state, same in list(zip(chain(exact), chain(bounded)))[:refreshed]:
        assert exact.latest[state] == bounded.latest[same] == len(text)
    for state in range(len(bounded.count)):
        assert bounded.count[state] <= len(text)
        assert -1 <= bounded.before[state] <= bounded.latest[state] <= len(text)


@given(few_ids, st.integers(2, 30))
def test_past_its_capacity_it_is_an_index_of_the_newer_part(text: list[int], capacity: int) -> None:
    index = SuffixIndex(capacity, ALL)
    for token in text:
        index.append(token)
        assert len(index) <= capacity
    assert index.dropped + len(index) == len(text)
    assert index.text == text[index.dropped :]
    assert len(index) >= min(len(text), capacity - capacity // 2)
    assert told(index) == recount(index.text)


@given(any_ids)
def test_any_int_is_a_token(text: list[int]) -> None:
    index = index_of(text)
    assert index.text == text
    assert all(index.transition(ROOT, token) > ROOT for token in text)


def test_monotonous_text_costs_no_more_a_token_than_any() -> None:
    index = index_of([7] * 900, refreshed=4)
    places = chain(index)
    # All 899 suffixes occurred before; only the four longest were touched by the last token.
    assert len(places) == 899
    assert [index.latest[state] for state in places[:5]] == [900, 900, 900, 900, 899]
