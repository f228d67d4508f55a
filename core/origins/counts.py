"""Counts of an answer: numbers without a unit before the noun that they count, as in "three lifts".

A count stands only where a source counts with the same number: not by its years, dates or headings.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from core.origins.lexicon import FUNCTION_WORDS
from core.origins.quantities import COUNTERS, Quantity
from core.origins.units import names_unit

_NOUN = re.compile(r"[ \u00a0]([^\W\d_]{3,40})(?:[ -][^\W\d_]{1,40}){0,2}")
# In German every noun.
_PLURAL = re.compile(r" [^\W\d_]+[sx](?![^\W_])| [A-ZÄÖÜ]")
# Larger counts seldom stand in a document as another figure.
_MOST_COUNTED = 99
_WORD_BEFORE = re.compile(r"([^\W_]{1,20})[ \u00a0]\Z")


def as_count(text: str, found: Quantity) -> Quantity:
    """The quantity of `text`, as a count if a noun follows: "three lifts", but not "Route 64 runs"."""
    value = found.values[0]
    if found.kind != "number" or found.unit or not value.isdigit() or int(value) > _MOST_COUNTED:
        return found
    if COUNTERS.match(text, found.end):
        return replace(found, is_count=True)
    noun = _NOUN.match(text, found.end)
    if noun is None or noun[1].lower() in FUNCTION_WORDS or names_unit(noun.group()):
        return found
    if not _PLURAL.search(noun.group()):
        return found
    before = _WORD_BEFORE.search(text, max(0, found.start - 20), found.start)
    if before and not found.is_word and before[1].lower() not in FUNCTION_WORDS:
        return found
    return replace(found, is_count=True)
