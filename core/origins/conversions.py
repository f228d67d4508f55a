"""Quantities that are another one of a source: in another unit, or rounded by an answer that says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

_GROUPS = (
    {"second": Fraction(1), "minute": Fraction(60), "hour": Fraction(3600), "day": Fraction(86400),
     "week": Fraction(7 * 86400), "ms": Fraction(1, 1000)},
    {"month": Fraction(1), "year": Fraction(12)},
    {"mg": Fraction(1, 1000), "g": Fraction(1), "kg": Fraction(1000), "t": Fraction(10**6)},
    {"mm": Fraction(1), "cm": Fraction(10), "m": Fraction(1000), "km": Fraction(10**6)},
    {"ml": Fraction(1), "l": Fraction(1000)},
    {"w": Fraction(1), "kw": Fraction(1000), "mw": Fraction(10**6)},
    {"kb": Fraction(1), "mb": Fraction(1000), "gb": Fraction(10**6), "tb": Fraction(10**9)},
)  # fmt: skip
_GROUP = {unit: group for group in _GROUPS for unit in group}
# Shares of a figure that are words.
_SHARES = re.compile(
    r"(?<![^\W_])(?:(?P<f2>half|halves|hälfte|halbe[nrs]?|moitié|demi)|(?P<f3>thirds?|drittel|tiers)"
    r"|(?P<f4>quarters?|viertel|quart)|(?P<f5>fifths?|fünftel|cinquième)|(?P<f6>sixth|sechstel|sixième)"
    r"|(?P<f10>tenth|zehntel|dixième)|(?P<f12>twelfth|zwölftel|douzième)"
    r"|(?P<m2>twice|doubled?s?|doppelte?[ns]?|zweifache|double)|(?P<m3>thrice|tripled?s?|dreifache|triple))"
    r"(?![^\W_])|(?P<j2>半分|半額)|(?P<n>\d{1,2})分の一|(?P<d>\d{1,2})分の1",
    re.I,
)
_ABOUT = re.compile(
    r"(?:(?<![^\W_])(?:about|around|approximately|approx\.?|roughly|nearly|almost|circa|c\.|ca\.|etwa|rund"
    r"|ungefähr|knapp|fast|gut|environ|presque|près de|à peu près)\s{1,2}(?:(?:EUR|USD|GBP|CHF)\s)?[$€£¥]?"
    r"|[~≈∼]\s?|約|およそ|ほぼ)\Z",
    re.I,
)
_MOST_ERROR = 0.06


def converted(value: str, unit: str) -> Iterator[tuple[str, str]]:
    """The same quantity in other units of its kind, as values and units."""
    group = _GROUP.get(unit)
    if group is None:
        return
    amount = Fraction(value) * group[unit]
    for other, factor in group.items():
        if other != unit and (text := _decimal(amount / factor)):
            yield text, other


def total(values: list[tuple[str, str]]) -> tuple[str, str] | None:
    """The sum of quantities in units of one kind, larger first, in the smallest: 1 h 30 min is 90 minutes."""
    group = _GROUP.get(values[-1][1])
    if group is None or any(unit not in group for _, unit in values):
        return None
    factors = [group[unit] for _, unit in values]
    if factors != sorted(set(factors), reverse=True):
        return None
    text = _decimal(sum(Fraction(value) * group[unit] for value, unit in values) / factors[-1])
    return (text, values[-1][1]) if text else None


def _decimal(value: Fraction) -> str:
    """The value as `numerals` writes values; empty if it has more than three digits of a fraction."""
    if (value * 1000).denominator != 1:
        return ""
    text = f"{int(value * 1000):04}"
    return f"{text[:-3]}.{text[-3:]}".rstrip("0").rstrip(".")


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


def is_about(text: str, start: int) -> bool:
    """Whether a quantity of `text` at `start` is said to be rounded."""
    return _ABOUT.search(text, max(0, start - 24), start) is not None


def rounds_to(value: str, precise: float) -> bool:
    """Whether `precise`, rounded to the last digit of `value` that is not zero, is `value`."""
    whole, _, fraction = value.partition(".")
    digits = len(fraction) if fraction else len(whole.rstrip("0")) - len(whole)
    wanted = float(value)
    error = abs(precise - wanted)
    return 0 < error <= 0.5 * 10.0**-digits + 1e-9 and error <= _MOST_ERROR * abs(wanted)
