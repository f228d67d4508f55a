"""Reads the words after a number without a unit: the unit of a range, or the noun that is counted.

A count is found only where a source counts with the same number, not in its years, measures or headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec.structs import replace

from core.origins.lexicon import FUNCTION_WORDS
from core.origins.quantities import COUNTERS, Quantity
from core.origins.references import NUMBERED
from core.origins.units import names_unit

_NOUN = re.compile(r"[ \u00a0]([^\W\d_]{3,40})(?:[ -][^\W\d_]{1,40}){0,2}")
# In German any noun counts as a plural.
_PLURAL = re.compile(r" [^\W\d_]+[sx](?![^\W_])| [A-ZÄÖÜ]")
# Text between the two numbers of a range.
_TO = re.compile(r"[ \u00a0]?(?:[-–—]|to|bis|à|から|～|〜)[ \u00a0]?\Z")


_BETWEEN = re.compile(r"\b(?:between|entre|zwischen) \Z", re.I)
_AND = re.compile(r" (?:and|et|und) ")
_BETWEEN_CHARACTERS = 12


def _are_range(text: str, one: Quantity, two: Quantity) -> bool:
    if _TO.fullmatch(text, one.end, two.start):
        return True
    return bool(
        _AND.fullmatch(text, one.end, two.start)
        and _BETWEEN.search(text, max(0, one.start - _BETWEEN_CHARACTERS), one.start)
    )


# As in "three of the six bikes".
_OF = re.compile(
    r" (?:of|von|sur|des|de)(?: (?:the|these|those|your|our|den|diesen|ces|les))?(?: \w+(?= \w))?"
)


def as_count(text: str, found: Quantity) -> Quantity:
    """The quantity of `text`, as a count if a noun in the plural follows: "three lifts"."""
    if found.kind != "number" or found.unit or not found.values[0].isdigit():
        return found
    if COUNTERS.match(text, found.end):
        return replace(found, is_count=True)
    of = _OF.match(text, found.end)
    noun = _NOUN.match(text, of.end() if of else found.end)
    if noun is None or noun[1].lower() in FUNCTION_WORDS or names_unit(noun.group()):
        return found
    return replace(found, is_count=True) if _PLURAL.search(noun.group()) else found


def with_ranges(text: str, found: Sequence[Quantity]) -> Iterator[Quantity]:
    """The quantities of `text`; the first number of a range has the unit of the second one."""
    for each, behind in zip_longest(found, found[1:]):
        if (
            behind is None
            or each.kind != "number"
            or each.unit
            or not each.values[0].isdigit()
            or not _are_range(text, each, behind)
        ):
            yield each
        elif behind.unit and behind.unit != NUMBERED and behind.kind in ("number", "amount"):
            yield replace(each, unit=behind.unit, kind=behind.kind)
        elif behind.kind == "time" and (hour := int(each.values[0])) < 24 and ":00" in behind.values[0]:
            is_whole_day = text[behind.start : behind.end].lower().endswith("uhr")
            times = (f"t{hour:02}:00", f"t{(hour + 12) % 24:02}:00")
            yield replace(each, kind="time", values=times[:1] if is_whole_day else times)
        else:
            yield each
