"""The index of one source: its words and quantities with their positions, for finding runs and facts."""

from __future__ import annotations

import re
import time
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from core.origins.automaton import Automaton
from core.origins.counts import with_ranges
from core.origins.lexicon import DECIMAL_MARKS, TELLING
from core.origins.quantities import LIST_MARKER, PART, Quantity, is_list_marker, quantities
from core.origins.references import NUMBERED, as_reference, headings
from core.origins.units import CURRENCIES
from core.origins.words import Word, unspaced_language, without_accents, words

# Marks between a cell's border and its words.
_MARKS = 16
_CELL_BEGINS = re.compile(r"(?:^|[\t|\n,;])[ *_`\"'(-]*$")
_CELL_ENDS = re.compile(r"[ *_`\"')]*(?:$|[\t|\n,;])")
_SCALE_NOTE = re.compile(
    r"[(\[][^()\[\]\n]{0,20}?(?:[$€£]\s?[Mmk]|[Mkb][$€£]|\b(?:T€|mn|mio|bn|mrd|tsd|thousands?|millions?|millionen|milliers)\b)"
    r"|\b(?:in|en)\s(?:(?:[A-Z]{3}|[$€£¥]|euros?|dollars?)\s?)?"
    r"(?:thousands?|millions?|billions?|tausend|millionen|tsd|mio|mrd|mn|bn|milliers|milliards)\b"
    r"|\bT(?:EUR|€)|\b(?:EUR|USD|GBP|CHF)\s?(?:m|mn|mio|k|bn)\b|[$€£]\s?(?:m|mn|bn|k)\b|[$€£]?['’]000s?\b|[(（](?:百万|千|億|万)[円元][)）]|単位",
    re.I,
)
_FRACTION = re.compile(r"\d{1,9}([,.])\d{1,2}(?![\d.,]|[ \u00a0]Uhr)")
# Least number of words that decide the language of a text.
_LEAST_TELLING = 10
# A time of day without a colon that begins with a zero, alone: 0725.
_CLOCK = re.compile(
    r"(?<![^\s|(])(?<!\d[ \u00a0-])0\d[0-5]\d"
    r"(?:(?=[-–][012]\d[0-5]\d(?!\d))|(?![^\s|),;.]|[., \u00a0]\d))"
)
# The beginning of a phone number or of a code such as AB-2026-02, and the end of one such as 6K31.
_CODE_BEFORE = re.compile(
    r"(?:(?<![^\W_])(?i:tel|tél|phone|telefon|téléphone|fax|mobile?|iban|電話)(?![^\W_])[^\w\n]{0,4}"
    r"[\d ()/.+-]{0,24}"
    r"|(?<![\d.,])(?:\+\d{1,4}|0\d{1,5}[ /-]\d{2,5})(?:[ /-]\d{2,5}){0,4}[ /-]"
    r"|(?<![^\W_])[A-Z]{1,6}-(?:\d{1,6}-)?)\Z"
)
_CODE_BEHIND = re.compile(r"[A-Za-z]{1,4}\d")
_CODE_CHARACTERS = 48
_NO_LETTERS = re.compile(r"[\W_]+")
# Work between two readings of the clock.
_SLICE_WORDS = 100
_SLICE_CHARACTERS = 400
# Most occurrences of a sequence's rarest word that are checked.
_MOST_PLACES = 64


def _folded(text: str) -> str:
    """The text in lower case, of the same length: only İ would become two characters."""
    return text.replace("İ", "i").lower()


class Index:
    """Index of a source's text. Linear time and memory in its length.

    `build` makes it in slices; all lookups need a complete index. Not thread-safe while it is built;
    read-only afterwards.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.ids: dict[str, int] = {}
        self.where: list[array[int]] = []
        self.sequence = array("i")
        self.starts = array("i")
        self.ends = array("i")
        self.complete = False
        # Word numbers, which are indices of `where`. Here, of those that also occur in lower case.
        self.lower: set[int] = set()
        # Word numbers by spelling without accents.
        self.without_accents: dict[str, int] = {}
        # Whether a table's header or a note says that figures are in thousands or millions.
        self.names_scale = False
        # First letters of words, case kept, with the positions of these words in `sequence`: for all words,
        # and for all but short ones in lower case.
        self.initials: list[tuple[str, Sequence[int]]] = []
        # The text in lower case, of the same length, and only its letters and digits.
        self.folded = self.squeezed = ""
        # Whether times of day are written without a colon: 0725.
        self.has_clock = False
        self._letters: list[str] = []
        self._longer_letters: list[str] = []
        # Count of numbers with one or two decimals, by decimal mark.
        self._fractions = {",": 0, ".": 0}
        self._longer = array("i")
        self._folded: list[str] = []
        self._squeezed: list[str] = []
        # By value, then by (unit, is negative): starts and ends of such quantities, ascending.
        self.values: dict[str, dict[tuple[str, bool], tuple[array[int], array[int]]]] = {}
        # By month (2 digits): year or "", start and end of each date in that month, ascending.
        self.months: dict[str, list[tuple[str, int, int]]] = {}
        # Starts of the quantities with a unit, ascending; their units; the currencies among these.
        self.united = array("i")
        self.units: list[str] = []
        self.currencies: set[str] = set()
        self._pending = words(text)
        self._scanned = False
        self._read_to = 0
        self._automaton: Automaton | None = None

    def build(self, seconds: float = float("inf")) -> bool:
        """Continue for about `seconds`. Returns whether the index is complete."""
        until = time.monotonic() + seconds
        while not self.complete:
            self._advance()
            if time.monotonic() >= until:
                break
        return self.complete

    def _advance(self) -> None:
        if not self._scanned:
            for _ in range(_SLICE_WORDS):
                word = next(self._pending, None)
                if word is None:
                    self._scanned = True
                    break
                self._add(word)
        elif self._automaton is None:
            self._automaton = Automaton(self.sequence)
        elif self._read_to < len(self.text):
            self._add_quantities()
        elif not self.initials:
            every, longer = "".join(self._letters), "".join(self._longer_letters)
            self.initials = [(every, range(len(every))), (longer, self._longer)]
        elif self._folded:
            self.folded, self.squeezed = "".join(self._folded), "".join(self._squeezed)
            self._letters, self._longer_letters, self._folded, self._squeezed = [], [], [], []
        else:
            self.complete = self._automaton.extend(_SLICE_WORDS)

    def _add(self, word: Word) -> None:
        number = self.ids.get(word.key)
        if number is None:
            number = self.ids[word.key] = len(self.ids)
            self.where.append(array("i"))
            self.without_accents[without_accents(word.key)] = number
        letter = self.text[word.start]
        if number not in self.lower and letter.islower():
            self.lower.add(number)
        self._letters.append(letter)
        if letter.isdigit() and (fraction := _FRACTION.match(self.text, word.start, word.end + 5)):
            self._fractions[fraction[1]] += 1
        if letter.isupper() or word.end - word.start > 3:
            self._longer.append(len(self.sequence))
            self._longer_letters.append(letter)
        self.where[number].append(len(self.sequence))
        self.sequence.append(number)
        self.starts.append(word.start)
        self.ends.append(word.end)

    def _add_quantities(self) -> None:
        start, most = self._read_to, self._read_to + _SLICE_CHARACTERS
        end = len(self.text)
        if most < end:
            end = self.text.rfind("\n", start, most) + 1 or self.text.rfind(" ", start, most) + 1 or most
        read = list(quantities(self.text, start, end, marks=self.marks))
        for found in with_ranges(self.text, read):
            if found.kind == "date":
                year, _, rest = found.values[0].replace("--", "-", 1).partition("-")
                self.months.setdefault(rest[:2], []).append((year, found.start, found.end))
            if found.unit:
                self.united.append(found.start)
                self.units.append(found.unit)
                if found.unit in CURRENCIES:
                    self.currencies.add(found.unit)
            is_marker = is_list_marker(self.text, found)
            named = found if is_marker else as_reference(self.text, found)
            if named is not found:
                self._add_value(named.values[0], ("", False), found.start, found.end)
            is_reference = named is not found and named.unit != NUMBERED
            unit = LIST_MARKER if is_marker or (is_reference and not found.unit) else found.unit
            whole = () if found.kind == "number" and self._is_in_code(found) else found.values
            for value in (*found.values, *found.parts):
                key = (unit if value in whole else PART, found.is_negative)
                self._add_value(value, key, found.start, found.end)
        for value, first, last in headings(self.text, start, end):
            self._add_value(value, ("", False), first, last)
        piece = self.text[start:end]
        self._folded.append(_folded(piece))
        self._squeezed.append(_NO_LETTERS.sub("", self._folded[-1]))
        self.has_clock = self.has_clock or _CLOCK.search(self.text, start, end) is not None
        self.names_scale = self.names_scale or _SCALE_NOTE.search(piece) is not None
        self._read_to = end

    def _is_in_code(self, found: Quantity) -> bool:
        """Whether a number is part of a phone number or code, and so neither a count nor a measure."""
        begin = max(0, found.start - _CODE_CHARACTERS)
        return (
            _CODE_BEFORE.search(self.text, begin, found.start) is not None
            or _CODE_BEHIND.match(self.text, found.end) is not None
        )

    @cached_property
    def language(self) -> str:
        """The most frequent language by the words of `TELLING`, a key of it; empty without such words."""
        return max(TELLING, key=self._telling) if any(map(self._telling, TELLING)) else ""

    def _telling(self, language: str) -> int:
        return sum(self.count(word) for word in TELLING[language])

    @cached_property
    def marks(self) -> str:
        """Decimal marks: that of the text's language, or both if the text also uses the other one."""
        if not self.language or self._telling(self.language) < _LEAST_TELLING:
            return DECIMAL_MARKS.get(unspaced_language(self.text), ",.")
        mark = DECIMAL_MARKS[self.language]
        return ",." if self._fractions[",."[mark == ","]] else mark

    def _add_value(self, value: str, key: tuple[str, bool], start: int, end: int) -> None:
        starts, ends = self.values.setdefault(value, {}).setdefault(key, (array("i"), array("i")))
        starts.append(start)
        ends.append(end)

    @cached_property
    def vocabulary(self) -> str:
        """All words, one a line."""
        return "\n".join(self.ids)

    @property
    def automaton(self) -> Automaton:
        """The automaton over the word numbers. Raises RuntimeError while the index is not complete."""
        if self._automaton is None or not self.complete:
            raise RuntimeError("The index is not complete. Call build() until it returns True.")
        return self._automaton

    def count(self, key: str) -> int:
        """How often a word occurs."""
        number = self.ids.get(key)
        return 0 if number is None else len(self.where[number])

    def places(self, sequence: Sequence[int], near: int = 0) -> list[int]:
        """First words of the occurrences of `sequence` (numbers of words), ascending.

        At most 64 occurrences of its rarest word are checked, those nearest to the word `near`.
        """
        pattern = array("i", sequence)
        if not len(pattern) or -1 in pattern:
            return []
        rarest = min(range(len(pattern)), key=lambda at: len(self.where[pattern[at]]))
        candidates = self.where[pattern[rarest]]
        middle = bisect_left(candidates, near)
        first = max(0, min(middle - _MOST_PLACES // 2, len(candidates) - _MOST_PLACES))
        found = []
        for at in candidates[first : first + _MOST_PLACES]:
            begin = at - rarest
            if begin >= 0 and self.sequence[begin : begin + len(pattern)] == pattern:
                found.append(begin)
        return found

    def is_cell(self, first: int, last: int) -> bool:
        """Whether the words `first` to `last` (inclusive) are a whole cell of a table or a whole line."""
        start, end = self.characters(first, last)
        before, after = self.text[max(0, start - _MARKS) : start], self.text[end : end + _MARKS]
        return _CELL_BEGINS.search(before) is not None and _CELL_ENDS.match(after) is not None

    def characters(self, first: int, last: int) -> tuple[int, int]:
        """Range in `text` of the words `first` to `last` (inclusive)."""
        return self.starts[first], self.ends[last]
