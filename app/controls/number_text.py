"""Numbers as text, in the notation of the person's region.

A typed number is read in that notation, and in another one if only one number can be meant: “0,7” and “0.7”
are 0.7 everywhere. A text that may be two numbers is refused.
"""

from __future__ import annotations

import re
from decimal import Decimal
from unicodedata import digit

from msgspec import Struct
from PySide6.QtCore import QLocale

from core.errors import RequestError

NOT_A_NUMBER = "“{text}” is not a number."
NOT_WHOLE = "“{text}” is not a whole number."
TWO_NUMBERS = "“{text}” can be read as two numbers. Type it without separators between thousands."
OUTSIDE = "“{text}” is outside the range from {low} to {high}."
NOT_ABOVE = "“{text}” is outside the range above {low} up to {high}."
TYPE_A_NUMBER = "The value was not changed."

# Marks used in place of others, on keyboards and in copied texts.
_SAME = str.maketrans(
    {"．": ".", "，": ",", "،": ",", "٫": "٫", "＇": "’", "'": "’", "`": "’", "−": "-", "－": "-", "﹣": "-"}
    | dict.fromkeys("\u00a0\u2007\u2009\u202f", " ")
    | dict.fromkeys("\u200e\u200f\u061c")  # directions
)
# Thousands may be separated, in India also hundreds of thousands.
_WHOLE = re.compile(
    r"[0-9]*|[0-9]{1,3}(?P<mark>[.,’٬ ])[0-9]{3}(?:(?P=mark)[0-9]{3})*|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}"
)
_TYPED = re.compile(r"[-+]?[\d.,’٬٫ ]*")
# A number of this form has thousands in one notation and a fraction in another.
_EITHER = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_MOST_CHARACTERS = 64


class Notation(Struct, frozen=True):
    """Marks before a fraction and between thousands, minus sign and zero of a region; `locale` groups."""

    locale: QLocale
    point: str
    group: str
    minus: str
    zero: str

    @classmethod
    def of(cls, locale: QLocale) -> Notation:
        """The notation of `locale`; English for the C locale, which has none."""
        if locale.language() == QLocale.Language.C:
            locale = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)
        point, group = locale.decimalPoint(), locale.groupSeparator()
        return cls(locale, point, group, locale.negativeSign(), locale.zeroDigit())


def plain(value: float) -> str:
    """`value` with a decimal point and all of its digits, without an exponent and zeros at the end."""
    text = f"{Decimal(repr(value)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown(value: float, notation: Notation, *, grouped: bool) -> str:
    """`value` in `notation`, with all of its digits; `grouped`: thousands are separated."""
    whole, _, fraction = plain(abs(value)).partition(".")
    locale = QLocale(notation.locale)
    if not grouped:
        locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator)
    text = locale.toString(int(whole)) if int(whole) < 2**63 else whole
    if fraction:
        text += notation.point + "".join(chr(ord(notation.zero) + int(each)) for each in fraction)
    return notation.minus + text if value < 0 else text


def may_be_typed(text: str) -> bool:
    """Whether `text` has only characters of numbers."""
    return len(text) <= _MOST_CHARACTERS and _TYPED.fullmatch(text.translate(_SAME).strip()) is not None


def read(text: str, notation: Notation, *, whole: bool) -> float:
    """The number that `text` means. Raises RequestError if it means none or may mean two."""
    if not may_be_typed(text):
        raise _refused(NOT_A_NUMBER, text)
    typed = "".join(str(digit(mark)) if mark.isdecimal() else mark for mark in text.translate(_SAME)).strip()
    digits = typed.lstrip("+-").strip()
    point, group = (mark.translate(_SAME) for mark in (notation.point, notation.group))
    mark = _mark_of_fraction(digits)
    if _EITHER.fullmatch(digits):
        if mark == group:
            mark = ""
        elif whole or mark != point:
            raise _refused(TWO_NUMBERS, text)
    before, _, after = digits.partition(mark) if mark else (digits, "", "")
    if not _WHOLE.fullmatch(before) or not re.fullmatch("[0-9]*", after) or not before + after:
        raise _refused(NOT_A_NUMBER, text)
    number = Decimal(
        f"{'-' if typed.startswith('-') else ''}{re.sub('[^0-9]', '', before) or 0}.{after or 0}"
    )
    if whole and number % 1:
        raise _refused(NOT_WHOLE, text)
    return float(number)


def _mark_of_fraction(digits: str) -> str:
    """The mark between whole number and fraction; empty without a fraction."""
    last = next((mark for mark in reversed(digits) if mark in ".,٫"), "")
    return last if digits.count(last or ".") == 1 else ""


def _refused(reason: str, text: str) -> RequestError:
    return RequestError(reason.format(text=text.strip()), TYPE_A_NUMBER)
