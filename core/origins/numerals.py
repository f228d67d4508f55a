"""Values of numerals: digits with marks, number words of English, German and French, kanji.

A value is a decimal number as text in one form: no plus sign, no redundant zeros. A numeral can have
several values: "1.200" is 1200 or 1.2.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache

_NOT_ASCII_DIGIT = re.compile(r"[^\D0-9]")
_MARKS = re.compile(r"[,.]")


def plain_digits(text: str) -> str:
    """`text` with ASCII digits."""
    if text.isascii():
        return text
    return _NOT_ASCII_DIGIT.sub(lambda each: str(unicodedata.digit(each.group())), text).replace("，", ",")


def written(value: Decimal) -> str:
    """The value in its one form as text."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


@lru_cache(maxsize=1 << 12)
def readings(literal: str, decimal_marks: str = ",.") -> tuple[str, ...]:
    """Values of digits with marks of thousands and fractions; none for a version such as 1.2.3.

    "1.200" is 1200, 1.2 or both, by `decimal_marks`.
    """
    text = re.sub("[ \u00a0\u2009\u202f'’]", "", plain_digits(literal).replace("，", ","))
    marks = _MARKS.findall(text)
    if not marks:
        return (written(Decimal(text)),)
    last = marks[-1]
    groups = _MARKS.split(text)
    thousands = (
        not text.startswith("0")
        and len(groups[-1]) == 3
        and len(groups[0]) <= 3
        and all(len(group) in (2, 3) for group in groups[1:-1])
    )
    if len(marks) == 1:
        fraction = written(Decimal(f"{groups[0]}.{groups[1]}"))
        if not thousands:
            return (fraction,)
        whole = written(Decimal("".join(groups)))
        if last not in decimal_marks:
            return (whole,)
        return (fraction,) if decimal_marks == last else (whole, fraction)
    if len(set(marks)) == 1:
        return (written(Decimal("".join(groups))),) if thousands else ()
    if marks.count(last) == 1 and len(set(marks[:-1])) == 1:
        return (written(Decimal("".join(groups[:-1]) + "." + groups[-1])),)
    return ()


# ---- words

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_FRENCH = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
_FRENCH_TENS = {"vingt": 20, "vingts": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60,
                "septante": 70, "huitante": 80, "nonante": 90}  # fmt: skip
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14,
    "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19,
    "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50, "hundredth": 100,
    "premier": 1, "première": 1, "deuxième": 2, "seconde": 2, "troisième": 3, "quatrième": 4, "cinquième": 5,
    "sixième": 6, "septième": 7, "huitième": 8, "neuvième": 9, "dixième": 10, "onzième": 11, "douzième": 12,
    "quinzième": 15, "vingtième": 20, "trentième": 30, "centième": 100,
}  # fmt: skip
_SMALL = {
    **{word: value for value, word in enumerate(_ENGLISH.split())},
    **{word: 20 + 10 * at for at, word in enumerate(_ENGLISH_TENS.split())},
    **{word: value for value, word in enumerate(_FRENCH.split())},
    **_FRENCH_TENS,
    "une": 1,
}
_LARGE = {
    "hundred": 100, "hundreds": 100, "cent": 100, "cents": 100, "thousand": 1000, "mille": 1000,
    "million": 10**6, "millions": 10**6, "billion": 10**9, "milliard": 10**9, "milliards": 10**9,
    "dozen": 12,
}  # fmt: skip
NUMBER_WORDS = frozenset((*_SMALL, *_LARGE))
ORDINAL_WORDS = frozenset(_ORDINALS)
# Number words that are also pronouns or articles.
ONES = frozenset(("one", "un", "une", "ein", "eins", "eine", "einen", "einem", "einer", "eines"))


def of_words(text: str) -> str | None:
    """Value of English or French number words; None for other text."""
    names = [name for name in re.split(r"[\s-]+", text.lower()) if name not in ("and", "et", "")]
    if len(names) == 1 and names[0] in _ORDINALS:
        return str(_ORDINALS[names[0]])
    if names[-2:] == ["a", "half"] or names[-1:] == ["demi"]:
        whole = of_words(" ".join(names[: -2 if names[-1] == "half" else -1]))
        return f"{whole}.5" if whole else None
    total = current = 0
    for name in names:
        if name in _SMALL:
            value = _SMALL[name]
            current = current * 20 if value == 20 and current == 4 else current + value  # quatre-vingts
        elif name in _ORDINALS:
            current += _ORDINALS[name]
        elif (factor := _LARGE.get(name)) is None:
            return None
        elif factor == 100:
            current = max(current, 1) * 100
        else:
            total, current = total + max(current, 1) * factor, 0
    return str(total + current)


_GERMAN_ORDINAL = re.compile(r"(?:erst|zweit|dritt|viert|fünft|sechst|siebt|acht|neunt|zehnt)e[nmrs]?")


def is_ordinal(word: str) -> bool:
    """Whether a word in lower case is an ordinal number, which answers use to enumerate."""
    return word in ORDINAL_WORDS or _GERMAN_ORDINAL.fullmatch(word) is not None


_GERMAN = {
    "null": 0, "ein": 1, "eins": 1, "eine": 1, "zwei": 2, "zwo": 2, "drei": 3, "vier": 4, "fünf": 5,
    "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "dreizehn": 13,
    "vierzehn": 14, "fünfzehn": 15, "sechzehn": 16, "siebzehn": 17, "achtzehn": 18, "neunzehn": 19,
}  # fmt: skip
_GERMAN_TENS = {
    "zwanzig": 20, "dreißig": 30, "dreissig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70,
    "achtzig": 80, "neunzig": 90,
}  # fmt: skip
_GERMAN_PARTS = {**_GERMAN, **_GERMAN_TENS, "hundert": 100, "tausend": 1000, "und": -1}
_GERMAN_PART = re.compile("|".join(sorted(_GERMAN_PARTS, key=len, reverse=True)))
# Endings that may follow the number in a word: vierzehntägig, dreifach, fünfte.
_GERMAN_END = re.compile(
    r"(?:|(?:s?te|te)[nmrs]?|er|mal|mals|fach\w*|(?:wö|tä|stü|jä|mi|mo|se|te|sei|kö|zei|stu|stel|gli|spu|tei)\w+"
    r"|(?:jahr|tag|woche|monat|stunde|minute)\w*)"
)


@lru_cache(maxsize=1 << 12)
def of_german(word: str) -> str | None:
    """Value of a German number word, also at the beginning of a longer word; None for other words."""
    text = word.lower()
    if text.endswith("einhalb") and (whole := of_german(text.removesuffix("einhalb"))):
        return f"{whole}.5"
    if text == "anderthalb":
        return "1.5"
    if text.startswith(("dritte", "drittel")):
        return "3"
    if re.fullmatch(r"siebte[nmrs]?|achte[nmrs]?|erste[nmrs]?", text):
        return {"s": "7", "a": "8", "e": "1"}[text[0]]
    at, total, current, ones = 0, 0, 0, 0
    while match := _GERMAN_PART.match(text, at):
        part = match.group()
        if part == "und":
            ones, current = ones or current % 100, current - current % 100
        elif part == "hundert":
            current = max(current, 1) * 100
        elif part == "tausend":
            total, current = total + max(current, 1) * 1000, 0
        elif part in _GERMAN_TENS:
            current, ones = current + _GERMAN_TENS[part] + ones, 0
        else:
            current += _GERMAN_PARTS[part]
        at = match.end()
    if at == 0 or _GERMAN_END.fullmatch(text, at) is None:
        return None
    return str(total + current + ones)


_KANJI = {each: value for value, each in enumerate("〇一二三四五六七八九")} | {
    "零": 0,
    "元": 1,
    "両": 2,
    "两": 2,
}
_KANJI_UNITS = {"十": 10, "百": 100, "千": 1000}
_KANJI_LARGE = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8, "兆": 10**12}
KANJI = "〇零一二两三四五六七八九十百千万萬億亿兆"


def of_kanji(text: str) -> str | None:
    """Value of kanji, with digits or without: 二〇二六, 三千五百, 2億5000万; None for other text."""
    text = plain_digits(text).replace(",", "")
    total, current, number = Decimal(0), Decimal(0), ""
    for each in text:
        if each in _KANJI:
            number += str(_KANJI[each])
        elif each.isdigit() or each == ".":
            number += each
        else:
            try:
                value = Decimal(number) if number else None
            except ArithmeticError:
                return None
            number = ""
            if each in _KANJI_UNITS:
                current += (1 if value is None else value) * _KANJI_UNITS[each]
            elif each in _KANJI_LARGE:
                current += value or 0
                total += (current or 1) * _KANJI_LARGE[each]
                current = Decimal(0)
            else:
                return None
    try:
        return written(total + current + (Decimal(number) if number else 0))
    except ArithmeticError:
        return None
