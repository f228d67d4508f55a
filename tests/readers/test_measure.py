"""What two extractions have in common."""

from __future__ import annotations

import pytest

from tests.readers.measure import compared, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Con\u00adtract 2024\u2011117, ﬁne", ["contract", "2024-117", "fine"]),
        ("exam-\nple 3.5 % of 1,200", ["example", "3.5", "of", "1,200"]),
        ("pages 103-\n110", ["pages", "103110"]),
        ("会议 OK", ["会", "议", "ok"]),
    ],
)
def test_words_and_numbers(text: str, found: list[str]) -> None:
    assert tokens(text) == found


def test_shares() -> None:
    shares = compared(["a", "b", "12", "x"], ["a", "b", "12", "13", "c"])
    assert shares.percent == (60.0, 50.0, 50.0, 25.0)
    assert (shares + shares).percent == shares.percent
