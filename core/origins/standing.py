"""Finds a fact in one source."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from core.origins.implied import can_have, falls_in, in_scale, may_be_per, measures
from core.origins.index import Index
from core.origins.lexicon import ALSO_CALLED, COMMON, TITLES
from core.origins.names import Name
from core.origins.quantities import LIST_MARKER, PART, Quantity
from core.origins.references import NUMBERED, SIGN, roman
from core.origins.times import MONTH, MONTHS
from core.origins.units import same_unit
from core.origins.words import without_accents, words

Read = Sequence[tuple[int, int]] | None

# Units of numbers in a source that are tried last.
_ORDER = {LIST_MARKER: 2, PART: 3}
# Length of a list of months.
_LISTED = 160
_SHARED_DAY = re.compile(
    r"(?<![\d.,])(?:(\d{1,2})(?:st|nd|rd|th|er|\.)?|(fifteenth)|first|ersten|premier)(?: (?:day|jour|tag))?"
    rf"(?: of| de| des| d['’]| im)? ?(?:{MONTH}(?: \d{{4}})?[ ,;/\n]{{0,3}}"
    r"(?:(?:and|und|et|or|oder|ou|&)[ \n])?(?:d['’]|de )?){0,11}\Z",
    re.I,
)
# Units of a duration after its hours.
_LENGTHS = ("m|min\\w*|分", "s|sec\\w*|sek\\w*|秒")
_DECIMAL = re.compile(r"\d[.,]\d{1,2}(?!\d)")
_DAY = re.compile(r"(?:st|nd|rd|th)(?![^\W_])")
_YEAR = re.compile(r"[.,]? (\d{4})(?!\d)")
_NAMES: dict[str, list[str]] = {}
for _name, _number in MONTHS.items():
    _NAMES.setdefault(f"{_number:02}", []).append(_name)
# Units under which an index has numbers that may count something.
_OF_COUNTS = ("", "people")
# Most places that are checked for one value and unit of a source.
_MOST_SPOTS = 64
_UNIT_CHARACTERS = 32
_RANGE = re.compile(
    r"\s{0,2}(?:[-–—/x×+]|to|bis|à|and|und|et|or|oder|ou|から|～|〜)\s{0,2}[-−]?(?:\d[\d.,]*\d|\d|\w+)"
)
# A range up to its second number.
_TO = re.compile(r"\d\s{0,2}(?:[-–—]|to|bis|à|から|～|〜)\s{0,2}\Z")
_FRENCH_HOUR = re.compile(r"\d{1,2}[ \u00a0\u202f]?h")
_ELLIPSIS = re.compile(r"\.\.\.|…|\[[^\[\]]{0,40}\]")
# Letters and digits of a phone number or account, which may be in groups.
_LONG_NUMBER = 7
# Most words between two parts of a name in a source.
_NEAR_WORDS = 3
_MOST_PAIRS = 1000
_MOST_INITIALS = 8
# Most letters at the end of a Russian word that its case can change.
_ENDING = 2
_ENDINGS = ("s", "es", "n", "en", "r", "e")


_ADDRESS = re.compile(r"https?://[^/]+|www\.[^/]+", re.I)
_BODY = re.compile(r"^[A-Z]{2,5}[ /-](?=[A-Z]{2,5}[ /-])")


class Standing(NamedTuple):
    """The fact's character range in the source, None if it has none, and whether the model read it."""

    span: tuple[int, int] | None
    was_read: bool


NOWHERE = Standing(None, False)


def first_read(starts: Sequence[int], ends: Sequence[int], read: Read) -> Standing:
    """The first of the ascending places that was read; the first of all if none was."""
    if not starts:
        return NOWHERE
    for first, last in () if read is None else read:
        at = bisect_left(starts, first)
        if at < len(starts) and ends[at] <= last:
            return Standing((starts[at], ends[at]), True)
    return Standing((starts[0], ends[0]), read is None)


# ---- quantities


def of_quantity(what: Quantity, index: Index, read: Read) -> Standing:
    """Find a quantity of the same value and sign, with the same unit or where that may be implied."""
    best = NOWHERE
    for value in what.values:
        kept = index.values.get(value, {})
        for unit, is_negative in sorted(kept, key=lambda key: _ORDER.get(key[0], key[0] != what.unit)):
            counts = what.is_count or what.unit in _OF_COUNTS[1:]
            if counts and unit not in _OF_COUNTS:
                continue
            if what.unit == NUMBERED and unit not in ("", LIST_MARKER):
                continue
            starts: Sequence[int]
            ends: Sequence[int]
            starts, ends = kept[unit, is_negative]
            if what.is_negative and not is_negative:
                falls = [
                    at
                    for at in range(min(len(starts), _MOST_SPOTS))
                    if falls_in(index.text, starts[at], ends[at])
                ]
                starts, ends = [starts[at] for at in falls], [ends[at] for at in falls]
            if counts:
                spots = [
                    at
                    for at in range(min(len(starts), _MOST_SPOTS))
                    if not _DECIMAL.search(index.text, starts[at], ends[at])
                    and not measures(index.text, starts[at])
                ]
                starts, ends = [starts[at] for at in spots], [ends[at] for at in spots]
            if what.per:
                spots = [
                    at
                    for at in range(min(len(starts), _MOST_SPOTS))
                    if may_be_per(index.text, starts[at], ends[at], what.per)
                ]
                starts, ends = [starts[at] for at in spots], [ends[at] for at in spots]
            if not counts and what.unit not in ("", NUMBERED) and not same_unit(what.unit, unit):
                if unit not in ("", PART):
                    continue
                spots = [
                    at
                    for at in range(min(len(starts), _MOST_SPOTS))
                    if can_have(index, starts[at], ends[at], what.unit, is_part=bool(unit))
                ]
                starts, ends = [starts[at] for at in spots], [ends[at] for at in spots]
            found = first_read(starts, ends, read)
            if found.was_read:
                return found
            best = best if best.span else found
    if best.span is None and what.values[0].startswith(SIGN):
        return of_words([roman(what.values[0])], index, read)
    if best.span is None and what.kind in ("number", "amount"):
        if what.parts and (places := in_scale(what, index)):
            return first_read([start for start, _ in places], [end for _, end in places], read)
        return _of_digits(what, index, read)
    if best.span is None and what.kind == "date":
        return _of_date(what, index, read)
    return _of_hour(what, index, read) if best.span is None and what.kind == "time" else best


def _of_digits(what: Quantity, index: Index, read: Read) -> Standing:
    """Find a long number that the source writes in groups, such as a phone number."""
    digits = what.values[0]
    return _of_groups(digits, index, read) if digits.isdigit() and len(digits) >= 6 else NOWHERE


def _of_groups(letters: str, index: Index, read: Read) -> Standing:
    if letters not in index.squeezed:
        return NOWHERE
    match = re.search(r"[\W_]{0,3}".join(map(re.escape, letters)), index.folded)
    return first_read([match.start()], [match.end()], read) if match else NOWHERE


def _of_date(what: Quantity, index: Index, read: Read) -> Standing:
    """Find a date that the source writes without its year, if the year is elsewhere in it, or without its
    month, next to another day of that month: "from 3 to 17 November".
    """
    for value in what.values:
        year, _, rest = value.partition("-")
        if len(year) != 4 or not rest or year not in index.values:
            continue
        for unit, is_negative in index.values.get(f"--{rest}", {}):
            if unit != PART:
                return first_read(*index.values[f"--{rest}"][unit, is_negative], read)
    if (shared := _of_shared_day(what, index)) is not None:
        return first_read([shared[0]], [shared[1]], read)
    for value in what.values:
        year, month, day = (*value.replace("--", "-", 1).split("-"), "", "")[:3]
        if not (month and day):
            continue
        for unit in ("", LIST_MARKER):
            starts, ends = index.values.get(str(int(day)), {}).get((unit, False), ([], []))
            for start, end in zip(starts[:_MOST_SPOTS], ends):
                if _is_near_month(index, start, end, year, month):
                    return first_read([start], [end], read)
    return NOWHERE


def _is_near_month(index: Index, start: int, end: int, year: str, month: str) -> bool:
    """Whether a date of the month is near, or anywhere for a day such as "the 24th"."""
    dates = index.months.get(month, [])
    if dates and _DAY.match(index.text, end):
        return year in ("", *(said for said, _, _ in dates))
    for at in range(bisect_left(dates, start - _UNIT_CHARACTERS, key=itemgetter(1)), len(dates)):
        said, first, _ = dates[at]
        if first > end + _UNIT_CHARACTERS:
            return False
        if year in ("", said):
            return True
    return False


def _of_shared_day(what: Quantity, index: Index) -> tuple[int, int] | None:
    """Find a month in a list that begins with the day: "on the first day of May, July and October"."""
    for value in what.values:
        year, month, day = (*value.replace("--", "-", 1).split("-"), "", "")[:3]
        if year and year not in index.values:
            continue
        for name in _NAMES.get(month, ()) if day else ():
            for at in index.where[index.ids[name]][:_MOST_SPOTS] if name in index.ids else ():
                start, end = index.starts[at], index.ends[at]
                given = _YEAR.match(index.text, end)
                if year and given and given[1] != year:
                    continue
                listed = _SHARED_DAY.search(index.text, max(0, start - _LISTED), start)
                if listed and int(listed[1] or (15 if listed[2] else 1)) == int(day):
                    return start, end
    return None


def _of_hour(what: Quantity, index: Index, read: Read) -> Standing:
    """Find a time in another form: 10:00 in "10–18.30 Uhr", 18:00 in "10 to 18"; 13:00 in "13 h"; 18:25 in
    "1825" if the source also writes 0725; 2:17:42 in "2 h 17 min 42 s".
    """
    hour, *rest = (int(each) for each in what.values[0][1:].split(":"))
    length = re.compile(
        rf"(?<![\d.,]){hour} ?(?:(?:h|hrs?|hours?|std\.?|stunden?|heures?)(?![a-zé])|時間) ?"
        + " ?".join(f"(?:and |und |et )?0?{part} ?(?:{unit})" for part, unit in zip(rest, _LENGTHS))
    )
    if any(rest) and (match := length.search(index.folded)) is not None:
        return first_read([match.start()], [match.end()], read)
    for value in what.values:
        digits = value[1:].replace(":", "")
        starts, ends = index.values.get(str(int(digits)), {}).get(("", False), ([], []))
        for start, end in zip(starts[:_MOST_SPOTS], ends):
            if index.text[start:end] == digits and len(digits) == 4 and index.has_clock:
                return first_read([start], [end], read)
        if not value.endswith(":00"):
            continue
        starts, ends = index.values.get(str(int(value[1:3])), {}).get(("hour", False), ([], []))
        for start, end in zip(starts[:_MOST_SPOTS], ends):
            if _FRENCH_HOUR.fullmatch(index.text, start, end):
                return first_read([start], [end], read)
        starts, ends = index.values.get(str(int(value[1:3])), {}).get(("", False), ([], []))
        for start, end in zip(starts[:_MOST_SPOTS], ends):
            if _RANGE.match(index.text, end) or _TO.search(index.text, max(0, start - 12), start):
                return first_read([start], [end], read)
    return NOWHERE


# ---- words


def of_words(keys: Sequence[str], index: Index, read: Read) -> Standing:
    """Find the words in a row."""
    if not keys:
        return NOWHERE
    begins = index.places([index.ids.get(key, -1) for key in keys])
    places = [index.characters(begin, begin + len(keys) - 1) for begin in begins]
    return first_read([start for start, _ in places], [end for _, end in places], read)


def of_identifier(text: str, index: Index, read: Read) -> Standing:
    """Find an identifier, also with other marks or none; an address also as a link's target."""
    keys = [word.key for word in words(text)]
    split = [part for key in keys for part in re.findall(r"\d+|\D+", key)]
    for wanted in (keys, ["".join(keys)], split):
        if (found := of_words(wanted, index, read)).span:
            return found
    at = index.folded.find(text.lower())
    if at >= 0:
        return first_read([at], [at + len(text)], read)
    letters = re.sub(r"[\W_]", "", text.lower())
    if len(letters) >= _LONG_NUMBER and (found := _of_groups(letters, index, read)).span:
        return found
    for other in _other_forms(text, letters):
        if (found := _of_groups(other, index, read)).span:
            return found
    if (found := _of_path(text, index, read)).span:
        return found
    shorter = _BODY.sub("", text)  # DIN EN 60335 is EN 60335
    return of_identifier(shorter, index, read) if shorter != text else NOWHERE


def _of_path(text: str, index: Index, read: Read) -> Standing:
    """Find an address whose base and path are in different places of the source."""
    cut = text.rfind("/")
    while (match := _ADDRESS.match(text)) is not None and cut > match.end():
        base, path = index.folded.find(text[:cut].lower()), index.folded.find(text[cut:].lower())
        if base >= 0 and path >= 0:
            return first_read([base], [base + cut], read)
        cut = text.rfind("/", 0, cut)
    return NOWHERE


def _other_forms(text: str, letters: str) -> list[str]:
    """A phone number without or with its country code: 030 555 1234 is +49 30 555 1234."""
    if len(letters) < _LONG_NUMBER or not letters.isdigit() or letters[1] == "0":
        return []
    if letters[0] == "0":
        return [letters[1:]]
    return [f"0{letters[digits:]}" for digits in (1, 2, 3)] if text[0] == "+" else []


def of_quotation(text: str, index: Index, read: Read) -> Standing:
    """Find all parts of a quotation with ellipses. Returns the place of the first."""
    parts = [[word.key for word in words(part)] for part in _ELLIPSIS.split(text)]
    found = [of_words(keys, index, read) for keys in parts if keys]
    if not found or any(each.span is None for each in found):
        return NOWHERE
    return Standing(found[0].span, all(each.was_read for each in found))


def of_name(name: Name, index: Index, read: Read, language: str) -> Standing:
    """Find a name: all its words, except titles and initials, near each other."""
    spots: list[Sequence[int]] = []
    for token in name.tokens:
        for word in words(token):
            if len(name.tokens) > 1 and (len(word.key) < 2 or word.key in TITLES or word.key in COMMON):
                continue
            where = _word_places(word.key, index, language)
            if where is None and token.isupper() and len(token) <= _MOST_INITIALS:  # S.A.
                where = index.places([index.ids.get(letter, -1) for letter in word.key]) or None
            if where is None:
                return _of_abbreviation(name, index, read)
            spots.append(where)
    if not spots or not all(_are_near(one, two) for one, two in pairwise(spots)):
        return NOWHERE
    rarest = min(spots, key=len)
    return first_read([index.starts[at] for at in rarest], [index.ends[at] for at in rarest], read)


def _word_places(key: str, index: Index, language: str) -> Sequence[int] | None:
    """First words at which a word of a name occurs, also with another ending; None if it does not."""
    for form in _forms(key, language):
        if form in index.ids:
            return index.where[index.ids[form]]
    for form in ALSO_CALLED.get(key, ()):
        if form[0] > "\u3000":
            begins = index.places([index.ids.get(each, -1) for each in form])
            if begins:
                return begins
    if "\u0400" <= key[0] <= "\u04ff" and len(key) > _ENDING + 1:
        stem = key[:-_ENDING]
        at = f"\n{index.vocabulary}\n".find(f"\n{stem}")
        if at >= 0:
            line = index.vocabulary[at:].partition("\n")[0]
            if len(line) <= len(key) + _ENDING:
                return index.where[index.ids[line]]
    if (number := index.without_accents.get(without_accents(key))) is not None:
        return index.where[number]
    if language == "de" and len(key) > 3 and (at := index.vocabulary.find(key)) >= 0:
        line = index.vocabulary[index.vocabulary.rfind("\n", 0, at) + 1 :].partition("\n")[0]
        return index.where[index.ids[line]]
    return None


def _forms(key: str, language: str) -> Iterable[str]:
    yield key
    for end in _ENDINGS if language == "de" else _ENDINGS[:2]:
        yield key + end
        if len(key) > 3 and key.endswith(end):
            yield key[: -len(end)]
    yield from ALSO_CALLED.get(key, ())


def _of_abbreviation(name: Name, index: Index, read: Read) -> Standing:
    """Find words whose first letters are those of an abbreviation."""
    letters = "".join(name.tokens).replace(".", "").replace("&", "")
    if not (len(name.tokens) == 1 and letters.isupper() and 2 <= len(letters) <= _MOST_INITIALS):
        return NOWHERE
    for initials, firsts in index.initials:
        if (at := initials.find(letters)) >= 0:
            start, end = index.characters(firsts[at], firsts[at + len(letters) - 1])
            return first_read([start], [end], read)
    return NOWHERE


def _are_near(one: Sequence[int], two: Sequence[int]) -> bool:
    few, many = sorted((one, two), key=len)
    for at in few[:_MOST_PAIRS]:
        near = bisect_left(many, at - _NEAR_WORDS)
        if near < len(many) and many[near] <= at + _NEAR_WORDS:
            return True
    return False
