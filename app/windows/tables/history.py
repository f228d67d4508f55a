"""History: a table's days as two lines, and the scale they are drawn on. Pure; no Qt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from app.gauges.figures import count, percent
from app.windows.tables import strings
from core.events import TableDay


@dataclass(frozen=True)
class Point:
    """`days` after the first day, and the value there."""

    days: int
    value: float


@dataclass(frozen=True)
class Line:
    """A line and its scale: `labels` at nothing, half and all of `top`.

    The axis goes from the first point's day, called `first`, over `span_days` to today. `now` is
    the last value in words.
    """

    points: tuple[Point, ...]
    top: float
    labels: tuple[str, str, str]
    span_days: int
    first: str
    now: str

    def place(self, point: Point) -> float:
        """Where a point lies on the axis, 0 to 1. What there is of today only lies at its end."""
        return point.days / self.span_days if self.span_days else 1.0


def entries_line(days: Sequence[TableDay], today: date) -> Line:
    """Entries at the end of each day."""
    points, span_days = _points([(day.day, float(day.used)) for day in days], today)
    top = nice_top(max((point.value for point in points), default=0.0))
    labels = (_short(0), _short(top / 2), _short(top))
    now = count(round(points[-1].value)) if points else ""
    return Line(points, top, labels, span_days, strings.days_ago(span_days), now)


def accepted_line(days: Sequence[TableDay], today: date) -> Line:
    """The share of each day's tested tokens that was accepted; days without a test are left out."""
    tested = [(day.day, day.accepted / day.tested) for day in days if day.tested]
    points, span_days = _points(tested, today)
    highest = max((point.value for point in points), default=0.0)
    top = min(1.0, max(0.2, math.ceil(highest * 5) / 5))
    labels = (percent(0), percent(top / 2), percent(top))
    now = percent(points[-1].value) if points else ""
    return Line(points, top, labels, span_days, strings.days_ago(span_days), now)


def nice_top(value: float) -> float:
    """The least of 1, 2, 4, 5 times a power of ten that is not below `value`."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1.0, 2.0, 4.0, 5.0, 10.0) if factor * power >= value)


def _points(pairs: Sequence[tuple[str, float]], today: date) -> tuple[tuple[Point, ...], int]:
    """In order, and the days from the first to today. What is no day, or still to come, is left out."""
    known = sorted((day, value) for text, value in pairs if (day := _day(text)) and day <= today)
    if not known:
        return (), 0
    first = known[0][0]
    return tuple(Point((day - first).days, value) for day, value in known), (today - first).days


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _short(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:g}M"
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
