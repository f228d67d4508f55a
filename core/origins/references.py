"""References to numbered parts of a text: "§ 9", "Section 4.2", "Art. 12 Abs. 3", "第9条".

A reference is found where a text has its number as a reference or as the number of a heading or list item,
whose values begin with `SIGN`. "No. 9" and the like also mean bare numbers.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec.structs import replace

from core.origins.numerals import plain_digits
from core.origins.quantities import Quantity

SIGN = "§"
# Unit of a number after a word that precedes both references and ordinary numbers.
NUMBERED = "№"
_STRICT = (
    r"§{1,2}|(?:art(?:icles?|ikeln?|s?\.)|sect(?:ions?|\.)|sec\.|clauses?|para(?:graphs?|s?\.)|chap(?:ters?|\.)"
    r"|abschnitte?n?|absatz|absätzen?|abs\.|kapiteln?|ziff(?:ern?|\.)|paragra(?:f|ph)en|chapitres?|alinéas?)"
)
_LOOSE = r"(?:nr\.|nummern?|no\.|n°|nº|numéros?|numbers?|punkte?|points?|rules?|regeln?|items?)"
_LISTED = (
    r"(?:\d{1,4}(?:\.\d{1,3}){0,3}[a-z]?"
    r"(?:, ?| and | or | und | oder | et | ou | to | bis | à |–|-)){0,6}"
)
_BEFORE = re.compile(
    rf"(?:(?<![^\W_])(?:(?P<strict>{_STRICT})|(?P<loose>{_LOOSE}))[ \u00a0\u202f]?\(?{_LISTED}"
    r"|(?P<sign>第))\Z",
    re.I,
)
_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,3}){0,3}[a-z]?(?![^\W_]|[.,]\d)")
_JAPANESE = re.compile(r"[条章節項款]")
_HEADING = re.compile(
    r"^[ \t>#*_|]{0,12}(?:§ ?)?\(?(\d{1,4}(?:\.\d{1,3}){0,3}[a-z]?)(?:[.):|](?!\d)|(?=[ \t*]))", re.M
)
_WINDOW = 60
_MOST_PARTS = 199
_ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def as_reference(text: str, found: Quantity) -> Quantity:
    """The quantity of `text`, as a reference if it is one."""
    if found.is_negative or ("." in text[found.start : found.end].rstrip(".") and found.unit):
        return found
    before = _named_before(text[max(0, found.start - _WINDOW - 1) : found.start])
    if before is None:
        return found
    if before["sign"]:
        end = found.end - (found.unit != "")
        if found.kind != "number" or not _JAPANESE.match(text, end):
            return found
        return replace(found, values=(SIGN + found.values[0],), parts=(), unit="")
    number = _NUMBER.match(text, found.start)
    if number is None or text[number.end() : found.end].strip():
        return found
    literal = plain_digits(number.group())
    # "Article" with a high number is mostly an article of goods.
    is_goods = before["strict"] not in ("§", "§§", None) and literal.isdigit() and int(literal) > _MOST_PARTS
    if before["strict"] and not is_goods:
        return Quantity(found.start, number.end(), "number", (SIGN + literal,))
    if found.kind != "number" or found.unit or "." in literal or not literal.isdigit():
        return found
    return replace(found, values=(SIGN + literal, *found.values), parts=(), unit=NUMBERED)


@lru_cache(maxsize=1 << 10)
def _named_before(text: str) -> re.Match[str] | None:
    """Cached, because a line that is being written is read again with each of its tokens."""
    return _BEFORE.search(text, max(0, len(text) - _WINDOW))


def headings(text: str, start: int, end: int) -> list[tuple[str, int, int]]:
    """Numbers of headings and list items that begin in the characters `start` to `end`, with their place:
    4.2.1 is also one of the numbers 4.2 and 4.
    """
    found = []
    for match in _HEADING.finditer(text, start, end):
        literal = plain_digits(match[1])
        while literal:
            found.append((SIGN + literal, match.start(1), match.end(1)))
            literal = literal.rpartition(".")[0]
    return found


def roman(value: str) -> str:
    """The number of a reference in Roman numerals; empty above 39."""
    digits = value.removeprefix(SIGN)
    number, text = (int(digits) if digits.isdigit() else 99), ""
    if not 0 < number < 40:
        return ""
    for step, letters in _ROMAN:
        while number >= step:
            text += letters
            number -= step
    return text
