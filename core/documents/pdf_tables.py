"""Tables of a PDF page, found by the positions of its words and lines. Pure.

Coordinates are PDF points with y downwards. A table has rules between its columns, or gaps between words over
at least three lines. A cell that spans others is in its first column and row. Text set in columns is not a
table.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

# Rules and edges closer than this are one, in points.
_SAME = 3.0
# Narrowest gap between two columns without a rule, in heights of a line; a space has 0.2 to 0.3.
_GAP = 0.75
# Greatest distance of two lines of one table, in heights.
_FAR = 3.0
# A line with text in the first column only ends a table if it is this much further away than lines usually
# are.
_APART = 1.4
_FEWEST_ROWS = 3
# Width of the strip between two rules that belong together, at most, in heights of a line.
_STRIP = 0.7
# Share of a grid's rules that are drawn, from which it is a table and not a drawing.
_REGULAR = 0.6
# Share of the cells of a table without rules that have text.
_FILLED = 0.4
# Words per line and share of the column's width from which a column holds running text.
_PROSE_WORDS, _PROSE_WIDTH = 4.0, 0.7
# Words per piece of a line from which columns that a file has one after the other are text.
_COLUMN_WORDS = 1.5
# The words of a table follow each other, with a few others between them.
_CONTIGUOUS = 1.3
# A drawing, not a table.
_MOST_RULES = 4_000
_MOST_WORDS = 8_000
# Comparisons of a line's pieces with others before the search for tables ends.
_MOST_WORK = 3_000_000
# Share of the cells that may have their words in another order than the file.
_MIXED = 0.1
_LIST_MARKS = frozenset("•◦▪‣●○■□–—-*·")


class Box(NamedTuple):
    """A rectangle; a rule has no width or no height."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def centre(self) -> float:
        return (self.left + self.right) / 2


class Word(NamedTuple):
    """A word, with its range of the page's characters; `gap` is the white space before it.

    The range of a form field's text is empty. `level` is False for text that is not horizontal.
    """

    box: Box
    text: str
    start: int = 0
    end: int = 0
    gap: str = " "
    level: bool = True

    @property
    def right_to_left(self) -> bool:
        """Whether its first letter belongs to a script that is written from right to left."""
        letters = (unicodedata.bidirectional(letter) for letter in self.text)
        return next((kind in ("R", "AL") for kind in letters if kind in ("L", "R", "AL")), False)


class Table(NamedTuple):
    """`rows` has the indices of each cell's words, in the order of reading.

    Of text set in columns each row is a line of the text, column by column.
    """

    rows: list[list[list[int]]]

    @property
    def words(self) -> list[int]:
        return sorted(index for row in self.rows for cell in row for index in cell)

    def text(self, words: Sequence[Word]) -> str:
        """One line per row, with tabs between cells."""
        rows = ("\t".join(_joined_words(words, cell) for cell in row) for row in self.rows)
        return "\n".join(row.rstrip() for row in rows)


def _joined_words(words: Sequence[Word], cell: list[int]) -> str:
    """The text of a cell on one line."""
    text = ""
    for before, index in zip([None, *cell], cell):
        word = words[index]
        if before is None:
            text = word.text
        elif before == index - 1 and not set(word.gap) & set("\r\n"):
            text += word.gap + word.text
        else:
            # No space after a hyphen or a Chinese or Japanese letter at the end of a line.
            closed = text[-1:] in "\ufffe\x02" or (_is_wide(text[-1:]) and _is_wide(word.text[:1]))
            text += word.text if closed else f" {word.text}"
    return text


def _is_wide(letter: str) -> bool:
    return (
        bool(letter) and unicodedata.east_asian_width(letter) in "WF" and not "\uac00" <= letter <= "\ud7a3"
    )


class _Line(NamedTuple):
    """Words on one baseline, from left to right."""

    words: list[int]
    top: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


_Span = tuple[float, float]
# Indices of words by column.
_Row = dict[int, list[int]]


def find_tables(words: Sequence[Word], rules: Sequence[Box]) -> list[Table]:
    """The tables of a page, ruled ones first. No word is in two tables."""
    if len(words) > _MOST_WORDS:
        return []
    level = [index for index, word in enumerate(words) if word.level]
    free = set(level)
    found = list(_ruled(words, free, rules)) if len(rules) <= _MOST_RULES else []
    loose = [index for index in level if index in free]
    across = [rule for rule in rules[:_MOST_RULES] if rule.right - rule.left > rule.bottom - rule.top]
    found += _aligned(words, _lines(words, loose), _merged(across, upright=False))
    return found


def _lines(words: Sequence[Word], indices: Iterable[int]) -> list[_Line]:
    """`indices` by line, from top to bottom."""
    lines: list[_Line] = []
    placed: list[tuple[float, int, int, float, float, float]] = []
    for position, index in enumerate(indices):
        left, top, _, bottom = words[index].box
        placed.append(((top + bottom) / 2, position, index, top, bottom, left))
    placed.sort()
    last_middle = last_height = 0.0
    left_edges: dict[int, float] = {}
    for middle, _, index, top, bottom, left in placed:
        left_edges[index] = left
        if lines and abs(middle - last_middle) < 0.4 * min(bottom - top, last_height):
            lines[-1].words.append(index)
        else:
            lines.append(_Line([index], top, bottom))
            last_middle, last_height = middle, bottom - top
    for line in lines:
        line.words.sort(key=left_edges.__getitem__)
    return lines


# ---- ruled tables


def _mixes(table: Table) -> bool:
    """Whether cells of the table take words from here and there in the file's order."""
    cells = [cell for row in table.rows for cell in row if len(cell) > 1]
    turns = sum(any(after < before for before, after in pairwise(cell)) for cell in cells)
    return turns > _MIXED * len(cells)


def _ruled(words: Sequence[Word], free: set[int], rules: Sequence[Box]) -> Iterable[Table]:
    """The tables of words in `free`, from which they are taken."""
    across = _merged(
        [rule for rule in rules if rule.right - rule.left > rule.bottom - rule.top], upright=False
    )
    down = _merged([rule for rule in rules if rule.bottom - rule.top >= rule.right - rule.left], upright=True)
    if len(across) * len(down) > _MOST_RULES * 50:
        return
    # Larger tables first: a cell may contain a box.
    for grid in sorted(_grids(across, down), key=lambda grid: -len(grid.across) - len(grid.down)):
        inside = sorted(index for index in free if grid.holds(words[index].box))
        table = grid.table(words, inside)
        if table and _mixes(table):
            free.difference_update(inside)  # boxes: PDFium has them one by one
        elif table:
            free.difference_update(inside)
            yield table


def _merged(rules: list[Box], *, upright: bool) -> list[Box]:
    """Rules that continue each other, as one; `upright` ones or those across."""

    def at(rule: Box) -> float:
        return rule.centre if upright else rule.middle

    def span(rule: Box) -> _Span:
        return (rule.top, rule.bottom) if upright else (rule.left, rule.right)

    groups: list[list[Box]] = []
    for rule in sorted(rules, key=at):
        if groups and at(rule) - at(groups[-1][-1]) < _SAME:
            groups[-1].append(rule)
        else:
            groups.append([rule])
    merged: list[Box] = []
    for group in groups:
        place = sum(at(rule) for rule in group) / len(group)
        spans: list[list[float]] = []
        for start, end in sorted(span(rule) for rule in group):
            if spans and start <= spans[-1][1] + _SAME:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([start, end])
        for start, end in spans:
            if end - start > 2 * _SAME:
                merged.append(Box(place, start, place, end) if upright else Box(start, place, end, place))
    return merged


class _Grid:
    """Rules that touch each other."""

    def __init__(self, across: list[Box], down: list[Box]) -> None:
        self.across, self.down = across, down
        self.xs = _distinct([rule.left for rule in down] + [end for rule in across for end in rule[::2]])
        self.ys = _distinct([rule.top for rule in across] + [end for rule in down for end in rule[1::2]])

    def holds(self, box: Box) -> bool:
        return self.xs[0] < box.centre < self.xs[-1] and self.ys[0] < box.middle < self.ys[-1]

    def _is_regular(self) -> bool:
        """Whether most rules go through the whole grid, unlike those of a drawing."""
        width, height = self.xs[-1] - self.xs[0], self.ys[-1] - self.ys[0]
        down = sum(rule.bottom - rule.top for rule in self.down if self._is_inside(rule.left, self.xs))
        across = sum(rule.right - rule.left for rule in self.across if self._is_inside(rule.top, self.ys))
        whole = (len(self.xs) - 2) * height + (len(self.ys) - 2) * width
        return down + across >= _REGULAR * whole

    @staticmethod
    def _is_inside(place: float, places: list[float]) -> bool:
        return places[0] + _SAME < place < places[-1] - _SAME

    def table(self, words: Sequence[Word], inside: list[int]) -> Table | None:
        """The words `inside` as a table; None if the grid is a box or a drawing."""
        rows, columns = len(self.ys) - 1, len(self.xs) - 1
        if len(inside) < 2 or not self._is_regular():
            return None
        bands: list[_Row] = [defaultdict(list) for _ in range(rows)]
        height = median(words[index].box.bottom - words[index].box.top for index in inside)
        for index in inside:
            box = words[index].box
            column = bisect_right(self.xs, box.centre) - 1
            row = bisect_right(self.ys, box.middle) - 1
            while column and not _crossed(self.down, self.xs[column], box.middle, upright=True):
                column -= 1
            x = min(box.centre, self.xs[column + 1] - _SAME)
            while row and not _crossed(self.across, self.ys[row], x, upright=False):
                row -= 1
            bands[_after_strips(self.ys, row, height)][_after_strips(self.xs, column, height)].append(index)
        found = [row for band in bands for row in _band_rows(words, band, ruled=True)]
        used = {column for row in found for column in row}
        if len(found) < 2 or len(used) < 2 or sum(map(len, found)) < rows * columns / 4:
            return None
        return _table(words, found, sorted(used))


def _grids(across: list[Box], down: list[Box]) -> list[_Grid]:
    """Groups of rules that touch, each with one rule between columns or more."""
    owner = list(range(len(across) + len(down)))

    def root(index: int) -> int:
        while owner[index] != index:
            owner[index] = owner[owner[index]]
            index = owner[index]
        return index

    for number, rule in enumerate(across):
        for other, upright in enumerate(down, len(across)):
            meets_x = rule.left - _SAME <= upright.left <= rule.right + _SAME
            if meets_x and upright.top - _SAME <= rule.top <= upright.bottom + _SAME:
                owner[root(number)] = root(other)
    groups: dict[int, tuple[list[Box], list[Box]]] = defaultdict(lambda: ([], []))
    for number, rule in enumerate((*across, *down)):
        groups[root(number)][number >= len(across)].append(rule)
    grids = (_Grid(*group) for group in groups.values() if all(group))
    return [grid for grid in grids if len(grid.xs) > 2 and len(grid.ys) > 1]


def _distinct(places: list[float]) -> list[float]:
    found: list[float] = []
    for place in sorted(places):
        if not found or place - found[-1] >= _SAME:
            found.append(place)
    return found


def _after_strips(places: list[float], at: int, height: float) -> int:
    """The row or column `at`, or the next one where two rules that belong together leave a strip.

    `height` is that of a line, for which a strip has no room.
    """
    while at + 2 < len(places) and places[at + 1] - places[at] < _STRIP * height:
        at += 1
    return at


def _crossed(rules: list[Box], place: float, at: float, *, upright: bool) -> bool:
    """Whether one of `rules` at `place` passes `at`."""
    if upright:
        return any(abs(rule.left - place) < _SAME and rule.top - 1 <= at <= rule.bottom + 1 for rule in rules)
    return any(abs(rule.top - place) < _SAME and rule.left - 1 <= at <= rule.right + 1 for rule in rules)


def _band_rows(words: Sequence[Word], band: _Row, *, ruled: bool) -> list[_Row]:
    """The rows between two rules: one per line, with the lines of cells that wrap put together.

    `ruled` if there is a rule between rows, so that several rows between two rules each have several cells.
    """
    if not band:
        return []
    lines = _lines(words, (index for cell in band.values() for index in cell))
    column_of = {index: column for column, cell in band.items() for index in cell}
    rows: list[_Row] = []
    for line in lines:
        row: _Row = defaultdict(list)
        for index in sorted(line.words):
            row[column_of[index]].append(index)
        rows.append(dict(row))
    rows = _joined(rows, lines, ruled=ruled)
    if ruled and sum(len(row) > 1 for row in rows) < 2:
        return [{column: sorted(cell) for column, cell in band.items()}]
    return rows


def _table(words: Sequence[Word], rows: list[_Row], columns: list[int]) -> Table:
    """`columns` from left to right, or from the right if most words are read so."""
    columns = _directed(words, rows, columns)
    return Table([[row.get(column, []) for column in columns] for row in rows])


def _directed(words: Sequence[Word], rows: list[_Row], columns: list[int]) -> list[int]:
    """`columns` in the order of reading."""
    inside = [index for row in rows for cell in row.values() for index in cell]
    lettered = [words[index] for index in inside if any(letter.isalpha() for letter in words[index].text)]
    return columns[::-1] if sum(word.right_to_left for word in lettered) * 2 > len(lettered) else columns


# ---- tables without rules


def _aligned(words: Sequence[Word], lines: list[_Line], across: list[Box]) -> list[Table]:
    """Tables whose columns have a gap between them over `_FEWEST_ROWS` lines or more."""
    segments = [
        [(words[piece[0]].box.left, max(words[index].box.right for index in piece)) for piece in pieces]
        for pieces in (_pieces(words, line) for line in lines)
    ]
    tables: list[Table] = []
    start = work = 0
    while start < len(lines) and work < _MOST_WORK:
        end, gaps = _longest(lines, segments, start)
        work += sum(map(len, segments[start:end])) ** 2
        table = _of_gaps(words, lines[start:end], gaps, across) if gaps else None
        if table:
            tables.append(table)
        # Text set in columns may have a table below it.
        start = end if table else start + max(1, (end - start) // 2)
    return tables


def _longest(lines: list[_Line], segments: list[list[_Span]], start: int) -> tuple[int, list[_Span]]:
    """The end of the table that begins with line `start`, and the gaps between its columns, if any."""
    if len(segments[start]) < 2:
        return start + 1, []
    best_end, best_gaps = start + 1, list[_Span]()
    full, left = 0, segments[start][0][0]
    pitches: list[float] = []
    for end in range(start, len(lines)):
        line, height = lines[end], lines[end].bottom - lines[end].top
        pitch = line.middle - lines[end - 1].middle if end > start else 0.0
        usual = median(pitches) if pitches else pitch
        left = min(left, segments[end][0][0])
        caption = any(len(each) == 1 and each[0][0] < left + height for each in segments[end - 1 : end + 1])
        if pitch > _FAR * height or (caption and pitch > _APART * usual):
            break
        if end > start:
            pitches.append(pitch)
        full += len(segments[end]) > 1
        if full < _FEWEST_ROWS:
            if full == 0 or end - start > 2 * _FEWEST_ROWS:
                break
            continue
        if not best_gaps or any(_touches(span, gap) for span in segments[end] for gap in best_gaps):
            gaps = _gaps(segments[start : end + 1], _GAP * height)
            if len(gaps) < max(1, len(best_gaps)):
                break
            best_gaps = gaps
        # A single piece of text in the first column may be what follows the table.
        if len(segments[end]) > 1 or _in_later_column(segments[end][0], best_gaps):
            best_end = end + 1
    return best_end, _gaps(segments[start:best_end], _GAP * (lines[start].bottom - lines[start].top))


def _column(x: float, gaps: list[_Span]) -> int:
    """The column that `x` is in, from 0."""
    return sum(x > (left + right) / 2 for left, right in gaps)


def _in_later_column(span: _Span, gaps: list[_Span]) -> bool:
    """Whether text at `span` is in one column, and that is not the first."""
    return span[0] > gaps[0][0] and not any(_touches(span, gap) for gap in gaps)


def _touches(one: _Span, other: _Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _gaps(rows: list[list[_Span]], narrowest: float) -> list[_Span]:
    """Gaps that no text is in, except text that spans columns, with text on both sides in enough lines."""
    full = [row for row in rows if len(row) > 1]
    spans = sorted(span for row in rows for span in row if not _spans_columns(span, full))
    gaps: list[_Span] = []
    reached = spans[0][1] if spans else 0.0
    for left, right in spans[1:]:
        if left - reached >= narrowest:
            gaps.append((reached, left))
        reached = max(reached, right)
    return [
        (left, right)
        for left, right in gaps
        if sum(row[0][0] < left and row[-1][1] > right for row in full) >= _FEWEST_ROWS
    ]


def _spans_columns(span: _Span, full: list[list[_Span]]) -> bool:
    """Whether most lines have two pieces of text or more above or below `span`."""
    left, right = span
    fewest = max(_FEWEST_ROWS, len(full) // 2 + 1)
    spare = len(full) - fewest
    for row in full:
        # Pieces of a line are from left to right, and apart: the first two that `span` may touch decide.
        for (_, end), (begin, _) in pairwise(row):
            if end > left:
                spare -= begin >= right
                break
        else:
            spare -= 1
        if spare < 0:
            return False
    return True


def _of_gaps(words: Sequence[Word], lines: list[_Line], gaps: list[_Span], across: list[Box]) -> Table | None:
    """The table of `lines` with `gaps` between its columns; None if it is a list, or text set in columns."""
    left, right = gaps[0][0], gaps[-1][1]
    ys = sorted(rule.top for rule in across if rule.left < left and rule.right > right)
    bands: dict[int, _Row] = defaultdict(lambda: defaultdict(list))
    rows: list[_Row] = []
    for line in lines:
        row: _Row = defaultdict(list)
        for piece in _pieces(words, line):
            # One that spans columns is in its first.
            row[_column(words[piece[0]].box.left, gaps)] += piece
        rows.append(row)
        for column, cell in row.items():
            bands[bisect_right(ys, line.middle)][column] += cell
    columns = sorted({column for row in rows for column in row})
    if sum(map(len, rows)) < _FILLED * len(rows) * len(columns):
        return None
    if _is_prose(words, rows, columns):
        return _by_column(words, rows, columns)
    if _is_list(words, rows, columns):
        return None
    ruled = len(bands) >= _FEWEST_ROWS
    found = [row for _, band in sorted(bands.items()) for row in _band_rows(words, band, ruled=ruled)]
    table = _table(words, found, columns) if len(found) > 1 else None
    return None if table and _mixes(table) else table


def _by_column(words: Sequence[Word], rows: list[_Row], columns: list[int]) -> Table | None:
    """Text set in columns that the file has row by row, one column after the other; None if it has columns.

    Its sentences must go on from line to line in a column, rather than from column to column.
    """
    inside = sorted(index for row in rows for cell in row.values() for index in cell)
    if inside[-1] - inside[0] + 1 > len(inside) or _by_columns(rows) or _drawn_before(rows):
        return None
    down = _continuations(words, rows)
    across = sum(
        _goes_on(words, row[left], row[right]) for row in rows for left, right in pairwise(sorted(row))
    )
    if down <= across:
        return None
    return Table(
        [[row[column]] for column in _directed(words, rows, columns) for row in rows if row.get(column)]
    )


def _continuations(words: Sequence[Word], rows: list[_Row]) -> int:
    """How many lines of columns go on in the line below."""
    last: _Row = {}
    count = 0
    for row in rows:
        count += sum(_goes_on(words, last[column], cell) for column, cell in row.items() if column in last)
        last |= row
    return count


def _goes_on(words: Sequence[Word], before: list[int], after: list[int]) -> bool:
    """Whether the words `after` seem to go on with the sentence of `before`."""
    first = words[after[0]].text[0]
    return words[before[-1]].text[-1] not in ".!?:;。！？" and first.isalpha() and not first.isupper()


def _pieces(words: Sequence[Word], line: _Line) -> list[list[int]]:
    """The words of a line, apart where there is a wide gap."""
    widest = _GAP * (line.bottom - line.top)
    pieces: list[list[int]] = []
    reached = float("-inf")
    for index in line.words:
        left, _, right, _ = words[index].box
        if left - reached < widest:
            pieces[-1].append(index)
        else:
            pieces.append([index])
        reached = right if right > reached else reached
    return pieces


def _is_prose(words: Sequence[Word], rows: list[_Row], columns: list[int]) -> bool:
    """Whether the columns hold running text.

    Either lines fill two of them, or pieces of lines have several words each and the file has one column
    after the other, or other text between them.
    """
    inside = [index for row in rows for cell in row.values() for index in cell]
    apart = max(inside) - min(inside) + 1 > _CONTIGUOUS * len(inside)
    if (apart or _by_columns(rows)) and len(inside) > _COLUMN_WORDS * sum(map(len, rows)):
        return True
    prose = 0
    for column in columns:
        lines = [row[column] for row in rows if row.get(column)]
        widths = [
            max(words[index].box.right for index in line) - min(words[index].box.left for index in line)
            for line in lines
        ]
        filled = sum(width > _PROSE_WIDTH * max(widths) for width in widths)
        long = sum(len(line) for line in lines) >= _PROSE_WORDS * len(lines)
        prose += long and filled >= _PROSE_WIDTH * len(lines)
    return prose > 1


def _is_list(words: Sequence[Word], rows: list[_Row], columns: list[int]) -> bool:
    """Whether the first of two columns has only the marks or numbers of items, or lines lead to page numbers
    by dots.
    """
    leaders = sum(
        any("...." in words[index].text for cell in row.values() for index in cell)
        or sum(words[index].text == "." for cell in row.values() for index in cell) > 3
        for row in rows
    )
    if leaders * 2 > len(rows):
        return True
    marks = ["".join(words[index].text for index in row[0]) for row in rows if row.get(0)]
    return len(columns) == 2 and all(
        mark in _LIST_MARKS or (len(mark) <= 5 and mark[-1:] in ".)" and mark.strip("().").isalnum())
        for mark in marks
    )


def _joined(rows: list[_Row], lines: list[_Line], *, ruled: bool) -> list[_Row]:
    """Rows with the lines of cells that wrap put together.

    A line continues the row above if some of its words are drawn before others of that row, or if it has text
    in one later column only and is closer to the line above than rows usually are.
    """

    def pitch(at: int) -> float:
        return lines[at].middle - lines[at - 1].middle

    numbers = range(1, len(rows))
    # Between two rules, each line may continue the first.
    drawn = set[int]() if _by_columns(rows) and not ruled else _drawn_before(rows)
    usual = median([pitch(at) for at in numbers if len(rows[at]) > 1 and len(rows[at - 1]) > 1] or [0.0])
    close = {at for at in numbers if len(rows[at]) == 1 and 0 not in rows[at] and pitch(at) < 0.85 * usual}
    joined = [dict(rows[0])]
    for at in numbers:
        if at in drawn | close:
            for column, cell in rows[at].items():
                joined[-1][column] = [*joined[-1].get(column, []), *cell]
        else:
            joined.append(dict(rows[at]))
    return joined


def _drawn_before(rows: list[_Row]) -> set[int]:
    """Lines with words that the file has before others of the row above."""
    found: set[int] = set()
    reached = max(map(max, rows[0].values()))
    for at in range(1, len(rows)):
        if min(map(min, rows[at].values())) < reached:
            found.add(at)
        reached = max(reached if at in found else 0, max(map(max, rows[at].values())))
    return found


def _by_columns(rows: list[_Row]) -> bool:
    """Whether the file has one column after the other."""
    return len(_drawn_before(rows)) > 0.9 * (len(rows) - 1)
