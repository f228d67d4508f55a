"""Exact tests agree with figures worked out by hand."""

from __future__ import annotations

import pytest

from core.bench.harness import compare, known, median, quartiles, sign_test, speed_ratio


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (5, 0, 2 / 32), (0, 5, 2 / 32), (3, 3, 1.0), (9, 1, 22 / 1024)]
)
def test_sign_test(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(p)


def test_ties_are_left_out() -> None:
    assert compare([1.0, 2.0, 3.0], [2.0, 2.0, 1.0]) == (1, 1)


def test_compare_wants_pairs() -> None:
    with pytest.raises(ValueError, match="longer"):
        compare([1.0], [1.0, 2.0])


def test_middle_values() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([]) == 0.0
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 4.0)
    assert quartiles([7.0]) == (7.0, 7.0)
    assert quartiles([]) == (0.0, 0.0)


def test_what_nobody_knows_is_compared_with_nothing() -> None:
    assert speed_ratio(15.0, 10.0) == pytest.approx(1.5)
    assert speed_ratio(0.0, 10.0) == speed_ratio(15.0, 0.0) == speed_ratio(0.0, 0.0) == 0.0
    assert known([1.5, 0.0, 2.0]) == [1.5, 2.0]
