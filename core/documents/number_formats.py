"""Numbers of spreadsheets as their cells show them: percentages, currencies, leading zeros, dates. Pure.

Format codes follow ECMA-376 part 1, 18.8.30 and 18.8.31, with a period for decimals and commas for thousands.
Dates and times are written as ISO 8601 with the parts that the code shows, since `03/04/24` is two dates.
Colors, fill characters and the widths of spaces are left out.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

GENERAL = "General"
# The codes of the numbers below 164, which files do not store.
BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?",
    13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss",
    20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: "#,##0;(#,##0);-", 42: "$#,##0;($#,##0);$-",
    43: "#,##0.00;(#,##0.00);-", 44: "$#,##0.00;($#,##0.00);$-", 45: "mm:ss", 46: "[h]:mm:ss",
    47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
    # Dates of Chinese, Japanese and Korean Excel; 32 to 35 and 55 to 56 differ between them.
    **dict.fromkeys((*range(27, 32), 36, *range(50, 55), 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33), "h:mm"),
}  # fmt: skip
_MOST_CODE_CHARACTERS = 255
_MOST_DIGITS = 30
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|\*.|\[(?P<bracket>[^\]]*)\]|(?P<general>general)'
    r"|(?P<ampm>am/pm|a/p)|(?P<exponent>e[+-])|(?P<date>[ymdhsgb]+|e+)|(?P<digit>[0#?])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))")
_ELAPSED = re.compile(r"h+|m+|s+", re.IGNORECASE)
_SPACES = re.compile(" {2,}")
# Day 0, and the days that a cell can show as a date. Excel's day 60 is 29 February 1900, which never was.
_EPOCH, _EPOCH_1904 = datetime.datetime(1899, 12, 30), datetime.datetime(1904, 1, 1)
_LAST_DAY, _FALSE_LEAP_DAY = 2_958_466, 60


class _Token(NamedTuple):
    """`kind` is a group of `_TOKEN`, or `literal`."""

    kind: str
    text: str


class _Section(NamedTuple):
    tokens: tuple[_Token, ...]
    condition: tuple[str, float] | None

    @property
    def is_date(self) -> bool:
        return any(token.kind in ("date", "elapsed") for token in self.tokens)


def number_text(value: float, code: str = GENERAL, from_1904: bool = False) -> str:
    """`value` as a cell with that format code shows it; as stored if the code is not valid."""
    sections = _sections(code[:_MOST_CODE_CHARACTERS])
    section, unsigned = _chosen(value, sections)
    if section is None or any(token.kind == "general" for token in section.tokens):
        shown = stored(abs(value) if unsigned else value)
        around = section.tokens if section else (_Token("general", ""),)
        return "".join(shown if kind == "general" else text for kind, text in around).strip()
    if section.is_date:
        return _date(value, section.tokens, from_1904)
    try:
        text = _number(abs(value), section.tokens)
    except (InvalidOperation, OverflowError, ZeroDivisionError):
        return stored(value)
    negative = value < 0 and not unsigned and any("1" <= each <= "9" for each in text)
    return _SPACES.sub(" ", f"-{text}" if negative else text).strip()


def shown_number(value: str, code: str, from_1904: bool = False) -> str:
    """`number_text` of a number that a file writes; anything else as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    return number_text(number, code, from_1904) if math.isfinite(number) else value


def text_text(value: str, code: str) -> str:
    """A text as a cell with that format code shows it; most codes have no section for texts."""
    sections = _sections(code[:_MOST_CODE_CHARACTERS])
    tokens = sections[-1].tokens
    if "@" not in [text for _, text in tokens]:
        return "" if len(sections) == 4 and not tokens else value
    return "".join(value if token == ("other", "@") else token.text for token in tokens).strip()


def stored(value: float) -> str:
    """A number with the 15 digits that spreadsheets keep."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else format(value, ".15g")


@lru_cache(maxsize=1024)
def _sections(code: str) -> tuple[_Section, ...]:
    """At most four: for positive numbers, negative ones, zero, and texts."""
    sections: list[_Section] = []
    tokens: list[_Token] = []
    condition: tuple[str, float] | None = None
    for kind, text in _tokens(code):
        if kind == "other" and text == ";":
            sections.append(_Section(tuple(tokens), condition))
            tokens, condition = [], None
        elif kind == "condition":
            found = _CONDITION.fullmatch(text)
            condition = (found[1], float(found[2])) if found else None
        else:
            tokens.append(_Token(kind, text))
    return (*sections, _Section(tuple(tokens), condition))[:4]


def _tokens(code: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(code):
        kind, text = found.lastgroup or "space", found[found.lastgroup or 0]
        if kind == "bracket":
            if text.startswith("$"):
                yield "literal", text[1:].partition("-")[0]
            elif _ELAPSED.fullmatch(text):
                yield "elapsed", text.lower()
            elif _CONDITION.fullmatch(text):
                yield "condition", text
        elif kind in ("quoted", "escaped"):
            yield "literal", text
        elif kind == "space":
            yield "literal", " " if found[0].startswith("_") else ""
        else:
            yield kind, text.lower()


def _chosen(value: float, sections: tuple[_Section, ...]) -> tuple[_Section | None, bool]:
    """The section for `value`, and whether it shows the number without its sign."""
    numbers = sections[:3]
    if any(section.condition for section in numbers):
        for section in numbers:
            if section.condition is None or _holds(value, section.condition):
                # A section for negative numbers only writes its own sign.
                sign, bound = section.condition or (">", 0.0)
                return section, value < 0 and sign in ("<", "<=") and bound <= 0
        return None, False
    if value < 0 and len(numbers) > 1:
        return numbers[1], True
    return numbers[2 if value == 0 and len(numbers) > 2 else 0], False


def _holds(value: float, condition: tuple[str, float]) -> bool:
    sign, bound = condition
    return {
        "<": value < bound, ">": value > bound, "<=": value <= bound, ">=": value >= bound,
        "=": value == bound, "<>": value != bound,
    }[sign]  # fmt: skip


def _number(value: float, tokens: tuple[_Token, ...]) -> str:
    """A number that is not negative, with its digits in place of the code's `0`, `#` and `?`."""
    digits = [index for index, token in enumerate(tokens) if token.kind == "digit"]
    if not digits:
        # Such as `"-"`, or a currency alone.
        return "".join(stored(value) if token == ("other", "@") else token.text for token in tokens)
    first, last = digits[0], digits[-1]
    first -= bool(first and tokens[first - 1] == ("other", "."))
    inside = tokens[first : last + 1]
    before, after = _literals(tokens[:first]), _literals(tokens[last + 1 :])
    number = Decimal(repr(value)).scaleb(2 * sum(token == ("other", "%") for token in tokens))
    if _slash(tokens[first:]):
        return f"{before}{_fraction(number, tokens[first:])}"
    exponent = next((index for index, token in enumerate(inside) if token.kind == "exponent"), None)
    if exponent is not None:
        return f"{before}{_scientific(number, inside, exponent)}{after}"
    # Commas at the end of the digits divide by a thousand each.
    scale = 0
    while last + 1 + scale < len(tokens) and tokens[last + 1 + scale] == ("other", ","):
        scale += 1
    point = next((index for index, token in enumerate(inside) if token == ("other", ".")), len(inside))
    behind = point
    while behind and inside[behind - 1] == ("other", ","):
        behind -= 1
        scale += 1
    whole, decimals = inside[:behind], _places(inside)[1]
    number = number.scaleb(-3 * scale).quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    integer, _, fraction = f"{number:f}".partition(".")
    keep = len(decimals.rstrip("#?"))
    fraction = fraction[:keep] + fraction[keep:].rstrip("0")
    shown = _filled(integer.lstrip("0"), whole)
    return f"{before}{shown}{'.' if fraction else ''}{fraction}{after}"


def _scientific(number: Decimal, tokens: tuple[_Token, ...], exponent: int) -> str:
    """A number with an exponent, which is a multiple of the number of places before the point: `12.3E+3`."""
    whole, decimals = _places(tokens[:exponent])
    step = max(len(whole), 1)
    power = number.adjusted() // step * step if number else 0
    shown = number.scaleb(-power).quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    if shown and shown.adjusted() >= step:  # rounded up to the next power
        power += step
        shown = number.scaleb(-power).quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    digits = sum(token.kind == "digit" for token in tokens[exponent:])
    sign = "-" if power < 0 else "+" if tokens[exponent].text.endswith("+") else ""
    integer, point, fraction = f"{shown:f}".partition(".")
    keep = len(decimals.rstrip("#?"))
    fraction = fraction[:keep] + fraction[keep:].rstrip("0")
    integer = integer.zfill(whole.count("0"))
    return f"{integer}{point if fraction else ''}{fraction}E{sign}{abs(power):0{digits}}"


def _places(tokens: tuple[_Token, ...]) -> tuple[str, str]:
    """The digits' places before and after the decimal point."""
    codes = "".join(token.text for token in tokens if token.kind == "digit" or token == ("other", "."))
    whole, _, decimals = codes.partition(".")
    return whole, decimals.replace(".", "")[:_MOST_DIGITS]


def _filled(digits: str, tokens: tuple[_Token, ...]) -> str:
    """`digits` in the places of `tokens`, from the right; the first place has all that are left."""
    places = [index for index, token in enumerate(tokens) if token.kind == "digit"]
    grouped = any(token == ("other", ",") for token in tokens)
    if not places:
        return digits
    digits = digits.zfill(
        len(places) - next((i for i, at in enumerate(places) if tokens[at].text == "0"), 99)
    )
    if grouped:
        return f"{int(digits):,}".zfill(len(digits)) if digits else ""
    out: list[str] = []
    for index in reversed(range(len(tokens))):
        if tokens[index].kind != "digit":
            out.append(tokens[index].text)
        elif index == places[0]:
            out.append(digits)
        else:
            out.append(digits[-1:])
            digits = digits[:-1]
    return "".join(reversed(out))


def _literals(tokens: tuple[_Token, ...]) -> str:
    return "".join(token.text for token in tokens if token != ("other", ","))


def _slash(tokens: tuple[_Token, ...]) -> int:
    """The index of the slash before a denominator; 0 if there is none."""
    for index, (token, following) in enumerate(pairwise(tokens)):
        if token == ("other", "/") and (following.kind == "digit" or following.text.isdigit()):
            return index
    return 0


def _fraction(number: Decimal, tokens: tuple[_Token, ...]) -> str:
    """Such as `3 1/2`; the code names a denominator, or the number of its digits."""
    slash = _slash(tokens)
    below = "".join(token.text for token in tokens[slash + 1 :]).strip()
    has_whole = " " in "".join(token.text for token in tokens[:slash]).strip()
    fixed = int(below) if below.isascii() and below.isdigit() and int(below) else 0
    found = Fraction(number)
    if fixed:
        numerator, denominator = round(found * fixed), fixed
    else:
        nearest = found.limit_denominator(10 ** min(max(len(below), 1), 5) - 1)
        numerator, denominator = nearest.numerator, nearest.denominator
    if not has_whole:
        return f"{numerator}/{denominator}"
    whole, numerator = divmod(numerator, denominator)
    parts = [str(whole)] if whole or not numerator else []
    return " ".join([*parts, f"{numerator}/{denominator}"] if numerator else parts)


def _date(value: float, tokens: tuple[_Token, ...], from_1904: bool) -> str:
    """The date, the time of day or the elapsed time that the code shows; the number if it is none."""
    letters = "".join(token.text for token in tokens if token.kind == "date")
    elapsed = next((token.text[0] for token in tokens if token.kind == "elapsed"), "")
    has_seconds = "s" in letters or elapsed == "s"
    if abs(value) > _LAST_DAY:
        return stored(value)
    # A fraction of a second is shown if the code does.
    milliseconds = round(value * 86_400_000)
    fraction = "".join(token.text for token in tokens if token.kind in ("date", "other", "digit"))
    milliseconds = milliseconds if re.search(r"s\.0", fraction) else round(milliseconds / 1000) * 1000
    seconds, thousandths = divmod(abs(milliseconds), 1000)
    tail = (f":{seconds % 60:02}" if has_seconds else "") + (f".{thousandths:03}" if thousandths else "")
    if elapsed:
        sign = "-" if milliseconds < 0 else ""
        if elapsed == "h":
            return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}{tail}"
        return f"{sign}{seconds // 60}{tail}" if elapsed == "m" else f"{sign}{seconds}"
    day, milliseconds = divmod(milliseconds, 86_400_000)
    if not 0 <= day < _LAST_DAY:
        return stored(value)
    if not from_1904 and day < _FALSE_LEAP_DAY:
        day += 1
    moment = (_EPOCH_1904 if from_1904 else _EPOCH) + datetime.timedelta(days=day, milliseconds=milliseconds)
    has_year, has_day = bool(set(letters) & set("yeg")), "d" in letters
    time = f"{moment:%H:%M}{tail}"
    if "h" in letters or has_seconds:
        return f"{moment.date().isoformat()} {time}" if has_year or has_day else time
    if has_year and not has_day:
        return moment.date().isoformat()[: 7 if "m" in letters else 4]
    return moment.date().isoformat()
