"""The sentences an answer stands on, from the passages that the worker names. Pure.

A passage is cut where tokens end and holds several sentences; what a reader is led to is the one of them that
shares most words with the answer, the rare ones counting most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from core.events import Passage, ReadingMap

# Ends at a full stop with a space behind it, or where a paragraph, list item or table row does; a line that
# is only wrapped goes on.
_SENTENCE = re.compile(
    r"\S(?:(?![.!?][\"”’')\]]*\s|\n\s*(?:\n|[-*#|>•]|\d+[.)]\s)).)*(?:[.!?]+[\"”’')\]]*)?", re.S
)
_WORD = re.compile(r"\w+")
_MOST_CHARACTERS = 600


class Source(Struct, frozen=True):
    """A sentence of attachment `source`: its characters `first` to `last`, end-exclusive, and its words."""

    source: int
    first: int
    last: int
    name: str
    words: str


def sources_of(
    passages: Sequence[Passage],
    answer: str,
    documents: Mapping[int, tuple[str, str]],
    reading: ReadingMap | None = None,
) -> tuple[Source, ...]:
    """In the order of `passages`, each sentence once. `documents` are name and text of each attachment.

    Sentences of which `reading`, the answer's own map, read nothing are left out: the model cannot have them
    from there.
    """
    asked = {word.casefold() for word in _WORD.findall(answer)}
    found: list[Source] = []
    for passage in passages:
        if passage.source not in documents:
            continue
        name, text = documents[passage.source]
        sentence = _supporting(text, passage, asked)
        if sentence is None or _was_skipped(reading, passage.source, *sentence):
            continue
        first, last = sentence
        if not any(
            each.source == passage.source and each.first < last and first < each.last for each in found
        ):
            found.append(Source(passage.source, first, last, name, " ".join(text[first:last].split())))
    return tuple(found)


def _supporting(text: str, passage: Passage, asked: set[str]) -> tuple[int, int] | None:
    """The sentence of `passage` that says most of what was answered; None if it shares no word with it."""
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
        shared = {word.casefold() for word in _WORD.findall(match.group())} & asked
        score = sum(1 / rarity[word] for word in shared)
        if score > 0 and (best is None or score > best[0]):
            best = (score, first, last)
    return None if best is None else best[1:]


def _was_skipped(reading: ReadingMap | None, source: int, first: int, last: int) -> bool:
    if reading is None:
        return False
    over = [p for p in reading.passages if p.source == source and p.first_char < last and first < p.last_char]
    return bool(over) and not any(passage.kept for passage in over)
