"""A table's days as lines, and its teachers as shares."""

from __future__ import annotations

from datetime import date

import pytest

from app.controls.plot import above
from app.features.tables.detail import MOST, Point, accepted_line, entries_line, shares
from core.events import TableDay, TableTeacher

TODAY = date(2026, 11, 21)
DAYS = (
    TableDay("2026-10-24", 100, 0, 0),
    TableDay("2026-11-10", 41_000, 200, 100),
    TableDay("2026-11-20", 45_000, 10, 7),
)


def test_entries_over_the_days() -> None:
    line = entries_line(DAYS, TODAY)
    assert line.points == (Point(0, 100), Point(17, 41_000), Point(27, 45_000))
    assert (line.labels, line.top) == (("0", "25k", "50k"), 50_000)
    assert (line.span_days, line.first, line.now) == (28, "4 weeks ago", "45,000")
    assert [line.place(point) for point in line.points] == [0.0, 17 / 28, 27 / 28]


def test_acceptance_leaves_out_days_without_a_test() -> None:
    line = accepted_line(DAYS, TODAY)
    assert line.points == (Point(0, 0.5), Point(10, 0.7))
    assert line.labels == ("0%", "40%", "80%")
    assert (line.first, line.now) == ("11 days ago", "70%")


def test_a_first_day_stands_at_the_end() -> None:
    line = entries_line((TableDay("2026-11-21", 7, 0, 0),), TODAY)
    assert line.place(line.points[0]) == 1.0
    assert line.first == ""


def test_nothing_and_nonsense() -> None:
    days = (TableDay("2026-13-99", 5, 1, 1), TableDay("2027-01-01", 5, 1, 1))
    for line in (entries_line((), TODAY), entries_line(days, TODAY), accepted_line(days, TODAY)):
        assert line.points == ()
        assert line.now == ""
        assert line.top > 0


@pytest.mark.parametrize(("value", "top"), [(0.5, 0.6), (3, 4), (4, 5), (7, 8), (412_306, 500_000), (10, 12)])
def test_the_scale_ends_on_a_round_figure(value: float, top: float) -> None:
    assert above(value) == pytest.approx(top)


def test_shares_of_the_teachers() -> None:
    assert shares(()) == ()
    assert shares([TableTeacher("a", 0)]) == ()
    assert shares([TableTeacher("a", 1), TableTeacher("b", 3)]) == (("b", 0.75), ("a", 0.25))
    many = shares([TableTeacher(name, 1) for name in "abcdef"])
    assert [name for name, _ in many] == ["a", "b", "Others"]
    assert len(many) == MOST
    assert sum(share for _, share in many) == pytest.approx(1.0)
