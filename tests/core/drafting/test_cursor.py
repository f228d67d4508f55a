"""A cursor follows a copy across changes, and moves to better matches."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from core.drafting.cursor import Cursor
from core.drafting.suffix_index import ABSENT, SuffixIndex
from tests.core.drafting.support import any_ids

SOURCE = range(100, 200)


def copied(upto: int, *, follows: bool) -> Cursor:
    """A cursor that has followed the source's first tokens."""
    cursor = Cursor(SOURCE, follows=follows)
    cursor.move(0, 0)
    assert [cursor.follow(token) for token in SOURCE[:upto]] == list(range(upto))
    return cursor


@given(st.integers(2, 60), st.integers(0, 3), st.integers(0, 7), st.booleans())
def test_it_continues_after_a_change(upto: int, omitted: int, inserted: int, follows: bool) -> None:
    """Some tokens of the source are omitted and others inserted; the next copied token finds its place."""
    if not follows:
        inserted = min(inserted, omitted + 1)
        omitted = max(omitted, inserted)
    elif inserted:
        omitted = min(omitted, 2)
    cursor = copied(upto, follows=follows)
    for token in range(inserted):
        assert cursor.follow(token) == ABSENT
        assert cursor.run == 0
    assert cursor.trust == upto >> inserted
    place = upto + omitted
    assert cursor.follow(SOURCE[place]) == place
    assert cursor.follow(SOURCE[place + 1]) == place + 1
    assert cursor.at == place + 2


def test_it_is_lost_after_too_many_differences() -> None:
    cursor = copied(10, follows=False)
    for token in range(8):
        cursor.follow(token)
    assert cursor.at == 18
    cursor.follow(8)
    assert (cursor.at, cursor.run, cursor.trust) == (ABSENT, 0, 0)
    assert cursor.follow(SOURCE[10]) == ABSENT


def test_only_a_better_match_moves_it() -> None:
    for follows, least, switch in ((False, 2, 4), (True, 5, 12)):
        cursor = copied(1, follows=follows)
        assert not cursor.relocate(50, switch - 1)
        assert cursor.relocate(50, switch)
        assert (cursor.at, cursor.run) == (50, switch)
        assert not cursor.relocate(60, switch + 2)  # nearly as long as the run
        cursor.follow(0)
        assert not cursor.relocate(60, least - 1)
        assert cursor.relocate(60, least)


def follow(cursor: Cursor, index: SuffixIndex, tokens: Sequence[int]) -> None:
    for token in tokens:
        cursor.follow(token)
        index.append(token)
        state = index.longest_suffix()
        cursor.relocate(index.newest_follower(state), index.length(state))


@given(any_ids, any_ids, st.booleans())
def test_it_is_in_the_text_or_absent(prompt: list[int], answer: list[int], follows: bool) -> None:
    index = SuffixIndex(1000)
    index.extend(prompt)
    cursor = Cursor(index.text, follows=follows)
    for token in answer:
        follow(cursor, index, [token])
        assert -1 <= cursor.at <= len(index.text)
        # A token found nearby begins a run, but adds no trust.
        assert 0 <= cursor.run <= cursor.trust + 1
