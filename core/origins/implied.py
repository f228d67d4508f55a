"""Units, scales and signs that a source does not write next to the number.

They are in a table's header, in a field's name, once for a list or a sentence, or a word: "fell by 3.1".
"""

from __future__ import annotations

import re
from bisect import bisect_left

from core.origins.index import Index
from core.origins.lexicon import FALLING, FUNCTION_WORDS
from core.origins.quantities import Quantity
from core.origins.units import CURRENCIES, exponents, has_unit, precise, scale_names, unit_of

_UNIT_CHARACTERS = 32
# Most places that are checked for one value and unit of a source.
_MOST_SPOTS = 64
# A cell is delimited by tabs, bars, two spaces, line ends, or commas without a space.
_CELL_BEGINS = re.compile(r"(?:(?:^|[\t|\n(:–—]|  |\.\.\.)[ *_~<>≤≥=-]*|[,;])\Z")
_CELL_ENDS = re.compile(r"[ *_]*(?:\Z|[\t|\n)])|  |[,;](?=\S)")
# Words that do not name a column's unit: the unit of a rate, or one that follows another figure.
_NOT_NAMED = re.compile(
    r"(?:\b(?:per|par|pro|je|a|à la|au)\s+(?!cent)|/\s?|\d[\d.,]*[ \u00a0]?)[^\W\d_]+", re.I
)
_CENTS = re.compile(r"\d[.,]\d\d\Z")
# Further numbers of a range or list whose unit is at its end: "1, 5 and 30 minutes".
_LISTED = re.compile(
    r"(?:\s{0,2}(?:,?\s{0,2}(?:to|bis|à|and|und|et|or|oder|ou|then|sowie|から)\s|[-–—/x×+,;～〜、])\s{0,2}"
    r"[-−+]?(?:\d[\d.,]*\d|\d|(?<=[dtroens]\s)[^\W\d_]+)){1,12}"
)
# Ends the words that may separate a number from its unit: "30 (thirty) consecutive days".
_CLAUSE_END = re.compile(r"[.,;:!?|\t\d]|\n\n")
_WORDS_BETWEEN = 2
# Follows a number that counts nothing: the end of a clause, or a word; only function words match.
_NO_NOUN = re.compile(r"[ \u00a0]?(?:[.,;:!?)\]–—-]|\Z|\n)|[ \u00a0]([^\W\d_]+)")
# Start of a sentence; other line breaks may be those of a wrapped paragraph.
_SENTENCE_BEGINS = re.compile(r"[.!?。！？]\s|\n\s*\n|\n(?=[ \t]*[\[\-*•#|>\d])")
_SENTENCE_CHARACTERS = 200
# Level of an interval, whose figures have the unit of the value before: "7.2 min (95% CI 4.3 to 10.1)".
_LEVEL = re.compile(r"\d\d(?:\.\d)?[ \u00a0]?%[ \u00a0-]?(?:CI|KI|IC|conf|Konf|confi)", re.I)
# Units of fields: weight_g, timeoutSeconds.
_FIELD = re.compile(r"[^\W_]_([^\W\d_]{1,12})(?![^\W_])|[a-z](?P<camel>[A-Z][a-z]{1,9})(?![^\W_])")
_FIELD_CHARACTERS = 60
_SCALE_WORD = re.compile(
    rf"(?<![^\W\d_])(?:{scale_names()})(?![^\W_])|(?<=\d)[ ]?(?-i:[kKMB]|bn)(?![^\W_])", re.I
)
_NEAR_SCALE = 48
_AGE = re.compile(r"\b(?:is|am|are|was|aged?|bin|ist|war|alter) \Z", re.I)
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{1,16})[)\]]")
_ROW_NUMBER = re.compile(r"^[ \t]*(\d{1,3})[.)]?(?:\t|  )", re.M)
_LINE_CHARACTERS = 300


def can_have(index: Index, start: int, end: int, unit: str, *, is_part: bool) -> bool:
    """Whether a number of the source without a unit, at characters `start` to `end`, can have `unit`."""
    text = index.text
    behind = text[end : end + _UNIT_CHARACTERS]
    if unit in CURRENCIES and _CENTS.search(text, max(0, end - 4), end):
        return True
    if has_unit(text[start:end].lstrip("0123456789"), unit, 0):
        return True  # 20 h 30
    if is_part:
        return False
    columns, is_cell = _columns(text, start), _is_cell(text, start, end)
    if columns and columns.name(unit):
        return True
    if is_cell and not columns and not _is_row_number(text, start):
        return True
    if unit == "year" and _AGE.search(text, max(0, start - 12), start):
        return True
    further = _LISTED.match(text, end, end + 4 * _UNIT_CHARACTERS)
    if further and has_unit(text[further.end() : further.end() + _UNIT_CHARACTERS], unit, 0):
        return True
    if has_unit(_CLAUSE_END.split(behind, maxsplit=1)[0], unit, _WORDS_BETWEEN):
        return True
    return not is_cell and _counts_nothing(text, end) and _is_understood(index, start, end, unit)


def in_scale(what: Quantity, index: Index) -> list[tuple[int, int]]:
    """Where a number with a scale, such as million, occurs without it: in a table whose header or note names
    a scale, or in a sentence that writes the same scale with another number.
    """
    found: list[tuple[int, int]] = []
    for value in what.parts:
        for starts, ends in index.values.get(value, {}).values():
            for start, end in zip(starts[:_MOST_SPOTS], ends):
                if (index.names_scale and _is_cell(index.text, start, end)) or (
                    _has_scale(index.text, start, end, float(what.values[0]) / (float(value) or 1.0))
                ):
                    found.append((start, end))
    return sorted(found)


def measures(text: str, start: int) -> bool:
    """Whether a number is in a table that names its unit in brackets, so that it is not a count."""
    columns = _columns(text, start)
    return columns is not None and columns.has_unit_in_brackets


def may_be_per(text: str, start: int, end: int, per: str) -> bool:
    """Whether a measure can be a concentration or density: one is written near it, or it is in a table."""
    around = text[max(0, start - _SENTENCE_CHARACTERS) : end + _UNIT_CHARACTERS]
    return (
        _columns(text, start) is not None
        or re.search(rf"[/⁄]\s?{per}|\bper\b|\bpro\b", around, re.I) is not None
    )


def falls_in(text: str, start: int, end: int) -> bool:
    """Whether a number without a sign is negative: the words around it say that something falls, or it is
    in brackets, as in accounts.
    """
    if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
        return True
    around = text[max(0, start - 64) : start], text[end : end + _UNIT_CHARACTERS]
    return any(FALLING.search(each) for each in around)


def _has_scale(text: str, start: int, end: int, factor: float) -> bool:
    first = max(_sentence_start(text, start), start - _NEAR_SCALE)
    return any(
        abs(10.0**power / factor - 1) < 1e-6
        for match in _SCALE_WORD.finditer(text, first, end + _NEAR_SCALE)
        for power in exponents(match.group())
    )


def _is_cell(text: str, start: int, end: int) -> bool:
    before, behind = text[max(0, start - 12) : start], text[end : end + _UNIT_CHARACTERS]
    return _CELL_BEGINS.search(before) is not None and _CELL_ENDS.match(behind) is not None


class _Columns:
    """The labels of a table's cell: the header of its column, the first cell of its row, and the caption."""

    def __init__(self, named: str) -> None:
        self._named = _NOT_NAMED.sub(" ", named)

    @property
    def has_unit_in_brackets(self) -> bool:
        return any(unit_of(f" {each}") not in ("", "people") for each in _BRACKETS.findall(self._named))

    def name(self, unit: str) -> bool:
        return any(has_unit(self._named, each, len(self._named)) for each in precise(unit))


def _columns(text: str, start: int) -> _Columns | None:
    """The labels of the cell at `start`; None if the text has no columns there."""
    line = text.rfind("\n", 0, start) + 1
    block = text.rfind("\n\n", 0, line) + 1
    row, above = text[line:start], text[block:line].strip("\n")
    mark = next((each for each in "|;\t" if each in row and each in above), "")
    if not mark:
        return None
    head, row = above.partition("\n")[0].removeprefix(mark).split(mark), row.removeprefix(mark)
    caption, column = text[:block].rstrip("\n").rpartition("\n")[2], row.count(mark)
    return _Columns(
        "\n".join((*head[column : column + 1], row.partition(mark)[0] if column else "", caption))
    )


def _is_row_number(text: str, start: int) -> bool:
    """Whether a number is a row number of a table without bars: the next or last line counts on or back."""
    line = text.rfind("\n", 0, start) + 1
    number = _ROW_NUMBER.match(text, line)
    if number is None or number.start(1) != start:
        return False
    around = _ROW_NUMBER.findall(text, max(0, line - _LINE_CHARACTERS), line + _LINE_CHARACTERS)
    return str(int(number[1]) - 1) in around or str(int(number[1]) + 1) in around


def _counts_nothing(text: str, end: int) -> bool:
    following = _NO_NOUN.match(text, end)
    return following is not None and (following[1] is None or following[1].lower() in FUNCTION_WORDS)


def _is_understood(index: Index, start: int, end: int, unit: str) -> bool:
    """Whether the last unit before it in its sentence is `unit`. If the sentence has none: whether a field's
    name has it, or, for a currency and a number of several digits, whether the source has it anywhere.
    """
    text = index.text
    first = _sentence_start(text, start)
    units = precise(unit)
    at = bisect_left(index.united, start) - 1
    # The % of a share does not apply to the numbers that follow.
    while (
        at >= 0
        and index.united[at] >= first
        and index.units[at] == "%"
        and (unit != "%" or _LEVEL.match(text, index.united[at]))
    ):
        at -= 1
    if at >= 0 and index.united[at] >= first:
        return index.units[at] in units
    is_long = end - start > 2 and not text[max(0, start - 2) : start].strip("- ").isdigit()
    if is_long and not index.currencies.isdisjoint(units):
        return True
    line = text.rfind("\n", 0, start) + 1
    return any(
        unit_of(f" {(match[1] or match['camel']).lower()}") in units
        for match in _FIELD.finditer(text, max(line, start - _FIELD_CHARACTERS), start)
    )


def _sentence_start(text: str, start: int) -> int:
    first = max(0, start - _SENTENCE_CHARACTERS)
    for match in _SENTENCE_BEGINS.finditer(text, first, start):
        first = match.end()
    return first
