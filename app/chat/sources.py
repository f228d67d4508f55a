"""Sources: the sentences that support an answer, numbered as in its text. No Qt.

Cited sentences come first, in the answer's order; sentences of the other passages that the worker names
follow. Of a passage's sentences, the one that shares most words with the answer is chosen; rare words count
more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from core.events import Citation, Passage, ReadingMap

# A sentence ends at a full stop before a space, or at the end of a paragraph, list item or table row; not at
# the end of a wrapped line.
_SENTENCE = re.compile(
    r"\S(?:(?![.!?][\"”’')\]]*\s|\n\s*(?:\n|[-*#|>•]|\d+[.)]\s)).)*(?:[.!?]+[\"”’')\]]*)?", re.S
)
_WORD = re.compile(r"\w+")
_MOST_CHARACTERS = 600


class Source(Struct, frozen=True):
    """A sentence of attachment `source`: its characters `first` to `last` (end-exclusive) and its text.

    `ends` are the places in the answer's source that its number follows.
    """

    source: int
    first: int
    last: int
    name: str
    words: str
    ends: tuple[int, ...] = ()


def sources_of(
    passages: Sequence[Passage],
    answer: str,
    documents: Mapping[int, tuple[str, str]],
    reading: ReadingMap | None = None,
    citations: Sequence[Citation] = (),
) -> tuple[Source, ...]:
    """The sources of an answer. `documents`: name and text by source number.

    Sentences that were skipped according to `reading`, the answer's own map, are left out.
    """
    answered = {word.casefold() for word in _WORD.findall(answer)}
    found = _cited(citations, documents)
    for passage in passages:
        if passage.source not in documents:
            continue
        name, text = documents[passage.source]
        sentence = _supporting(text, passage, answered)
        if sentence is None or _was_skipped(reading, passage.source, *sentence):
            continue
        first, last = sentence
        if not any(
            each.source == passage.source and each.first < last and first < each.last for each in found
        ):
            found.append(Source(passage.source, first, last, name, " ".join(text[first:last].split())))
    return tuple(found)


def _cited(citations: Sequence[Citation], documents: Mapping[int, tuple[str, str]]) -> list[Source]:
    """A source for each cited range of a document."""
    ends: dict[tuple[int, int, int], list[int]] = {}
    for each in citations:
        if each.source in documents and each.last_char <= len(documents[each.source][1]):
            ends.setdefault((each.source, each.first_char, each.last_char), []).append(each.end)
    found = []
    for (source, first, last), places in ends.items():
        name, text = documents[source]
        found.append(Source(source, first, last, name, " ".join(text[first:last].split()), tuple(places)))
    return found


def _supporting(text: str, passage: Passage, answered: set[str]) -> tuple[int, int] | None:
    """The sentence of `passage` that shares most with the words `answered`; None if there is none."""
    before = text.rfind("\n\n", 0, passage.first_char) + 1
    begin = max(before, passage.first_char - _MOST_CHARACTERS)
    area = text[begin : passage.last_char + _MOST_CHARACTERS]
    rarity = Counter(word.casefold() for word in _WORD.findall(area))
    best: tuple[float, int, int] | None = None
    for match in _SENTENCE.finditer(area):
        first, last = begin + match.start(), begin + match.end()
        if last <= passage.first_char:
            continue
        if first >= passage.last_char:
            break
        shared = {word.casefold() for word in _WORD.findall(match.group())} & answered
        score = sum(1 / rarity[word] for word in shared)
        if score > 0 and (best is None or score > best[0]):
            best = (score, first, last)
    return None if best is None else best[1:]


def _was_skipped(reading: ReadingMap | None, source: int, first: int, last: int) -> bool:
    if reading is None:
        return False
    over = [p for p in reading.passages if p.source == source and p.first_char < last and first < p.last_char]
    return bool(over) and not any(passage.kept for passage in over)
