"""CopyCursor: it keeps its place across changed and left-out words, and lets go in the end."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from core.drafting.evidence.copy_cursor import CopyCursor
from core.drafting.evidence.suffix_index import NOWHERE, SuffixIndex
from tests.core.drafting.support import PASSAGE, any_ids


def follow(thread: CopyCursor, index: SuffixIndex, tokens: Sequence[int]) -> None:
    for token in tokens:
        thread.follow(index, token)
        index.append(token)
        thread.take_up(index)


def copying(upto: int) -> tuple[CopyCursor, SuffixIndex]:
    """A thread that has followed the passage's first tokens."""
    thread, index = CopyCursor(), SuffixIndex(1000)
    index.extend([*PASSAGE, 1])
    follow(thread, index, PASSAGE[:upto])
    return thread, index


def test_a_copy_is_followed_from_its_second_token_on() -> None:
    thread, _ = copying(1)
    assert thread.at == NOWHERE
    thread, _ = copying(2)
    assert (thread.at, thread.run) == (2, 2)
    thread, _ = copying(30)
    assert (thread.at, thread.run, thread.trust) == (30, 30, 30)


def test_a_replaced_token_moves_it_on_by_one() -> None:
    thread, index = copying(10)
    follow(thread, index, [7])
    assert (thread.at, thread.run, thread.trust) == (11, 0, 5)
    follow(thread, index, PASSAGE[11:12])
    assert (thread.at, thread.run, thread.trust) == (12, 1, 6)


def test_left_out_tokens_are_skipped() -> None:
    for skipped in (1, 2, 3):
        thread, index = copying(10)
        follow(thread, index, [PASSAGE[10 + skipped]])
        assert thread.at == 11 + skipped


def test_it_lets_go_after_too_many_differences() -> None:
    thread, index = copying(10)
    follow(thread, index, range(2000, 2008))
    assert thread.at == 18
    follow(thread, index, [2008])
    assert thread.at == NOWHERE


def test_a_better_match_elsewhere_is_taken_up() -> None:
    thread, index = CopyCursor(), SuffixIndex(1000)
    index.extend([1, 2, 3, 4, 5, 6, 7, 8, 0, 3, 4, 9])
    follow(thread, index, [3, 4])
    assert index.text[thread.at] == 9
    # The other occurrence goes on like this.
    follow(thread, index, [5, 6])
    assert index.text[thread.at] == 7


@given(any_ids, any_ids)
def test_it_always_stands_in_the_text_or_nowhere(prompt: list[int], answer: list[int]) -> None:
    thread, index = CopyCursor(), SuffixIndex(1000)
    index.extend(prompt)
    for token in answer:
        follow(thread, index, [token])
        assert -1 <= thread.at <= len(index.text)
        assert 0 <= thread.run <= thread.trust
