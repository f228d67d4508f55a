"""Finds names in a part of an answer: capitalised words that are not ordinary words.

Latin, Greek and Cyrillic scripts. A word at the beginning of a sentence is capitalised anyway, and so are
labels: headings, cells, bold text at the beginning of a line. German capitalises its nouns, so that only two
capitalised words in a row, capitals inside a word and abbreviations are names there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from core.origins.lexicon import (
    ABBREVIATED,
    COMMON,
    CONNECTORS,
    FUNCTION_WORDS,
    GERMAN_COMMON,
    HOLIDAYS,
    LABELS,
    PERSONAL_TITLES,
    STARTERS,
    TITLES,
)
from core.origins.parts import Part
from core.origins.words import UNSPACED

_TOKEN = re.compile(rf"[^\W\d_{UNSPACED}]+(?:[-.&][^\W\d_{UNSPACED}]+)*")
_ENDS = re.compile(r"[.!?:;…|>\n][\"”’')\]*_]{0,6}\s{0,6}(?:\(?\d{1,3}[.)]\s{1,6})?[\"“„«»‘'(\[*_]{0,6}\Z")
_OPENS = re.compile(r"[(\[“„«»\"]\W*\Z")
_LABEL_END = re.compile(r"\*\*|__|:")
_COMMON_ENDS = (
    "tion",
    "tions",
    "ment",
    "ments",
    "ing",
    "ness",
    "ity",
    "ies",
    "ance",
    "ence",
    "ly",
    "ungen",
    "ung",
    "keit",
    "heit",
)


# Pronouns that German capitalises.
_POLITE = frozenset(("Sie", "Ihnen", "Ihr", "Ihre", "Ihrem", "Ihren", "Ihrer", "Ihres"))


class Name(NamedTuple):
    """Characters `start` to `end` (end-exclusive) of a part; `tokens`: its words without titles."""

    start: int
    end: int
    tokens: tuple[str, ...]


class Token(NamedTuple):
    """A word of letters. `first`: a sentence begins with it. `ordinary`: it cannot be part of a name."""

    text: str
    start: int
    end: int
    first: bool
    ordinary: bool


class Tokens:
    """The words of a growing text: only those at its end are read again."""

    def __init__(self) -> None:
        self._text = ""
        self._kept: list[Token] = []

    def of(self, text: str) -> list[Token]:
        """The words of `text`."""
        if not text.startswith(self._text):
            self._kept = []
        self._text = text
        last = self._kept[-1] if self._kept else None
        found: list[Token] = []
        for match in _TOKEN.finditer(text, last.end if last else 0):
            last = _token(text, match, last)
            # Letters may follow its last point, hyphen or letter.
            (self._kept if last.end + 2 <= len(text) else found).append(last)
        return [*self._kept, *found]


def _token(text: str, match: re.Match[str], last: Token | None) -> Token:
    word = match.group()
    if not (_is_capitalised(word) or word in CONNECTORS):
        return Token(word, *match.span(), False, True)
    if last is None:
        return Token(word, *match.span(), True, False)
    between = text[last.end : match.start()]
    if between == ". " and _is_abbreviated(text, last):
        return Token(word, *match.span(), False, False)
    first = _ENDS.search(between) is not None or _OPENS.search(between) is not None
    return Token(word, *match.span(), first, False)


def names(
    part: Part, tokens: Iterable[Token], language: str, is_ordinary: Callable[[str], bool]
) -> Iterator[Name]:
    """Names of a part with these words, in order. `is_ordinary`: whether a word is also in lower case."""
    if part.kind in ("code", "rule"):
        return
    label_end = len(part.text) if part.kind in ("heading", "row") else _label_end(part.text)
    run: list[Token] = []
    for token in tokens:
        if run and (token.ordinary or not _joins(part.text[run[-1].end : token.start], token)):
            yield from _name(run, label_end, language, is_ordinary)
            run = []
        if not token.ordinary and (run or token.text not in CONNECTORS):
            run.append(token)
    yield from _name(run, label_end, language, is_ordinary)


def _is_abbreviated(text: str, word: Token) -> bool:
    """Whether a point after `word` does not end a sentence. Not after the M of 5M, which is a unit."""
    if text[word.start - 1 : word.start].isdigit():
        return False
    return (len(word.text) == 1 and word.text.isupper()) or word.text.lower() in ABBREVIATED


def _label_end(text: str) -> int:
    """End of the label that begins a line, which is bold or ends with a colon; 0 without one."""
    begin = re.match(r"[\s>*_+•\d.)-]*", text)
    start = begin.end() if begin else 0
    bold = "**" in text[:start] or "__" in text[:start]
    end = _LABEL_END.search(text, start, start + 80)
    if end is None or (end.group() == ":" and not bold and len(text[start : end.start()].split()) > 4):
        return 0
    return end.end()


def _is_capitalised(text: str) -> bool:
    return text[0].isupper() and (len(text) > 1 or text in "XYZ")


def _joins(between: str, token: Token) -> bool:
    return not token.first and between in (" ", "\u00a0", ". ", " & ", "-", "’", "'", " **", "** ")


def _name(
    run: list[Token], label_end: int, language: str, is_ordinary: Callable[[str], bool]
) -> Iterator[Name]:
    while run and run[-1].text in CONNECTORS:
        run = run[:-1]
    # With a title even one word is a name: "Frau Amrein".
    is_titled = any(each.text.rstrip(".").lower() in PERSONAL_TITLES for each in run[:-1])
    while run and _is_dropped(run[0], run, language, is_ordinary):
        run = run[1:]
        while run and run[0].text in CONNECTORS:
            run = run[1:]
    while run and (run[-1].text.lower() in COMMON or run[-1].text in CONNECTORS or run[-1].text in _POLITE):
        run = run[:-1]
    named = [
        each for each in run if each.text not in CONNECTORS and each.text.rstrip(".").lower() not in TITLES
    ]
    if not named:
        return
    inner = any(_has_inner_capital(each.text) for each in named)
    if language == "de" and not inner and len(run) < 2 and not is_titled:
        return
    if run[0].start < label_end and not is_titled and not _is_label_name(run, named, language, is_ordinary):
        return
    if run[0].first and len(run) == 1 and not inner and not is_titled:
        return
    if language == "de" and _is_phrase(run):
        return
    if (
        all(each.text.lower() in COMMON for each in named)
        or " ".join(each.text for each in named).lower() in HOLIDAYS
    ):
        return
    joint = _joint(run, named, language)
    for each in (named[:joint], named[joint:]) if joint else (named,):
        if joint and len(each) < 2:
            continue  # a German noun: "Leitung von Mara Hill"
        first, last = (each[0], each[-1]) if joint else (run[0], run[-1])
        yield Name(first.start, last.end, tuple(token.text for token in each))


def _joint(run: list[Token], named: list[Token], language: str) -> int:
    """Number of words of `named` before a connector that joins two names, as in "Mary Hill of Kestrel
    Security": either has two words or more, in German one before "von". 0 without one.
    """
    for each in run:
        before = sum(other.start < each.start for other in named)
        least = 1 if language == "de" and each.text == "von" else 2
        if each.text in CONNECTORS and before >= least and len(named) - before >= 2:
            return before
    return 0


def _is_phrase(run: list[Token]) -> bool:
    """Whether German nouns in a row are a phrase, not a name: "Prüfung der Positionen"."""
    return len(run) == 3 and run[1].text in ("der", "des")


def _has_inner_capital(text: str) -> bool:
    return any(part[1:] != part[1:].lower() for part in re.split(r"[-.&]", text))


def _is_dropped(token: Token, run: list[Token], language: str, is_ordinary: Callable[[str], bool]) -> bool:
    """Whether the first word of a run does not belong to the name."""
    key = token.text.lower()
    if key in COMMON:
        return True
    if token.text.isupper():
        return False
    if key in FUNCTION_WORDS:
        return True
    if language == "de" and key in GERMAN_COMMON:
        return True
    return token.first and (key in STARTERS or key.endswith("ly") or (len(run) > 1 and is_ordinary(key)))


def _is_label_name(
    run: list[Token], named: list[Token], language: str, is_ordinary: Callable[[str], bool]
) -> bool:
    """Whether a capitalised label is a name: several words, none of them an ordinary word of labels."""
    keys = [each.text.lower() for each in named]
    if len(run) < 2 or any(key in LABELS or key.endswith(_COMMON_ENDS) or is_ordinary(key) for key in keys):
        return False
    return language != "de" or len(named) >= 2
