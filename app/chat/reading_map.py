"""The reading map: which passages of a prompt are read, as cells of a strip, its painting, and its figures.

The map covers the tokens of its passages; reused tokens are not on it. Ranges are end-exclusive. `facts_of`
makes the texts of the reading card from the prefill's progress and the map.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, get_args

from msgspec import Struct
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath

from app.chat import strings
from app.controls.shapes import blend
from app.session.reading import totals_of
from app.theme.theme import color, theme
from core.events import Passage, PrefillProgress, ReadingMap
from core.prefill.forecast import display, duration, of_documents
from core.settings.declaration import find

# More do not fit on a strip.
_MAX_LABELS = 40
_LABEL_CHARACTERS = 22

_HEADING_CHARACTERS = 100
_NAMED = re.compile(
    r"(?:section|chapter|part|article|annex|appendix|kapitel|teil|abschnitt) +[0-9IVXLA-Z]+\b", re.I
)
# A root prompt with a command, as in “# ls -l”: options, paths or operators follow a lower-case word.
_PROMPT = re.compile(r"# +[a-z][\w.+-]*(?=\s|$)")
_COMMAND = re.compile(r"\s(?:--?\w|[./~$]|\||>|&&|\w+=)")
_ITEM = re.compile(r"\s*\d+[.)]?\s")

# In ascending priority: of passages that share a column the highest is shown.
CellState = Literal["empty", "skipped", "earlier", "kept", "read"]
_STRENGTH: tuple[CellState, ...] = get_args(CellState)


class MapCell(Struct, frozen=True):
    """One column of a strip. `score`, the highest of its passages, determines the grey if skipped."""

    state: CellState
    score: float = 0.0


class Stretch(Struct, frozen=True):
    """A contiguous range of characters of one document that are read."""

    first: int
    last: int


def covered(reading: ReadingMap) -> tuple[int, int]:
    """The token range of the map."""
    if not reading.passages:
        return (0, 0)
    return (reading.passages[0].start, reading.passages[-1].end)


def kept_passages(passages: Sequence[Passage]) -> int:
    """The number of passages that are read."""
    return sum(passage.kept for passage in passages)


def passages_of(reading: ReadingMap, source: int) -> tuple[Passage, ...]:
    """The passages of one attachment."""
    return tuple(passage for passage in reading.passages if passage.source == source)


def cells(passages: Sequence[Passage], width: int, read_tokens: int | None = None) -> list[MapCell]:
    """The cells of a strip with `width` columns. A kept passage has at least one column.

    `read_tokens` is the number of kept tokens already read; None: all.
    """
    if not passages:
        return [MapCell("empty")] * max(0, width)
    start, end = passages[0].start, passages[-1].end
    states = passage_states(passages, read_tokens)
    found = [(p.start - start, p.end - start, MapCell(s, p.score)) for p, s in zip(passages, states)]
    return _row(found, end - start, width)


def document_cells(
    reading: ReadingMap, source: int, length: int, height: int, read_tokens: int | None = None
) -> list[MapCell]:
    """Like `cells`, for the characters of one attachment, which has `length` of them."""
    states = passage_states(reading.passages, read_tokens)
    found = [
        (passage.first_char, passage.last_char, MapCell(state, passage.score))
        for passage, state in zip(reading.passages, states)
        if passage.source == source
    ]
    return _row(found, length, height)


def passage_states(passages: Sequence[Passage], read_tokens: int | None = None) -> list[CellState]:
    """The state of each passage after `read_tokens` kept tokens of this turn; None: all."""
    unread = sum(p.end - p.start for p in passages if p.kept) if read_tokens is None else read_tokens
    states: list[CellState] = []
    for passage in passages:
        if not passage.kept or passage.earlier:
            states.append("earlier" if passage.kept else "skipped")
            continue
        states.append("read" if unread > 0 else "kept")
        unread -= passage.end - passage.start
    return states


def playhead(reading: ReadingMap, read_tokens: int) -> float:
    """The position on the strip (0 to 1) after `read_tokens` kept tokens."""
    start, end = covered(reading)
    for passage in reading.passages:
        if passage.kept and not passage.earlier:
            length = passage.end - passage.start
            if read_tokens < length:
                return (passage.start + max(0, read_tokens) - start) / max(1, end - start)
            read_tokens -= length
    return 1.0


def passage_at(reading: ReadingMap, position: float) -> Passage | None:
    """The passage at a position (0 to 1) on the strip."""
    start, end = covered(reading)
    token = start + position * (end - start)
    found = [passage for passage in reading.passages if passage.start <= token]
    return found[-1] if found else None


def stretches(passages: Sequence[Passage]) -> tuple[Stretch, ...]:
    """The stretches of a document that are read: adjacent kept passages are joined.

    Only white space that belongs to no token may be between adjacent passages.
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


def heading_level(line: str) -> int:
    """The level, 1 to 6, of a line that looks like a heading, else 0.

    Headings are those of Markdown, and lines with a number and a few words.
    """
    words = line.strip()
    if len(words) > _HEADING_CHARACTERS:
        return 0
    if _NAMED.match(words) and words[-1] not in ",;:.":
        return 1
    marks = len(words) - len(words.lstrip("#"))
    if 0 < marks <= 6 and words[marks : marks + 1] == " ":
        return marks
    number, _, title = words.partition(" ")
    parts = number.rstrip(".").split(".")
    numbered = all(part.isdigit() and len(part) <= 3 for part in parts)
    short = 0 < len(title.split()) <= 8 and title.strip()[:1].isupper() and title.strip()[-1] not in ".,;:"
    return min(6, len(parts)) if numbered and short else 0


def _is_prompt(lines: Sequence[str], number: int) -> bool:
    """Whether the line is a command after a root prompt, or among lines of a terminal."""
    line = lines[number]
    if not _PROMPT.match(line):
        return False
    around = (*lines[max(0, number - 1) : number], *lines[number + 1 : number + 2])
    return _COMMAND.search(line) is not None or all(each.strip() for each in around)


def heading_levels(lines: Sequence[str]) -> list[int]:
    """The heading level of each line; 0 for other lines and in fenced code.

    A numbered heading must begin a paragraph and not be in a numbered list.
    """
    found: list[int] = []
    fence = ""
    for number, line in enumerate(lines):
        mark = line.strip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
            found.append(0)
            continue
        level = 0 if fence or _is_prompt(lines, number) else heading_level(line)
        if level and not line.lstrip().startswith("#"):
            begins = number == 0 or not lines[number - 1].strip() or found[-1] > 0
            in_list = number + 1 < len(lines) and _ITEM.match(line) and _ITEM.match(lines[number + 1])
            level = level if begins and not in_list else 0
        found.append(level)
    return found


def sections(text: str) -> tuple[tuple[int, str], ...]:
    """The top-level headings of a text: offset, and text without marks."""
    lines = text.split("\n")
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    levels_of = heading_levels(lines)
    found = [(level, start, line) for level, start, line in zip(levels_of, starts, lines) if level]
    if not found:
        return ()
    levels = sorted({level for level, _, _ in found})
    # A single title does not divide the text.
    top = next((one for one in levels if sum(level == one for level, _, _ in found) > 1), levels[0])
    return tuple((start, line.strip().lstrip("# ").strip()) for level, start, line in found if level == top)


def position_of_character(reading: ReadingMap, source: int, character: int) -> float | None:
    """The position (0 to 1) of an attachment's character on the strip; None if it is not on the map."""
    start, end = covered(reading)
    for passage in reading.passages:
        if passage.source == source and character < passage.last_char:
            inside = max(0, character - passage.first_char) / max(1, passage.last_char - passage.first_char)
            return (passage.start + inside * (passage.end - passage.start) - start) / max(1, end - start)
    return None


def labels(reading: ReadingMap, texts: Mapping[int, tuple[str, str]]) -> tuple[tuple[float, str], ...]:
    """The labels of the strip: the names of several documents, or the headings of one.

    `texts`: name and text of each attachment by source number.
    """
    sources = sorted({p.source for p in reading.passages if p.source in texts})
    marks: list[tuple[int, int, str]] = []
    if len(sources) > 1:
        first = {p.source: p.first_char for p in reversed(reading.passages)}
        marks = [(source, first[source], texts[source][0]) for source in sources]
    elif sources:
        first_of = {words: (at, words) for at, words in reversed(sections(texts[sources[0]][1]))}
        found = sorted(first_of.values())[:_MAX_LABELS]  # a page's running head is one label
        names = _told_apart([words for _, words in found])
        marks = [(sources[0], offset, name) for (offset, _), name in zip(found, names, strict=True)]
    placed = [(position_of_character(reading, source, offset), words) for source, offset, words in marks]
    return tuple((position, words) for position, words in placed if position is not None)


def _told_apart(marks: Sequence[str]) -> list[str]:
    """Short labels of headings. Those that would be cut to the same words show their ends."""
    short = [_short(words) for words in marks]
    return [
        f"…{words[-_LABEL_CHARACTERS:].partition(' ')[2] or words[-_LABEL_CHARACTERS:]}"
        if label != words and short.count(label) > 1
        else label
        for words, label in zip(marks, short, strict=True)
    ]


def _short(words: str) -> str:
    if len(words) <= _LABEL_CHARACTERS:
        return words
    cut = words[:_LABEL_CHARACTERS]
    return cut[: cut.rfind(" ") if " " in cut else None].rstrip(" .,:;") + "…"


def _row(found: Sequence[tuple[int, int, MapCell]], length: int, width: int) -> list[MapCell]:
    row: list[MapCell] = [MapCell("empty")] * max(0, width)
    per_unit = width / max(1, length)
    for start, end, cell in found:
        first = int(start * per_unit)
        last = max(first + 1, round(end * per_unit))
        for column in range(first, min(last, width)):
            row[column] = _stronger(row[column], cell)
    return row


def _stronger(one: MapCell, other: MapCell) -> MapCell:
    """The cell with the higher priority, or the higher score."""
    return max(one, other, key=lambda cell: (_STRENGTH.index(cell.state), cell.score))


# Skipped cells blend this much of the text colour over the empty map, by score.
_MIN_BLEND, _MAX_BLEND = 0.045, 0.155
_RADIUS_PX = 5.0


def cell_color(cell: MapCell) -> QColor:
    """The colour of a cell: blue if read, paler if kept, blue-grey if read earlier, grey if skipped."""
    if cell.state == "read":
        return color("accent")
    if cell.state == "kept":
        return color("accent_mid")
    empty = color("map_empty")
    if cell.state == "earlier":
        return blend(color("accent_mid"), color("text2"), 0.5)
    if cell.state == "empty":
        return empty
    share = _MIN_BLEND + (_MAX_BLEND - _MIN_BLEND) * max(0.0, min(1.0, cell.score))
    return blend(color("text"), empty, share)


def draw_map(
    painter: QPainter,
    rect: QRectF,
    cells: Sequence[MapCell],
    *,
    radius_px: float = _RADIUS_PX,
    vertical: bool = False,
) -> None:
    """Fill `rect` with `cells`, from left to right, or from top to bottom if `vertical`.

    The cells are scaled as one image, so that the time does not depend on their number.
    """
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    shape = QPainterPath()
    shape.addRoundedRect(rect, radius_px, radius_px)
    painter.setClipPath(shape)
    painter.fillRect(rect, theme.color("map_empty"))
    if cells:
        count = len(cells)
        image = QImage(*((1, count) if vertical else (count, 1)), QImage.Format.Format_RGB32)
        colors: dict[MapCell, int] = {}
        for at, cell in enumerate(cells):
            color = colors.get(cell)
            if color is None:
                color = colors[cell] = cell_color(cell).rgb()
            image.setPixel(*((0, at) if vertical else (at, 0)), color)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(rect, image)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.restore()


# A shorter prefill shows no card.
_SHOWN_FROM_TOKENS = 256
_SHOWN_FROM_S = 2.0
# A longer estimate is wrong and not shown.
_MAX_S = 1e9

PhaseState = Literal["done", "active", "ahead"]


class ReadingPhase(Struct, frozen=True):
    """One of the phases Scored, Chosen and Reading."""

    title: str
    note: str
    state: PhaseState


class ReadingFacts(Struct, frozen=True):
    """The card's texts. `fraction` is the progress bar's; `phases` is empty for a dense prefill."""

    title: str
    left: str
    done: str
    fraction: float
    phases: tuple[ReadingPhase, ...] = ()


def is_worth_showing(progress: PrefillProgress) -> bool:
    """Whether the prefill is long enough for the card."""
    is_short = progress.total_tokens - progress.reused_tokens < _SHOWN_FROM_TOKENS
    return not is_short or (progress.seconds_left or 0.0) >= _SHOWN_FROM_S


def to_read(progress: PrefillProgress) -> int:
    """Tokens to read. Kept tokens include the prompt's last token, which is read at the end."""
    return progress.kept_tokens or progress.total_tokens - progress.reused_tokens


def read_so_far(progress: PrefillProgress) -> int:
    """Tokens already read, without the reused ones, which `done_tokens` includes."""
    unread = progress.total_tokens - progress.reused_tokens
    return max(0, min(unread, progress.done_tokens - progress.reused_tokens))


def dense_estimate(tokens: int, dense_s: float | None) -> str:
    """The tokens of a dense prefill, and its time if that is known."""
    # Figures of a stored answer may be corrupt.
    if not dense_s or not 0 <= dense_s < _MAX_S:
        return strings.EVERYTHING.format(tokens=tokens)
    return strings.EVERYTHING_IN.format(tokens=tokens, time=duration(dense_s))


def facts_of(
    progress: PrefillProgress, reading: ReadingMap | None, scored_s: float | None, now_s: float
) -> ReadingFacts:
    """The card's content at `now_s` of the steady clock. `scored_s` is the time of scoring."""
    shown = display(progress, now_s)
    title, left, fraction = shown.title, shown.left, shown.fraction
    if progress.phase == "scoring":
        note = strings.SCORING_NOTE.format(done=progress.scored_tokens, total=progress.total_tokens)
        phases = (
            ReadingPhase(strings.SCORING, note, "active"),
            ReadingPhase(strings.CHOSEN, "", "ahead"),
            ReadingPhase(strings.READING_PHASE, "", "ahead"),
        )
        return ReadingFacts(title, left, strings.SCORING_DONE, fraction, phases)
    unread = max(1, to_read(progress))
    done = read_so_far(progress)
    if reading is None or not progress.kept_tokens:
        # Without kept tokens the prefill is dense, even if there is a map.
        words = strings.READING_DONE.format(done=done, unread=unread)
        return ReadingFacts(title, left, words, fraction)
    words = strings.READING_KEPT.format(done=done, kept=unread)
    return ReadingFacts(title, left, words, fraction, _phases(reading, scored_s, shown.speed))


def reads_on(reading: ReadingMap) -> bool:
    """Whether passages that an earlier turn skipped are read."""
    return any(passage.earlier for passage in reading.passages)


def _phases(reading: ReadingMap, scored_s: float | None, speed: str) -> tuple[ReadingPhase, ...]:
    scorer = find("prefill.scorer").labels.get(reading.scorer, reading.scorer).lower()
    passages = of_documents(reading.passages)  # as the Document tab counts them
    scored = strings.SCORED_BY.format(passages=len(passages), scorer=scorer)
    if scored_s is not None:
        scored += strings.SCORED_IN.format(seconds=scored_s)
    chosen = chosen_words(reading)
    speed = strings.READING_SPEED.format(speed=speed) if speed else ""
    return (
        ReadingPhase(strings.SCORED, scored, "done"),
        ReadingPhase(strings.CHOSEN, chosen, "done"),
        ReadingPhase(strings.READING_PHASE, speed, "active"),
    )


def chosen_words(reading: ReadingMap) -> str:
    """How much was chosen, as the setting Keep counts it, and how much is read in addition."""
    totals = totals_of(reading)
    words = strings.CHOSEN_NOTE.format(chosen=totals.chosen, all=totals.all, percent=totals.chosen_percent)
    return words + (strings.ALWAYS_READ.format(always=totals.always) if totals.always else "")
