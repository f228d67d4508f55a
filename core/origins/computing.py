"""Quantities computed from others of their sentence: sums, differences, products, ratios, percentages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import combinations, permutations, product

from core.origins.quantities import Quantity
from core.origins.units import same_unit

_TIME = re.compile(r"t\d\d:\d\d(?::\d\d)?")
_DAY = re.compile(r"(\d{4}|-)-(\d\d)-(\d\d)")
_LEAST_ROUNDED = 20
# Quantities of one sentence.
_MOST_OPERANDS = 12
_OPERATOR = re.compile(r"[^\S\n]{0,3}\w{0,12}[*_ ]{0,4}([=＝≈|+＋−–×x*·⋅/÷:-])[^\S\n]{0,3}[*_]{0,4}")
# Words for shares of a figure, with their factors.
_SHARES = re.compile(
    r"(?<![^\W_])(?:(?P<f2>half|halves|hälfte|halbe[nrs]?|moitié|demi)|(?P<f3>thirds?|drittel|tiers)"
    r"|(?P<f4>quarters?|viertel|quart)|(?P<f5>fifths?|fünftel|cinquième)|(?P<f6>sixth|sechstel|sixième)"
    r"|(?P<f10>tenth|zehntel|dixième)|(?P<f12>twelfth|zwölftel|douzième)"
    r"|(?P<m2>twice|doubled?s?|doppelte?[ns]?|zweifache|double)|(?P<m3>thrice|tripled?s?|dreifache|triple))"
    r"(?![^\W_])|(?P<j2>半分|半額)|(?P<n>\d{1,2})分の一|(?P<d>\d{1,2})分の1",
    re.I,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_MINUTES = {"minute": 1, "hour": 60, "second": 1 / 60, "": 1}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}


def follows(what: Quantity, operands: Sequence[Quantity], text: str = "", sentence: str = "") -> bool:
    """Whether `what` is a result of two of `operands`, or the sum of some in a row, rounded as it is written.

    Units must agree: in a sum, all are the same or missing; percentages result from ratios. `text` is the
    part, whose equation may give the operators; `sentence` may name a share of one operand in words.
    """
    if what.kind not in ("number", "amount"):
        chosen = operands[:_MOST_OPERANDS]
        return _is_counted(what, chosen) or _is_duration(what, chosen, text)
    if _YEAR.fullmatch(what.values[0]) and what.kind == "number" and not what.unit:
        operands = [each for each in operands if each.unit == "year" or _YEAR.fullmatch(each.values[0])]
    chosen = operands[:_MOST_OPERANDS]
    if (solved := solves(what, operands, text)) is not None:
        return solved
    for each, factor in product(chosen, shares(sentence)):
        if _is_number(each.values[0]) and same_unit(what.unit, each.unit):
            part = float(each.values[0]) * factor
            if any(_agrees(value, part, is_share=False) for value in what.values if _is_number(value)):
                return True
    return any(
        _agrees(value, result, is_share=what.unit == "%")
        for value in (*what.values, *what.parts)
        if _is_number(value)
        for result in _results(what.unit, chosen)
    )


def solves(what: Quantity, operands: Sequence[Quantity], text: str) -> bool | None:
    """Whether `what` is the right side of an equation in `text` that agrees; None without an equation."""
    result = _equation(what, operands, text)
    if result is None:
        return None
    values = [value for value in (*what.values, *what.parts) if _is_number(value)]
    return any(_agrees(value, result, is_share=False) for value in values)


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).isdigit()


def _agrees(value: str, result: float, *, is_share: bool) -> bool:
    wanted, digits = float(value), len(value.partition(".")[2])
    if abs(result - wanted) <= 1e-9 * max(1.0, abs(wanted)):
        return True
    # That a result rounds to a small whole number proves nothing: many do.
    is_rounded = digits > 0 or is_share or wanted >= _LEAST_ROUNDED
    return is_rounded and result != int(result) and abs(result - wanted) <= 0.5 * 10.0**-digits + 1e-9


def _results(unit: str, operands: Sequence[Quantity]) -> Iterator[float]:
    numbers = [
        (float(each.values[0]), each.unit)
        for each in operands
        if each.kind in ("number", "amount") and _is_number(each.values[0])
    ]
    for first, last in combinations(range(len(numbers) + 1), 2):
        if last - first > 2 and _are_same((unit, *(each for _, each in numbers[first:last]))):
            yield sum(value for value, _ in numbers[first:last])
    for (a, of_a), (b, of_b) in combinations(numbers, 2):
        if _are_same((unit, of_a, of_b)) or (unit == "pp" and of_a == of_b == "%"):
            yield a + b
            yield abs(a - b)
        if unit == "" or unit in (of_a, of_b) or of_a == of_b == "":
            yield a * b
    for (a, of_a), (b, of_b) in permutations(numbers, 2):
        if of_b == "%" and of_a != "%" and same_unit(unit, of_a):
            yield from (a * b / 100, a * (100 - b) / 100, a * (100 + b) / 100)
        if b and unit == "%" and _are_same((of_a, of_b)):
            yield from (100 * a / b, abs(100 * (a - b) / b))
        if (
            b
            and unit != "%"
            and (unit in (of_a, "") or not of_a or (unit == "times" and same_unit(of_a, of_b)))
        ):
            yield a / b
    if unit in _MINUTES:
        for minutes in _durations(operands):
            yield minutes / _MINUTES[unit]
            if unit in ("hour", "minute"):  # 2 hours 15 minutes
                yield minutes // 60 if unit == "hour" else minutes % 60
    if unit in ("", "day", "month", "year"):
        yield from _between([each for each in operands if each.kind == "date"], unit)


def _durations(operands: Sequence[Quantity]) -> Iterator[float]:
    """Minutes from one time of day to another."""
    times = [
        [_minutes(value) for value in (*each.values, *each.parts) if _TIME.fullmatch(value)]
        for each in operands
    ]
    for starts, ends in permutations(times, 2):
        for start, end in product(starts, ends):
            yield (end - start) % (24 * 60)


_LENGTH = re.compile(r"\d{1,2}[ \u00a0]?h[ \u00a0]?\d\d")


def _is_duration(what: Quantity, operands: Sequence[Quantity], text: str) -> bool:
    """Whether `what`, such as "7 h 30", is the duration between two of the other times."""
    if what.kind != "time" or not _LENGTH.fullmatch(text, what.start, what.end):
        return False
    return any(_minutes(what.values[0]) == minutes for minutes in _durations(operands))


def _is_counted(what: Quantity, operands: Sequence[Quantity]) -> bool:
    """Whether a date is another one with a number of days, weeks, months or years before or behind it."""
    years = sorted({int(value[:4]) for each in operands for value in each.values if value[:4].isdigit()})
    for base, length in permutations(operands, 2):
        if not _is_number(length.values[0]):
            continue
        count, unit = float(length.values[0]), length.unit
        for first, last in product(_days(base, years), _days(what, years)):
            months = 12 * (last.year - first.year) + last.month - first.month
            if unit in _DAYS and abs((last - first).days) == count * _DAYS[unit]:
                return True
            if unit in _MONTHS and first.day == last.day and abs(months) == count * _MONTHS[unit]:
                return True
    return False


def _between(dates: Sequence[Quantity], unit: str) -> Iterator[float]:
    """Days, months or years from one date to another. A date without a year has that of another."""
    years = sorted({int(value[:4]) for each in dates for value in each.values if value[:4].isdigit()})
    for one, other in combinations(dates, 2):
        for first, last in product(_days(one, years), _days(other, years)):
            days = abs((last - first).days)
            first, last = sorted((first, last))
            months = 12 * (last.year - first.year) + last.month - first.month
            if unit in ("", "day"):
                yield from (days, days + 1)
            elif _ends_alike(first, last):
                months += first.day == 1 and last.day > 1
                yield months if unit == "month" else months / 12


def _days(what: Quantity, years: Sequence[int]) -> Iterator[date]:
    for value in what.values:
        if (match := _DAY.fullmatch(value)) is None:
            continue
        for year in years if match[1] == "-" else (int(match[1]),):
            with suppress(ValueError):
                yield date(year, int(match[2]), int(match[3]))


def _ends_alike(one: date, other: date) -> bool:
    """Whether both are the same day of their months, or the last, or a month ends where one begins."""
    days = (one.day, other.day)
    ends = tuple((each + timedelta(1)).day == 1 for each in (one, other))
    return days[0] == days[1] or all(ends) or (days[0] == 1 and ends[1])


def _are_same(units: Sequence[str]) -> bool:
    named = [unit for unit in units if unit]
    return all(same_unit(named[0], unit) for unit in named[1:])


def _equation(what: Quantity, operands: Sequence[Quantity], text: str) -> float | None:
    """The left side of "2 × 45 + 30 = ", which ends before `what`, also in a separate cell; None without
    operators.
    """
    chain, operators = [what], list[str]()
    for each in reversed(operands):
        if each.end > chain[-1].start or not _is_number(each.values[0]):
            continue
        between = _OPERATOR.fullmatch(text, each.end, chain[-1].start)
        if between is None or (between[1] in "=＝≈|") != (len(chain) == 1):
            break
        if between[1] == ":" and len(chain) > 2:
            break  # a label before the equation
        operators.append(between[1])
        chain.append(each)
    if len(chain) < 3 or what.unit == "%":
        return None
    shares = [each.unit == "%" for each in reversed(chain[1:])]
    if shares[0] or any(
        share and operator not in "×x*·⋅" for share, operator in zip(shares[1:], reversed(operators[1:]))
    ):
        return None
    terms = [float(chain[-1].values[0])]
    for operator, each in zip(reversed(operators[1:]), reversed(chain[1:-1])):
        value = float(each.values[0]) / (100 if each.unit == "%" else 1)
        if operator in "×x*·⋅":
            terms[-1] *= value
        elif operator in "/÷:":
            terms[-1] /= value or float("inf")
        else:
            terms.append(value if operator in "+＋" else -value)
    return sum(terms)


def _minutes(value: str) -> float:
    hour, minute, second = [*map(int, value[1:].split(":")), 0][:3]
    return hour * 60 + minute + second / 60


def is_share(word: str) -> bool:
    """Whether a word names a share or a multiple."""
    return _SHARES.fullmatch(word) is not None


def shares(sentence: str) -> list[float]:
    """Factors that a sentence names in words: a half, a third, twice."""
    found = []
    for match in _SHARES.finditer(sentence):
        kind = match.lastgroup or ""
        if kind in ("n", "d"):
            found.append(1 / max(1, int(match[kind])))
        else:
            factor = int(kind[1:])
            found.append(float(factor) if kind[0] == "m" else 1 / factor)
    return found
