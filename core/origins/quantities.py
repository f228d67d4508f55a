"""Quantities in a text: numbers with signs, scales and units, dates, and times of day.

The same patterns read answers and sources. A source's quantity has every value that it may mean, an answer's
only the literal ones: "5 million" of an answer is 5000000, of a source also 5.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core.origins.numerals import (
    KANJI,
    NUMBER_WORDS,
    ORDINAL_WORDS,
    of_german,
    of_kanji,
    of_words,
    plain_digits,
    readings,
    written,
)
from core.origins.times import MONTH, MONTHS, WORDED, WORDED_BEGINS, clock, date_value, worded
from core.origins.units import BEFORE, BEHIND, CURRENCIES, LATIN, SCALE, exponents, unit_of

QuantityKind = Literal["number", "amount", "date", "time"]

_YEAR = re.compile(r"(?:19|20)\d\d")
_VULGAR = "½¼¾⅓⅔⅛⅜⅝⅞"
_SLASHED = r"(?:1/2|[12]/3|[13]/4|[1357]/8)(?![\d/]|[.,]\d)"
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925}
_NUMBER = (
    r"(?:\d{1,3}(?P<mark>[,，.'’\u00a0\u2009\u202f ])\d{3}(?:(?P=mark)\d{3}){0,6}(?!\d)(?:[.,]\d{1,12})?"
    r"|\d{1,3}(?:,\d{2}){1,4},\d{3}(?!\d)|\d{1,40}(?:[.,]\d{1,12}){0,8})"
)
_CARDINALS = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_ORDINALS = "|".join(sorted(ORDINAL_WORDS, key=len, reverse=True))
# Further words of a number, after its first one.
_MORE = re.compile(
    rf"(?:[ \u00a0-]|[ ]and[ ]|-et-|[ ]et[ ])(?:{_CARDINALS})(?![^\W_])|-(?:{_ORDINALS})(?![^\W_])"
    r"|[ ]and[ ]a[ ]half\b|[ ]et[ ]demi\b",
    re.I,
)
_UNIT = re.compile(BEHIND, re.I)
# 12,- € and CHF 12.–
_NO_CENTS = re.compile(r"[,.][-–—]{1,2}(?![\d\w])")
_GERMAN = (
    "anderthalb|ein|zwei|zwo|drei|dritt|vier|fünf|sech|sieb|acht|neun|zehn|elf|zwölf|zwanzig|hundert|tausend"
    "|erst"
)
_ORDINAL = r"(?:st|nd|rd|th|er|re|e|ème|\.)"
_Y = r"(?:\d{4})(?!\d)"
# Digits first, then words by their first letter: most characters of a text can begin no quantity.
_DIGITS = rf"""
    (?P<iso>(?<![{LATIN}.,/-])(?P<iy>\d{{4}})[-/.](?P<im>\d{{1,2}})[-/.](?P<id>\d{{1,2}})(?![\d.,/-]\d)(?=\D|T\d|\Z))
  | (?P<dmy>(?<![{LATIN},/-])(?P<d1>\d{{1,2}})(?P<sep>[./-])[ ]?(?P<d2>\d{{1,2}})(?P=sep)[ ]?
      (?P<dy>\d{{4}}|\d\d)(?![{LATIN}/-]|[.,]\d))
  | (?P<dm>(?<![{LATIN}.,/-])(?P<dd>0?[1-9]|[12]\d|3[01])\.[ ]?(?P<mm>0?[1-9]|1[0-2])\.(?!\d))
  | (?<![{LATIN}.,])(?P<day>\d{{1,2}}){_ORDINAL}?(?:[ \u00a0]+(?:day[ ]of|of|de))?[ \u00a0-]*
      (?P<month>{MONTH})
      (?:,?[ \u00a0-]{{0,2}}(?:de[ ])?(?P<year>{_Y}|(?<=[-])\d\d\b))?
  | (?<![{LATIN}.,:])(?P<hour>[01]?\d|2[0-4])
      (?:(?::|[ \u00a0]?h[ \u00a0]?|(?P<point>\.))(?P<minute>[0-5]\d)(?!\d|[ \u00a0]?min)
        (?P<second>:[0-5]\d)?)?
      (?P<half>[ \u00a0]?(?:[ap]\.m\.|[ap]m\b|Uhr\b|o['’]clock\b))?
      (?(half)|(?(point)(?!)|(?(minute)|(?!))))
"""
_NUMERAL = rf"""(?P<before>(?<![\w]){BEFORE}[ \u00a0\u202f]?(?P<minus2>[-−](?=\d))?)?
      (?<![A-Za-z_\d])(?<!\d[.,])(?P<number>{_NUMBER})(?P<large>[{KANJI}](?:[{KANJI}\d]|[,，](?=\d{{3}}(?!\d))){{0,12}})?
      (?P<fraction>[ \u00a0]?[{_VULGAR}]|[ \u00a0]{_SLASHED})?
      (?P<scale>{SCALE})?"""
_JAPANESE = rf"""
    (?:(?P<era>令和|平成|昭和)\s?)?(?<!\d)(?P<jy>(?:\d{{1,4}}|元|[{KANJI}]{{1,4}}))年(?!間|以|目|度)
      (?:\s?(?P<jm>\d{{1,2}}|[{KANJI}]{{1,3}})月(?:\s?(?P<jd>\d{{1,2}}|[{KANJI}]{{1,3}})[日号])?)?
  | (?<!\d)(?P<jm2>\d{{1,2}}|[{KANJI}]{{1,3}})月(?:\s?(?P<jd2>\d{{1,2}}|[{KANJI}]{{1,3}})[日号])?
  | (?P<jhalf>午前|午後|上午|下午)?(?<!\d)(?P<jh>\d{{1,2}}|[{KANJI}]{{1,3}})
      (?:[時时](?!間|代|点|间|候)|点(?=半|钟|整|[\d{KANJI}]{{1,3}}分)|(?(jhalf)点|(?!)))
      (?:(?P<jmin>\d{{1,2}}|[{KANJI}]{{1,3}})分|(?P<jhalfhour>半))?"""
_LETTERS = rf"""
    (?:{WORDED})
  | (?P<month2>{MONTH})[ \u00a0]+(?:the[ ])?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:]|[.,]\d|-[^\W\d_])
      (?:,?[ \u00a0]+(?P<year2>{_Y}))?
  | (?P<month3>{MONTH})(?:[ \u00a0]*(?:of[ ]|de[ ])?,?[ ]?(?P<year3>{_Y}))?
  | (?P<words>{_CARDINALS}|{_ORDINALS})(?![^\W_])
  | (?P<twice>twice)(?![^\W_])
  | (?P<halves>half|halves|Hälfte|moitié)(?![^\W_])
  | (?P<german>(?:{_GERMAN})[^\W\d_]{{0,40}})(?P<gscale>[ ](?:Million|Milliarde)(?:en)?\b)?
"""


def _beginnings() -> str:
    """A pattern of the first two letters of the words in `_LETTERS`: most words are rejected by them."""
    seconds: dict[str, set[str]] = {}
    words = (*MONTHS, *NUMBER_WORDS, *ORDINAL_WORDS, *_GERMAN.split("|"), *WORDED_BEGINS, "hälfte", "moitié")
    for word in words:
        seconds.setdefault(word[0], set()).add(word[1])
    return "|".join(f"{first}[{''.join(sorted(seconds[first]))}]" for first in sorted(seconds))


_QUANTITY = re.compile(
    rf"""
    # Most characters are letters inside a word: reject them at once.
    (?:(?<![^\W_])|(?=[\d€$£¥￥{KANJI}元令平昭午上下{_VULGAR}]))(?:
    (?P<vulgar>[{_VULGAR}]|(?<![\d/.,-]){_SLASHED}(?={BEHIND}))
  | (?=[\d{KANJI}元令平昭午上下])(?:{_JAPANESE})
  | (?=\d)(?:{_DIGITS})
  | (?=[\d€$£¥￥EUGCJA])(?:{_NUMERAL})
  | (?<![{KANJI}\d])(?P<kanji>[{KANJI}]{{1,12}})
  | (?<![^\W_])(?={_beginnings()})(?:{_LETTERS})
    )
    """,
    re.X | re.I,
)
# The volumes and masses that a concentration or density refers to.
_PER = re.compile(r"/(d?[lL]|ml|kg|g|m²|m³|m2|m3)(?![^\W_])")
_GOES_ON = re.compile(r" [a-zäöü]")
# A sign, not a range or a list.
_MINUS = re.compile(r"(?:(?<![\w)\]%°'’\"”.])[-−–]|\b(?:minus|moins) )\Z")

COUNTERS = re.compile("[台個枚冊匹件室軒社箱足杯校名票]")


class Quantity(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of a text.

    - `values`: possible values. Numbers as `numerals` writes them; dates `2026-11-28`, `--11-28`, `2026-11`,
      `--11`; times `t09:30`.
    - `parts`: values of its components, as the year of a date.
    - `is_count`: it counts things other than units, as in "three lifts"; set only for answers.
    - `per`: the denominator of a measure's unit, as the l of mg/l; empty without one.
    - `unit`: canonical, empty without one. `is_negative`: it has a minus sign. `is_word`: it is written in
      letters.
    """

    start: int
    end: int
    kind: QuantityKind
    values: tuple[str, ...]
    parts: tuple[str, ...] = ()
    unit: str = ""
    is_negative: bool = False
    is_word: bool = False
    is_count: bool = False
    per: str = ""


def quantities(text: str, start: int = 0, end: int | None = None, *, marks: str = ",.") -> Iterator[Quantity]:
    """The quantities in the characters `start` to `end` of `text`, in order.

    `marks`: the possible decimal marks; several if unknown.
    """
    at, last = start, len(text) if end is None else end
    while (match := _QUANTITY.search(text, at, last)) is not None:
        found = _quantity(match, marks)
        at = match.end()
        if found is not None:
            at = max(at, found.end)
            yield found


# Characters after a quantity that can change it, such as those of a unit.
_REACH = 64


class Quantities:
    """The quantities of a growing text: only those near its end are found again."""

    def __init__(self) -> None:
        self._text, self._marks = "", ""
        self._kept: list[Quantity] = []
        self._at = 0

    def of(self, text: str, marks: str) -> list[Quantity]:
        """All of `quantities(text, marks=marks)`."""
        if marks != self._marks or not text.startswith(self._text):
            self._kept, self._at = [], 0
        self._text, self._marks = text, marks
        found, at, changeable = list(self._kept), self._at, -1
        while (match := _QUANTITY.search(text, at)) is not None:
            each = _quantity(match, marks)
            at = match.end() if each is None else max(match.end(), each.end)
            if each is not None:
                found.append(each)
            if changeable < 0 and at + _REACH <= len(text):
                self._at = at
                if each is not None:
                    self._kept.append(each)
            elif changeable < 0:
                changeable = match.start()
        # A quantity may begin with the two words before.
        end = text.rfind(" ", 0, len(text.rstrip()) if changeable < 0 else changeable)
        self._at = max(self._at, text.rfind(" ", 0, max(end, 0)) + 1)
        return found


# Unit of a number that numbers a line: "3." at its beginning.
LIST_MARKER = "#"
# Unit of a value that is a part of a quantity, as the year of a date.
PART = "/"
_LINE_BEGINS = re.compile(r"(?:^|\n)[ \t>#*_]{0,12}\Z")


def is_list_marker(text: str, found: Quantity) -> bool:
    """Whether a quantity of `text` numbers a line."""
    if (
        found.kind != "number"
        or found.unit
        or found.is_word
        or text[found.end : found.end + 1] not in (".", ")")
    ):
        return False
    behind = text[found.end + 1 : found.end + 2]
    if behind and not behind.isspace():
        return False
    return _LINE_BEGINS.search(text, max(0, found.start - 13), found.start) is not None


def _quantity(match: re.Match[str], marks: str) -> Quantity | None:
    get = match.groupdict()
    if get["iso"]:
        return _date(match, [(get["iy"], get["im"], get["id"])])
    if get["dmy"]:
        year = get["dy"] if len(get["dy"]) == 4 else "20" + get["dy"]
        return _date(match, [(year, get["d2"], get["d1"]), (year, get["d1"], get["d2"])])
    if get["dm"]:
        found = _date(match, [("", get["mm"], get["dd"])])
        number = get["dm"][:-1]
        if " " in number or _GOES_ON.match(match.string, match.end()):
            return found
        # At the end of a sentence it may also be a number, and is one if points mark fractions.
        if "," not in marks:
            end = match.end() - 1
            return Quantity(match.start(), end, "number", readings(number, marks), clock(number))
        return found and replace(found, values=(*found.values, *readings(number), *clock(number)))
    for day, month, year in (("day", "month", "year"), ("day2", "month2", "year2"), ("", "month3", "year3")):
        if get[month]:
            if month == "month3" and not get[year] and match[month][0].islower():
                # A word such as "mar", a French month alone, or seven in French.
                return _worded(match, "7") if match[month] == "sept" else None
            number = str(MONTHS[get[month].lower().rstrip(".")])
            given = get[year] or ""
            return _date(match, [("20" + given if len(given) == 2 else given, number, get.get(day) or "")])
    if get["jy"]:
        year = of_kanji(get["jy"]) or ""
        if get["era"]:
            year = str(_ERAS[get["era"]] + int(year))
        elif len(year) != 4:  # a number of years
            return None if get["jm"] else Quantity(*match.span(), "number", (year,), (), "year")
        return _date(match, [(year, _of_kanji(get["jm"]), _of_kanji(get["jd"]))])
    if get["jm2"]:
        return _date(match, [("", _of_kanji(get["jm2"]), _of_kanji(get["jd2"]))])
    if get["hour"]:
        return _time(match)
    if get["jh"]:
        hour, minute = int(_of_kanji(get["jh"]) or 99), int(_of_kanji(get["jmin"]) or 0)
        if get["jhalfhour"]:
            minute = 30
        if hour > 24:
            return None
        hours = (hour + 12,) if get["jhalf"] in ("午後", "下午") and hour < 12 else (hour,)
        return _times(match, hours, minute, ambiguous=not get["jhalf"] and 0 < hour <= 12)
    if get["number"]:
        return _plain(match, marks)
    if (in_words := worded(get)) is not None:
        hour, minute = in_words
        return replace(_times(match, (hour,), minute, ambiguous=not get["noon"]), is_word=True)
    if get["kanji"]:
        found = _worded(match, of_kanji(get["kanji"]))
        # A single one is mostly a part of a word.
        is_alone = len(get["kanji"]) == 1 and not COUNTERS.match(match.string, match.end())
        return found if found and (found.unit or not is_alone) else None
    if get["words"]:
        return _of_number_words(match)
    if get["halves"]:
        return Quantity(*match.span(), "number", ("50",), ("0.5",), "%", is_word=True)
    if get["twice"]:
        return Quantity(*match.span(), "number", ("2",), (), "times", is_word=True)
    if get["german"]:
        value = of_german(get["german"])
        if value and get["german"].lower().endswith("mal"):
            return Quantity(*match.span(), "number", (value,), (), "times", is_word=True)
        if value and get["gscale"]:
            value = written(Decimal(value).scaleb(9 if "illiard" in get["gscale"] else 6))
        return _worded(match, value)
    end, unit = _with_unit(match, match.end())
    return Quantity(match.start(), end, "number", (written(_fraction(match.group())),), (), unit)


def _fraction(text: str) -> Decimal:
    """Value of ½ or 1/2, thirds with three digits."""
    above, _, below = unicodedata.normalize("NFKC", text).replace("⁄", "/").strip().partition("/")
    return round(Decimal(above) / Decimal(below), 3)


def _of_kanji(text: str | None) -> str:
    return of_kanji(text) or "" if text else ""


def _with_unit(match: re.Match[str], end: int) -> tuple[int, str]:
    """End of the number's unit if one follows at `end`, else `end`; and the unit, empty without one."""
    behind = _UNIT.match(match.string, end, match.endpos)
    unit = unit_of(behind.group()) if behind else ""
    return (behind.end(), unit) if behind and unit else (end, "")


def _worded(match: re.Match[str], value: str | None, end: int | None = None) -> Quantity | None:
    if value is None:
        return None
    end, unit = _with_unit(match, match.end() if end is None else end)
    return Quantity(match.start(), end, "number", (value,), (), unit, is_word=True)


def _of_number_words(match: re.Match[str]) -> Quantity | None:
    text, end = match.string, match.end()
    if match["words"].lower() not in ORDINAL_WORDS:
        while (more := _MORE.match(text, end, match.endpos)) is not None:
            end = more.end()
    return _worded(match, of_words(text[match.start() : end]), end)


def _plain(match: re.Match[str], marks: str) -> Quantity:
    literal, scale, before = match["number"], exponents(match["scale"] or ""), unit_of(match["before"] or "")
    number_end = match.end() - (match["scale"] is not None and match.string[match.end() - 1] == ".")
    dash = _NO_CENTS.match(match.string, match.end(), match.endpos)
    end, behind = _with_unit(match, dash.end() if dash else match.end())
    if not behind:
        end = number_end
    parts: tuple[str, ...] = ()
    if match["fraction"] and literal.isdigit():
        literal = written(Decimal(plain_digits(literal)) + _fraction(match["fraction"]))
        marks = "."
    is_amount = bool({before, behind} & CURRENCIES)
    # An amount of money seldom has a fraction of three digits.
    values = readings(literal, "" if is_amount and not scale else marks)
    if match["large"]:
        value = of_kanji(literal + match["large"])
        values, parts = (value,) if value else values, values
    elif behind == "m" and before:  # €5m
        values, parts, behind = tuple(written(Decimal(value).scaleb(6)) for value in values), values, ""
    elif scale:
        values, parts = tuple(written(Decimal(value).scaleb(by)) for value in values for by in scale), values
    elif not values:  # a version
        values = (plain_digits(literal),)
    if match["scale"] and match["scale"].strip() == "B" and not before:  # also bytes
        values = (*values, *parts)
    if not (before or behind or match["large"] or scale):
        times = clock(literal)
        values, parts = (*values, *times) if literal[0] == "0" else values, (*parts, *times)
    if behind in ("pence", "cent"):  # 60p is £0.60
        values = (*values, *(written(Decimal(value).scaleb(-2)) for value in values))
    is_decade = behind == "second" and match.string[match.end() : end] == "s"  # the 1990s
    if is_decade or (behind == "year" and _YEAR.fullmatch(literal)):  # 2026 год
        end, behind = match.end(), ""
    sign = _MINUS.search(match.string, max(0, match.start() - 7), match.start())
    start = sign.start() if sign else match.start()
    kind: QuantityKind = "amount" if is_amount else "number"
    per = _PER.match(match.string, end) if behind and not is_amount else None
    is_negative = bool(sign or match["minus2"])
    return Quantity(
        start, end, kind, values, parts, before or behind, is_negative, per=per[1].lower() if per else ""
    )


def _date(match: re.Match[str], choices: list[tuple[str, str, str]]) -> Quantity | None:
    values, parts = [], set()
    for year, month, day in choices:
        year, month, day = (plain_digits(each) if each else "" for each in (year, month, day))
        if (month and not 1 <= int(month) <= 12) or (day and not 1 <= int(day) <= 31):
            continue
        values.append(date_value(year, month, day))
        parts |= {str(int(each)) for each in (year, day) if each}
        parts |= {date_value("", month, day), date_value(year, month, ""), date_value("", month, "")} - {""}
        if month and match.lastgroup not in ("month", "month2", "month3"):
            parts.add(str(int(month)))
    if not values:  # not a valid date: it is found only where it is written alike
        return Quantity(match.start(), match.end(), "number", (" ".join(match.group().lower().split()),))
    end = match.end() - (match.string[match.end() - 1] == ".")
    return Quantity(match.start(), end, "date", tuple(values), tuple(sorted(parts)))


def _time(match: re.Match[str]) -> Quantity | None:
    hour, minute = int(plain_digits(match["hour"])), int(plain_digits(match["minute"] or "0"))
    half = (match["half"] or "").strip().lower()
    if half.startswith("p") and hour < 12:
        hour += 12
    elif half.startswith("a") and hour == 12:
        hour = 0
    return _times(match, (hour,), minute, ambiguous=half in ("", "o'clock", "o’clock") and 0 < hour <= 12)


def _times(match: re.Match[str], hours: tuple[int, ...], minute: int, *, ambiguous: bool) -> Quantity:
    if ambiguous:
        hours = (*hours, (hours[0] + 12) % 24)
    values = tuple(f"t{hour:02}:{minute:02}" for hour in hours)
    parts = {str(hours[0]), str(hours[0] % 12 or 12)}
    if second := match["second"]:
        parts |= {*values}
        values = tuple(value + second for value in values)
    if match.groupdict().get("minute"):
        parts.add(f"{hours[0]}.{minute:02}".rstrip("0").rstrip("."))
    return Quantity(match.start(), match.end(), "time", values, tuple(sorted(parts)))
