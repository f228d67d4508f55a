"""Finds the facts of an answer, and where each of them comes from.

A fact is looked up in the sources, then in the user's messages, in earlier answers, and among what can be
computed from the figures of its sentence. If in doubt, a fact counts as found: a mark on a figure that the
document has costs more trust than a missing mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from core.origins.computing import follows, is_share, solves
from core.origins.counts import as_count, with_ranges
from core.origins.index import Index
from core.origins.lexicon import ABBREVIATED, COUNTED, DECIMAL_MARKS, TELLING
from core.origins.names import Name, Tokens, names
from core.origins.numerals import ONES, is_ordinal
from core.origins.parts import Part, quotations
from core.origins.quantities import COUNTERS, Quantities, Quantity, is_list_marker, quantities
from core.origins.references import SIGN, as_reference
from core.origins.standing import (
    Read,
    Standing,
    of_identifier,
    of_name,
    of_quantity,
    of_quotation,
)
from core.origins.types import Fact, FactKind, FactState, Origins, Place
from core.origins.units import unit_of
from core.origins.words import unspaced_language, words

# Identifiers: letters and digits mixed, addresses, versions.
_IDENTIFIER = re.compile(
    r"(?<![0-9A-Za-z_À-ɏ@])(?:https?://[^\s<>()\[\]`\"“”»]{3,300}|www\.[^\s<>()\[\]`\"“”»]{3,300}"
    r"|[0-9A-Za-z_À-ɏ.+-]{1,64}@[0-9A-Za-z_À-ɏ-]{1,64}(?:\.[0-9A-Za-z_À-ɏ-]{1,64}){1,6}"
    r"|(?:19|20)\d\d/\d{1,6}(?!/)|\d{1,9}(?:\.\d{1,9}){2,8}(?:/\d{1,3}(?!\d))?|\+\d{1,3}[ \d()/.-]{5,20}\d"
    r"|`[^`\s]{2,60}`|`[A-Za-z][^`\s]{0,30}(?: [^`\s]{1,30}){1,5}`"
    r"|(?=[A-Za-z0-9_.:/#-]{0,60}\d)(?=[A-Za-z0-9_.:/#-]{0,60}[A-Za-z])[A-Za-z0-9]{1,40}(?:[-_.:/#][A-Za-z0-9]{1,40}){0,12})(?![0-9A-Za-z_À-ɏ])"
)
# AED24台: a word and a count.
_COUNTED_WORD = re.compile(r"[A-Za-z]+\d{1,4}")
# 5kg, 3rd, 10am, 1990s, 30-day, mid-2020, 1920x1080, Q3: quantities.
_QUANTITY_LIKE = re.compile(
    r"\d{1,2}h\d\d|\d[\d.,:]*(?:/[A-Za-zäöü²³]{1,6}|-?[a-z]{1,20}|-?[A-Z]{1,2}|[A-Z][A-Z]?/[a-z]|%|-[A-Za-z]{3,}(?:-[A-Za-z]+)*|x\d+)|[a-z]{2,12}-\d+s?|\d+-\d+[a-z]*"
)
_DIGITS_AND_CAPITALS = re.compile(r"\d{1,4}([A-Z]{1,2})")
_SUFFIXES = frozenset(
    ("B", "C", "D", "F", "G", "K", "M", "X", "AD", "AM", "BC", "CE", "MP", "PM", "ST", "ND", "RD", "TH")
)
_SHORT_REFERENCE = re.compile(r"(?:Arts?|Abs|Nr|No|Secs?|Ziff|Par)\.\d{1,4}", re.I)
# Standards, bank accounts, and phone or account numbers in groups.
_GROUPED = re.compile(
    r"(?<![^\W_])(?:(?:(?:EN|ISO|IEC|DIN|IEEE|RFC|ANSI|ASTM|VDE|NF|JIS|BS|UL)[ \u00a0/-]){1,3}"
    r"\d{2,6}(?:[-–:]\d{1,6}){0,4}"
    r"|[A-Z]{2}\d{2}(?:[ \u00a0][A-Z0-9]{4}){3,7}(?:[ \u00a0][A-Z0-9]{1,3})?"
    r"|0\d{1,5}(?:[ \u00a0]\d{2,5}){3,7}"
    r"|(?!(?:[01]\d|2[0-3])[0-5]\d[ \u00a0/-](?:[01]\d|2[0-3])[0-5]\d(?!\d))"  # no times
    r"(?:0[1-9]\d{1,4}(?:[ \u00a0/-]\d{2,8}){2}|0[1-9]\d{2,4}[ \u00a0/-]\d{3,8}"
    r"|0800[ \u00a0/-]\d{3,8}(?:[ \u00a0/-]\d{2,5})?))(?![^\W_]|[.,:]\d|[ \u00a0]\d)"
)
# Every match of the patterns above and of `_STRUCTURE` contains a match of this.
_NOT_WORDS = re.compile(r"[\d`@<]|\]\(|https?:|www\.", re.I)
# Figures of units and calendars, which need no source.
_CONSTANTS = frozenset(("7", "12", "24", "52", "60", "100", "365", "366", "1000"))
_CONSTANT_UNITS = ("", "day", "hour", "minute", "month", "week")
_STRUCTURE = re.compile(
    r"(?:(?<!\d)24 ?[hH]?/(?:24|7)(?!\d)|(?<!\d)7 ?[jJd]?/7(?!\d)"
    r"|\[\^?\d{1,3}\]|\]\([^()\s]{0,1000}\)?|</?[A-Za-z][^<>]{0,200}>"
    r"|^[\s>#*_-]{0,16}(?:(?:step|part|point|option|question|example|phase|schritt|punkt|teil|frage|étape|partie|point"
    r"|ステップ|手順)\s?\d{1,3}\b))",
    re.I,
)
_HEADING_NUMBER = re.compile(r"^[\s>#*_]{0,16}\d{1,3}(?:\.\d{1,3}){0,3}[.):]?(?=[\s*_])")
_ENUMERATOR = re.compile(r"(?<!\S)\((\d{1,2})\)(?=\s)")
# "9." and "12." may be ordinals.
_SENTENCE_END = re.compile(
    r"[.!?](?=[\s*_\"”)]|\Z)(?!\s[a-zäöüàâéè])(?<!(?<![\d.,/])\d\.)(?<!(?<![\d.,/£$€])\d\d\.)(?<!\b[^\W\d]\.)"
    r"|[。！？\n]"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_LAST_WORD = re.compile(r"[^\W\d_]{1,12}\Z")
_CLAUSE = re.compile(r"[^.,;:!?()\n]*")
# Numbers with which an answer counts its own items.
_FEW = frozenset(map(str, range(13)))
# Most operands that are tried for one result.
_MOST_OPERANDS = 12
_MOST_WRONG = 4
# Least characters of a repeated result that is recognized without its unit.
_LONG_RESULT = 4
_QUOTED_WORDS = 3
_QUOTED_CHARACTERS = 8
_TELLS = {
    word: [language for language, telling in TELLING.items() if word in telling]
    for word in frozenset().union(*TELLING.values())
}


class Found(NamedTuple):
    """A fact in a part, before it is looked up."""

    start: int
    end: int
    kind: FactKind
    key: str
    what: Quantity | Name | str


class Saved(NamedTuple):
    """State for `FactFinder.restore`."""

    languages: tuple[int, ...]
    ordinary: int
    computed: int


class FactFinder:
    """Finds the facts of an answer, part by part.

    `question`, `earlier` and `read` as in `trace`.
    """

    def __init__(
        self, indexes: Sequence[Index], question: Index, earlier: Sequence[Origins], read: Sequence[Read]
    ) -> None:
        self._indexes = indexes
        self._read = read
        self._question = question
        self._earlier = {
            fact.key: fact.state for origins in earlier for fact in origins.facts if fact.place is None
        }
        self._languages = dict.fromkeys(TELLING, 0)
        self._ordinary: dict[str, None] = {}
        self._known: dict[str, tuple[FactState, Place | None] | None] = {}
        self._computed: dict[str, None] = {}  # keys of such facts
        self._numbers, self._tokens = Quantities(), Tokens()
        self._language = self._most_heard

    def save(self) -> Saved:
        """The state between two parts."""
        return Saved(tuple(self._languages.values()), len(self._ordinary), len(self._computed))

    def restore(self, saved: Saved) -> None:
        """Return to the state `saved`."""
        self._languages = dict(zip(TELLING, saved.languages))
        self._language = self._most_heard
        while len(self._ordinary) > saved.ordinary:
            self._ordinary.popitem()
        while len(self._computed) > saved.computed:
            self._computed.popitem()

    def hear(self, text: str) -> None:
        """Count the words that reveal the language of the next text, and note those in lower case."""
        ordinary, languages = self._ordinary, self._languages
        for word in _LETTERS.findall(text):
            lower = word.lower()
            if lower == word and lower.islower():
                ordinary.setdefault(lower)
            if lower in _TELLS:
                for language in _TELLS[lower]:
                    languages[language] += 1
        self._language = self._most_heard

    @property
    def _most_heard(self) -> str:
        """The language of the answer as it is now; that of the question if it has no telling word."""
        if any(self._languages.values()):
            return max(self._languages, key=lambda each: self._languages[each])
        return self._question.language

    def add(self, part: Part, heard: int = 0) -> list[Fact]:
        """Facts of the next part, in order. Its first `heard` characters were already passed to `hear`."""
        self.hear(part.text[heard:])
        found = sorted(self._found(part))
        facts: list[Fact] = []
        end = -1
        for at, each in enumerate(found):
            if each.start < end:
                continue
            state, place = self._state(each, part, found)
            if each.kind == "quotation" and state == "nowhere":
                inner = [other for other in found[at + 1 :] if other.end <= each.end]
                states = [self._state(other, part, found)[0] for other in inner]
                if "nowhere" in states:
                    continue  # mark the wrong figure, not the whole quotation
            end = each.end
            if state == "computed":
                self._computed.setdefault(each.key)
                if isinstance(each.what, Quantity):
                    self._computed.setdefault(each.what.values[0])
            facts.append(
                Fact(part.start + each.start, part.start + each.end, each.kind, state, place, each.key)
            )
        return facts

    # ---- finding

    def _found(self, part: Part) -> Iterator[Found]:
        text = part.text
        if part.kind != "code":
            yield from self._quotations(text)
        taken: list[tuple[int, int]] = []
        if _NOT_WORDS.search(text):
            yield from self._identifiers(part, taken)
        for quantity in self._quantities(text):
            if not _overlaps(taken, quantity.start, quantity.end) and self._is_fact(quantity, part):
                taken.append((quantity.start, quantity.end))
                kind: FactKind = "date" if quantity.kind in ("date", "time") else quantity.kind  # type: ignore[assignment]
                sign = "-" if quantity.is_negative else ""
                key = f"{kind} {sign}{quantity.values[0]} {quantity.unit}".rstrip()
                yield Found(quantity.start, quantity.end, kind, key, quantity)
        for name in names(part, self._tokens.of(text), self._language, self._is_ordinary):
            if not _overlaps(taken, name.start, name.end):
                yield Found(name.start, name.end, "name", "name " + " ".join(name.tokens).lower(), name)

    @staticmethod
    def _identifiers(part: Part, taken: list[tuple[int, int]]) -> Iterator[Found]:
        """Identifiers of a part. Appends their ranges, and those of the part's structure, to `taken`."""
        text = part.text
        taken += [match.span() for match in _STRUCTURE.finditer(text)]
        if part.kind == "heading" and (match := _HEADING_NUMBER.match(text)):
            taken.append(match.span())
        expected = 1
        for match in _ENUMERATOR.finditer(text):
            if int(match[1]) == expected:
                taken.append(match.span())
                expected += 1
        for match in _GROUPED.finditer(text):
            if not _overlaps(taken, *match.span()):
                taken.append(match.span())
                key = "identifier " + match.group().lower()
                yield Found(*match.span(), "identifier", key, match.group())
        for match in _IDENTIFIER.finditer(text):
            if COUNTERS.match(text, match.end()) and _COUNTED_WORD.fullmatch(match.group()):
                continue
            if not _overlaps(taken, *match.span()) and (each := _identifier(match)) is not None:
                taken.append(match.span())
                yield each

    def _quantities(self, text: str) -> Iterator[Quantity]:
        """Quantities of a part."""
        marks = DECIMAL_MARKS.get(self._language or unspaced_language(text), ",.")
        found = [as_reference(text, each) for each in self._numbers.of(text, marks)]
        return (as_count(text, each) for each in with_ranges(text, found))

    def _quotations(self, text: str) -> Iterator[Found]:
        for start, end in quotations(text):
            keys = [word.key for word in words(text[start:end])]
            if len(keys) >= _QUOTED_WORDS and len("".join(keys)) >= _QUOTED_CHARACTERS:
                yield Found(start, end, "quotation", "quotation " + " ".join(keys), text[start:end])

    def _is_fact(self, quantity: Quantity, part: Part) -> bool:
        text, word = part.text, part.text[quantity.start : quantity.end].lower()
        if quantity.values[0].startswith(SIGN):
            return True
        if is_list_marker(text, quantity):
            return False
        if part.kind == "code":
            return not quantity.is_word and len(quantity.values[0].replace(".", "")) > 1
        if is_share(word) or word in ("first year", "first month", "first day"):
            return False
        if quantity.is_word and (word.split()[0] in ONES or is_ordinal(word.split()[0])):
            return False
        if quantity.is_word and quantity.kind == "time" and " " not in word:
            return False  # noon
        if quantity.kind == "number" and not quantity.unit:
            clause = _CLAUSE.match(text, quantity.end, quantity.end + 40)
            following = _LETTERS.findall(clause.group() if clause else "")[:3]
            is_few = quantity.values[0] in _FEW
            return not (is_few and any(each.lower() in COUNTED for each in following))
        return True

    def _is_ordinary(self, word: str) -> bool:
        if word in self._ordinary:
            return True
        return any(index.ids.get(word) in index.lower for index in (self._question, *self._indexes))

    # ---- looking up

    def _state(self, found: Found, part: Part, others: Sequence[Found]) -> tuple[FactState, Place | None]:
        is_count = isinstance(found.what, Quantity) and found.what.is_count
        key = f"{found.key} {self._language} {is_count}"
        if key not in self._known:
            self._known[key] = self._given(found)
        if (known := self._known[key]) is not None:
            return known
        if not isinstance(found.what, Quantity):
            return "nowhere", None
        value = found.what.values[0]
        is_repeated = found.key in self._computed and (found.what.unit or len(value) > 2)
        # The same result may have its unit in only one of the two places.
        is_repeated = is_repeated or (value in self._computed and len(value) >= _LONG_RESULT)
        if is_repeated or self._is_computed(found, found.what, part, others):
            return "computed", None
        return "nowhere", None

    def _given(self, found: Found) -> tuple[FactState, Place | None] | None:
        """The state of a fact that a source, a message or an earlier answer has; None for others."""
        skipped: Place | None = None
        for source, index in enumerate(self._indexes):
            span, was_read = self._standing(found, index, self._read[source])
            if span is not None and was_read:
                return "document", Place(source, *span)
            if span is not None and skipped is None:
                skipped = Place(source, *span)
        if self._standing(found, self._question, None).span is not None:
            return "question", None
        if skipped is not None:
            return "skipped", skipped
        if (state := self._earlier.get(found.key)) is not None:
            return state, None
        return None

    def _standing(self, found: Found, index: Index, read: Read) -> Standing:
        what = found.what
        if isinstance(what, Quantity):
            return of_quantity(what, index, read)
        if isinstance(what, Name):
            return of_name(what, index, read, self._language)
        return (of_identifier if found.kind == "identifier" else of_quotation)(what, index, read)

    def _is_given(self, found: Found, what: Quantity) -> bool:
        """Whether others may be computed from it: a source or message has it, or it was computed itself."""
        computed = found.key if what.unit else what.values[0]
        return computed in self._computed or any(
            self._standing(found, each, None).span for each in (*self._indexes, self._question)
        )

    def _is_computed(self, found: Found, what: Quantity, part: Part, others: Sequence[Found]) -> bool:
        start, end = _sentence(part, found.start)
        near = [
            other
            for other in others
            if isinstance(other.what, Quantity)
            and start <= other.start
            and other.end <= end
            and other is not found
        ]
        operands = [
            each.what
            for each in near
            if isinstance(each.what, Quantity)
            and (_is_constant(each.what) or self._is_given(each, each.what))
        ]
        if all(_is_constant(each) for each in operands):
            return False
        sentence = part.text[start:end]
        if follows(what, operands, part.text, sentence):
            return True
        # A correct result of a wrong figure is not marked; the wrong figure is.
        if solves(what, [each.what for each in near if isinstance(each.what, Quantity)], part.text):
            return True
        wrong = [
            each.what
            for each in near
            if isinstance(each.what, Quantity)
            and each.end <= found.start
            and each.what not in operands
            and (each.kind in ("amount", "date") or each.what.unit or "." in each.what.values[0])
        ]
        pairs = product(operands[:_MOST_OPERANDS], wrong[-_MOST_WRONG:])
        return any(follows(what, pair) for pair in pairs)


def _is_constant(what: Quantity) -> bool:
    return what.values[0] in _CONSTANTS and what.unit in _CONSTANT_UNITS


def _overlaps(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in spans)


def _identifier(match: re.Match[str]) -> Found | None:
    text = match.group().rstrip(".:/-")
    end = match.start() + len(text)
    if text[0] in "+`":
        bare = text.strip("`")
        start = match.start() + (text[0] == "`")
        is_name = any(each.isalpha() for each in bare) or text[0] == "+"
        return (
            Found(start, start + len(bare), "identifier", "identifier " + bare.lower(), bare)
            if is_name
            else None
        )
    if "@" not in text and "://" not in text and not text.startswith("www."):
        if (_QUANTITY_LIKE.fullmatch(text) and not _is_code(text)) or _SHORT_REFERENCE.fullmatch(text):
            return None
        if not any(each.isalpha() for each in text) and any(each.kind == "date" for each in quantities(text)):
            return None
    return Found(match.start(), end, "identifier", "identifier " + text.lower(), text)


def _is_code(text: str) -> bool:
    """Whether capitals after digits are neither a unit nor a scale: 4H, 12B."""
    match = _DIGITS_AND_CAPITALS.fullmatch(text)
    return match is not None and not unit_of(match[1]) and match[1] not in _SUFFIXES


def _sentence(part: Part, at: int) -> tuple[int, int]:
    start, end = 0, len(part.text)
    for match in _SENTENCE_END.finditer(part.text):
        word = _LAST_WORD.search(part.text, max(0, match.start() - 12), match.start())
        if word and match.group() == "." and word.group().lower() in ABBREVIATED:
            continue
        if match.end() <= at:
            start = match.end()
        else:
            end = match.end()
            break
    return start, end
