"""The reading map as numbers: cells of a strip, stretches of a document, the playhead's place.

Pure; painting is done elsewhere. A map is drawn over the tokens that its passages cover: what
was remembered from before is not on it. Ranges are end-exclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from core.events import Passage, ReadingMap

CellState = Literal["empty", "skipped", "kept", "read"]


class Cell(Struct, frozen=True):
    """One column of a strip. `score` is the best of the passages in it, for the grey of skipped ones."""

    state: CellState
    score: float = 0.0


class Stretch(Struct, frozen=True):
    """Characters of one document that are read without a gap."""

    first: int
    last: int


def covered(reading: ReadingMap) -> tuple[int, int]:
    """The tokens on the map."""
    if not reading.passages:
        return (0, 0)
    return (reading.passages[0].start, reading.passages[-1].end)


def kept_passages(passages: Sequence[Passage]) -> int:
    """How many are read."""
    return sum(passage.kept for passage in passages)


def of_source(reading: ReadingMap, source: int) -> tuple[Passage, ...]:
    """The passages of one attachment."""
    return tuple(passage for passage in reading.passages if passage.source == source)


def cells(passages: Sequence[Passage], width: int, read_tokens: int | None = None) -> list[Cell]:
    """The strip in `width` columns: a kept passage is seen however narrow it is.

    `read_tokens` says how many kept tokens of the passages have been read; None: all of them.
    """
    if not passages or width <= 0:
        return [Cell("empty")] * max(0, width)
    start, end = passages[0].start, passages[-1].end
    row: list[Cell] = [Cell("empty")] * width
    per_token = width / max(1, end - start)
    unread = sum(p.end - p.start for p in passages if p.kept) if read_tokens is None else read_tokens
    for passage in passages:
        state: CellState = "skipped"
        if passage.kept:
            state = "read" if unread > 0 else "kept"
            unread -= passage.end - passage.start
        first = int((passage.start - start) * per_token)
        last = max(first + 1, round((passage.end - start) * per_token))
        cell = Cell(state, passage.score)
        for column in range(first, min(last, width)):
            row[column] = _stronger(row[column], cell)
    return row


def playhead(reading: ReadingMap, read_tokens: int) -> float:
    """Where on the strip (0 to 1) the reading is after so many kept tokens."""
    start, end = covered(reading)
    for passage in reading.passages:
        if passage.kept:
            length = passage.end - passage.start
            if read_tokens < length:
                return (passage.start + max(0, read_tokens) - start) / max(1, end - start)
            read_tokens -= length
    return 1.0


def passage_at(reading: ReadingMap, place: float) -> Passage | None:
    """The passage at a place (0 to 1) of the strip."""
    start, end = covered(reading)
    token = start + place * (end - start)
    found = [passage for passage in reading.passages if passage.start <= token]
    return found[-1] if found else None


def stretches(passages: Sequence[Passage]) -> tuple[Stretch, ...]:
    """What is read of a document, from its passages: neighbours joined.

    Between two passages only the white space that no token owns may be missing.
    """
    joined: list[Stretch] = []
    before: Passage | None = None
    for passage in passages:
        if passage.kept and passage.last_char > passage.first_char:
            if joined and before is not None and before.kept:
                joined[-1] = Stretch(joined[-1].first, passage.last_char)
            else:
                joined.append(Stretch(passage.first_char, passage.last_char))
        before = passage
    return tuple(joined)


def character_shares(stretches_: Sequence[Stretch], length: int) -> tuple[tuple[float, float], ...]:
    """Stretches as shares (0 to 1) of a text of `length` characters."""
    size = max(1, length)
    return tuple((stretch.first / size, stretch.last / size) for stretch in stretches_)


def heading_level(line: str) -> int:
    """1 to 6 for a line that looks like a heading, else 0: Markdown's, or a number and few words."""
    words = line.strip()
    marks = len(words) - len(words.lstrip("#"))
    if 0 < marks <= 6 and words[marks : marks + 1] == " ":
        return marks
    number, _, title = words.partition(" ")
    parts = number.rstrip(".").split(".")
    numbered = all(part.isdigit() and len(part) <= 3 for part in parts)
    short = 0 < len(title.split()) <= 8 and title.strip()[:1].isupper() and title.strip()[-1] not in ".,;:"
    return min(6, len(parts)) if numbered and short else 0


def sections(text: str) -> tuple[tuple[int, str], ...]:
    """The top headings of a text: where each is, and what it says without its marks."""
    lines = text.split("\n")
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    found = [(level, start, line) for start, line in zip(starts, lines) if (level := heading_level(line))]
    if not found:
        return ()
    levels = sorted({level for level, _, _ in found})
    # A lone title says nothing about where one is.
    top = next((one for one in levels if sum(level == one for level, _, _ in found) > 1), levels[0])
    return tuple((start, line.strip().lstrip("# ").strip()) for level, start, line in found if level == top)


def place_of_character(reading: ReadingMap, source: int, character: int) -> float | None:
    """Where on the strip a character of an attachment is; None if its passage is not on the map."""
    start, end = covered(reading)
    for passage in reading.passages:
        if passage.source == source and character < passage.last_char:
            inside = max(0, character - passage.first_char) / max(1, passage.last_char - passage.first_char)
            return (passage.start + inside * (passage.end - passage.start) - start) / max(1, end - start)
    return None


def _stronger(one: Cell, other: Cell) -> Cell:
    """Of what shares a column: read before waiting, either before skipped, and the better score."""
    order = ("empty", "skipped", "kept", "read")
    return max(one, other, key=lambda cell: (order.index(cell.state), cell.score))
