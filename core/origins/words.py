"""Words of a text, as origins compare them.

Two texts have the same words if they differ only in letter case, dashes, quotes, line breaks, hyphenation at
line ends, or Markdown marks. Digits, signs and symbols of units are words or parts of words. A number is one
word, without the marks between its thousands; letters that follow its digits are another word, so that
"5kg" is "5 kg". In scripts without spaces each character is a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

# A longer sequence of letters or digits is split into words of this length.
_LONGEST = 64

# Scripts without spaces between words: Han and kana, Thai, Lao, Myanmar and Khmer.
UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff\u0e01-\u0e4e\u0e80-\u0ecf\u1000-\u103f\u1780-\u17d3"
)
# Combining marks, which are not in \w.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0900-\u0903\u093a-\u094f\u1dc0-\u1dff"
_IGNORED = "\u00ad\u200b-\u200d\u2060\ufeff"
_LOWER = "a-zß-öø-ÿāăąćčďđēęěğīįłńňőœřśşšţťūůűųźżžа-яёα-ω"
# Thousands are separated by one of these, the same between all groups.
_SEPARATOR = "[,.'’\u00a0\u2009\u202f ]"
_WORD = re.compile(
    rf"""
    (?P<marker>^[ \t>]{{0,12}}(?:\d{{1,3}}[.)](?=[ \t])|[-*+•][ \t]))
  | (?P<number>(?P<grouped>\d{{1,3}}(?P<mark>{_SEPARATOR})\d{{3}}(?:(?P=mark)\d{{3}}){{0,6}}
          (?!\d|[.,]\d{{1,12}}[.,]\d)
        (?P<fraction>[.,]\d{{1,12}})?)
      | \d{{1,{_LONGEST}}}(?:[.,]\d{{1,12}}){{0,8}})
  | (?P<unspaced>[{UNSPACED}])
  | (?P<word>[^\W\d_](?:[^\W_{UNSPACED}]|[{_MARKS}{_IGNORED}]
      |[-\u2010\u00ad]\r?\n[ \t]{{0,12}}(?=[{_LOWER}])){{0,{_LONGEST}}})
  | (?P<sign>(?<![\w)\]%°'’"”])[-−–+](?=\d|[€$£¥]\ ?\d))
  | (?P<symbol>[%‰°€$£¥₽₩₹¢§±×÷√∞≤≥≠≈µ％]|(?<!=)=(?!=)|[<>](?=\ ?\d))
  | (?P<link>\]\((?=https?:|mailto:|[/\#.])[^()\s]{{0,1000}})
  | (?P<tag></?[A-Za-z][A-Za-z0-9]{{0,10}}\ ?/?>)
  | (?P<entity>&(?:[A-Za-z]{{2,8}}|\#\d{{1,6}});)
    """,
    re.X | re.M,
)
_JOINT = re.compile(r"[-\u2010\u00ad]\r?\n[ \t]*|[\u00ad\u200b-\u200d\u2060\ufeff]")
_DIGITS = re.compile(r"\d")
_SAME = str.maketrans({"−": "-", "–": "-", "％": "%", "µ": "μ"})


class Word(NamedTuple):
    """Characters `start` to `end` (end-exclusive) of a text; `key` is equal for equal words."""

    key: str
    start: int
    end: int


def words(text: str, start: int = 0, end: int | None = None) -> Iterator[Word]:
    """The words of the characters `start` to `end` of `text`, without list markers, link targets and tags."""
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        kind = match.lastgroup
        if kind == "word" or kind == "unspaced":
            yield Word(_plain(match.group()), match.start(), match.end())
        elif kind == "number":
            yield Word(_number(match), match.start(), match.end())
        elif kind == "sign" or kind == "symbol":
            yield Word(match.group().translate(_SAME), match.start(), match.end())


# Characters that can begin a tag, or a link's target in an unspaced script.
_LONGEST_TAG = 14
_LOOKED_BACK = 40


def fixed_end(text: str, start: int, end: int) -> int:
    """The last position from `start` to `end` before which appended text cannot change the words;
    `start` without one.
    """
    for at in range(min(len(text) - 1, end), max(start, end - _LOOKED_BACK, len(text) - _LOOKED_BACK), -1):
        before = text[at - 1]
        if text[at] == " " and before.isalpha():
            if "<" not in text[max(0, at - _LONGEST_TAG) : at]:
                return at
        elif before > "\u0e00" and is_unspaced(before) and is_unspaced(text[at]):
            return start if "](" in text[:at] else at
    return start


def is_unspaced(key: str) -> bool:
    """Whether the word is a character of a script without spaces."""
    return key[0] > "\u0e00" and _UNSPACED.match(key) is not None


def unspaced_language(text: str) -> str:
    """`ja` if the text has a character of a script without spaces, of Chinese as well; else empty."""
    return "ja" if not text.isascii() and _UNSPACED.search(text) else ""


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l"})


def without_accents(key: str) -> str:
    """The word as it is written where accents are not available: mueller, francois."""
    if key.isascii():
        return key
    plain = unicodedata.normalize("NFD", key.translate(_UMLAUTS))
    return "".join(each for each in plain if not unicodedata.combining(each))


_UNSPACED = re.compile(f"[{UNSPACED}]")


@lru_cache(maxsize=1 << 14)
def _plain(text: str) -> str:
    if text.isascii():
        return (_JOINT.sub("", text) if "\n" in text else text).lower()
    return unicodedata.normalize("NFKC", _JOINT.sub("", text)).casefold()


def _number(match: re.Match[str]) -> str:
    text = match.group()
    if not text.isascii():
        text = _DIGITS.sub(lambda digit: str(unicodedata.digit(digit.group())), text)
    if match["grouped"] is None:
        return text
    mark = match["mark"]
    if text[0] == "0" or (match["fraction"] or "")[:1] == mark:
        return text  # a fraction of three digits, or a version
    fraction = len(match["fraction"] or "")
    whole, rest = text[: len(text) - fraction], text[len(text) - fraction :]
    return whole.replace(mark, "") + rest.replace(",", ".")
