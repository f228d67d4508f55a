"""Marks of an answer's origins, their tooltips, and the footer's line of facts."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from app.chat import strings
from app.chat.tokens import TokenFacts
from app.richtext.markdown.piece import Piece, shown_range
from app.richtext.origin_paint import NOWHERE_COLOR, OriginMark, source_color
from app.session.origins import AnswerOrigins, distinct
from app.session.strings import NOT_IN_DOCUMENTS
from core.origins import Fact, Place, Run

Mark = Run | Fact
_AROUND_CHARACTERS = 90
_MOST_CHARACTERS = 300


def marks_of_answer(origins: AnswerOrigins) -> list[Mark]:
    """Marks by position: copied words, facts in no source, and facts only in skipped passages."""
    marks: list[Mark] = [*origins.runs, *origins.unfounded, *origins.skipped]
    return sorted(marks, key=lambda mark: (mark.start, isinstance(mark, Run)))


def mark_at(marks: Sequence[Mark], offset: int) -> Mark | None:
    """The mark at that offset of the source; a fact before the words around it."""
    found = [mark for mark in marks if mark.start <= offset < mark.end]
    return min(found, key=lambda mark: isinstance(mark, Run), default=None)


def shown_marks(
    piece: Piece, marks: Sequence[Mark], origins: AnswerOrigins, pointed: Mark | None
) -> list[OriginMark]:
    """The marks in `piece`, by its visible characters."""
    found: list[OriginMark] = []
    last = bisect_right(marks, piece.source_end, key=lambda mark: mark.start)
    for mark in marks[:last]:
        if mark.end <= piece.source_start:
            continue
        shown = shown_range(piece.segments, mark.start, mark.end)
        if shown is None:
            continue
        is_run = isinstance(mark, Run)
        color = (
            NOWHERE_COLOR if mark.place is None else source_color(origins.sources[mark.place.source].document)
        )
        found.append(OriginMark(*shown, color, dotted=not is_run, pointed=mark is pointed))
    return found


def mark_facts(mark: Mark, origins: AnswerOrigins, text: str) -> TokenFacts:
    """The tooltip of a mark. `text` is the marked text, on one line."""
    if mark.place is None:
        return TokenFacts(text, "normal", NOT_IN_DOCUMENTS, ())
    source = origins.sources[mark.place.source]
    lines: tuple[str, ...] = (strings.OPEN_PLACE,) if source.document >= 0 else (strings.OPEN_MESSAGE,)
    if isinstance(mark, Fact):
        head = strings.IN_SKIPPED
        return TokenFacts(
            text, "normal", head, (source.named(mark.place), *lines), passage=around(source.text, mark.place)
        )
    if mark.others:
        lines = (strings.other_places(len(mark.others)), *lines)
    return TokenFacts("", "normal", source.named(mark.place), lines, passage=around(source.text, mark.place))


def around(text: str, place: Place) -> tuple[str, str, str]:
    """The text before `place` in its line, its words, and the text after it."""
    begin = max(text.rfind("\n", 0, place.start) + 1, place.start - _AROUND_CHARACTERS)
    if 0 < begin == place.start - _AROUND_CHARACTERS:
        begin = text.find(" ", begin, place.start) + 1 or begin
    line_end = text.find("\n", place.end)
    end = min(len(text) if line_end < 0 else line_end, place.end + _AROUND_CHARACTERS)
    if end == place.end + _AROUND_CHARACTERS:
        space = text.rfind(" ", place.end, end)
        end = space if space > 0 else end
    words = " ".join(text[place.start : place.end].split())
    words = words if len(words) <= _MOST_CHARACTERS else words[:_MOST_CHARACTERS] + "…"
    return text[begin : place.start], words, text[place.end : end]


def facts_line(origins: AnswerOrigins, source: str) -> str:
    """“6 figures and names: 5 are in the documents, 1 is not: 420”; empty without facts."""
    facts = distinct(origins.origins.facts, source)
    counts = Counter[str](fact.state for fact, _ in facts)
    return strings.facts_line(counts, [text for fact, text in facts if fact.state == "nowhere"])
