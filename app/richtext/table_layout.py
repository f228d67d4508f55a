"""TableLayout: the cells of a table in columns, with conversions between characters and pixels.

Has the interface of `PieceLayout`. Columns are as wide as their contents if they fit; otherwise words wrap
inside them, but no column is narrower than its longest word: a table may be wider than the text column. A
table whose text starts with a right-to-left letter has its first column at the right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from app.controls.shapes import is_rtl
from app.richtext.markdown.piece import Piece, TableCell
from app.richtext.piece_layout import Chunk, PieceLayout, lay_out, without_code
from app.richtext.text_style import TextStyle

_GAP_PX = 24
_PAD_PX = 6
_ENDLESS_PX = 1e6
_NARROWEST_PX = 40.0
_LONGEST_WORD_PX = 180.0


@dataclass(frozen=True)
class _Cell:
    left: float
    right: float
    first: int  # of its lines
    last: int


@dataclass(frozen=True)
class _Row:
    top: float
    bottom: float
    cells: tuple[_Cell, ...]


class TableLayout(PieceLayout):
    """A table's rows and columns. `rules`: y of the lines between rows, in px from the top of the text."""

    def __init__(self, piece: Piece, style: TextStyle, width: float, link: QColor | None = None) -> None:
        self._piece = piece
        self._rows: list[_Row] = []
        self.rtl = bool(is_rtl(piece.text))
        self.table_width = 0.0  # of all columns together
        super().__init__(piece.text, style, width, piece.styles, link)

    @property
    def height(self) -> float:
        return self._rows[-1].bottom if self._rows else 0.0

    @property
    def full_width(self) -> float:
        return self.table_width

    @property
    def rules(self) -> list[float]:
        return [row.bottom for row in self._rows[:-1]]

    @property
    def table_left(self) -> float:
        """Left edge of the columns: a narrow right-to-left table is aligned to the right."""
        return max(0.0, self._width - self.table_width) if self.rtl else 0.0

    def extend(self, text: str) -> int:
        """Lay the table out; it never grows, because a table is shown once it is whole."""
        self.text = text
        widths = self._widths()
        self.table_width = sum(widths) + _GAP_PX * max(0, len(widths) - 1)
        top = 0.0
        for _, cells in groupby(self._piece.cells, key=lambda cell: cell.row):
            top = self._add_row(list(cells), top, widths)
        return 0

    def line_near(self, x: float, y: float) -> int:
        row = next((row for row in self._rows if y < row.bottom), self._rows[-1])
        cells = row.cells[::-1] if self.rtl else row.cells
        cell = next((cell for cell in cells if x < cell.right + _GAP_PX / 2), cells[-1])
        tops = self.lines[cell.first : cell.last + 1]
        return cell.first + max(0, bisect_right(tops, y, key=lambda line: line.top) - 1)

    def lines_between(self, above: float, below: float) -> range:
        seen = [row for row in self._rows if row.bottom > above and row.top < below and row.cells]
        return range(seen[0].cells[0].first, seen[-1].cells[-1].last + 1) if seen else range(0)

    def draw(
        self,
        painter: QPainter,
        left: float,
        top: float,
        clip: QRectF,
        colours: Sequence[tuple[int, int, QColor]] = (),
    ) -> None:
        for row in self._rows:
            if top + row.bottom < clip.top() or top + row.top > clip.bottom():
                continue
            for cell in row.cells:
                chunk = self.lines[cell.first].chunk
                chunk.layout.draw(painter, QPointF(left, top + chunk.top))
                for line in self.lines[cell.first : cell.last + 1]:
                    self.draw_formulas(painter, line, left, top)

    def _add_row(self, row: Sequence[TableCell], top: float, widths: list[float]) -> float:
        cells: list[_Cell] = []
        tallest = float(self.style.line_px)
        for cell in row:
            left = sum(widths[: cell.column]) + cell.column * _GAP_PX
            width = widths[cell.column]
            if self.rtl:
                left = self.table_left + self.table_width - left - width
            aligns = self._piece.aligns
            align = aligns[cell.column] if cell.column < len(aligns) else "left"
            text = self.text[cell.start : cell.end]
            direction = is_rtl(text)
            rtl = self.rtl if direction is None else direction
            if self.rtl and not rtl and align == "left":
                align = "right"  # a column's cells start at its side, whatever they are written in
            formulas = self._formulas_in(cell.start, len(text))
            chunk = Chunk(cell.start, text, top + _PAD_PX, rtl, formulas)
            lines = lay_out(
                chunk, self.style, width, self._styles_in(chunk), self._link, left=left, align=align
            )
            first = len(self.lines)
            self.lines += lines
            tallest = max(tallest, sum(line.height for line in lines))
            cells.append(_Cell(left, left + width, first, first + len(lines) - 1))
        bottom = top + 2 * _PAD_PX + tallest
        self._rows.append(_Row(top, bottom, tuple(cells)))
        return bottom

    def _widths(self) -> list[float]:
        columns = max((cell.column for cell in self._piece.cells), default=-1) + 1
        natural, least = [0.0] * columns, [_NARROWEST_PX / 2] * columns
        metrics = QFontMetricsF(self.style.font)
        for cell in self._piece.cells:
            text = self.text[cell.start : cell.end]
            formulas = self._formulas_in(cell.start, len(text))
            chunk = Chunk(cell.start, text, 0, formulas=formulas)
            lines = lay_out(chunk, self.style, _ENDLESS_PX, self._styles_in(chunk), self._link)
            widest = max(line.line.naturalTextWidth() for line in lines)
            natural[cell.column] = max(natural[cell.column], widest + 1)
            wide = max((each.shape.size_px(self.style.size_px)[0] for each in formulas), default=0.0)
            text = without_code(text, self._styles, cell.start) if formulas else text
            longest = max((metrics.horizontalAdvance(word) for word in text.split()), default=0.0)
            # Headings are bold, and bold is wider than the metrics say.
            longest = max(wide + 1, min(longest * 1.08 + 1, _LONGEST_WORD_PX))
            least[cell.column] = max(least[cell.column], longest)
        room = self._width - _GAP_PX * max(0, columns - 1)
        return share(max(room, sum(map(min, least, natural))), natural, least)


def share(room: float, natural: Sequence[float], least: Sequence[float]) -> list[float]:
    """Widths that add up to at most `room`: narrow columns get what they want, wide ones share the rest."""
    if sum(natural) <= room:
        return list(natural)
    least = [min(low, wide) for low, wide in zip(least, natural)]
    if sum(least) > room:
        scale = max(room, _NARROWEST_PX) / sum(least)
        return [low * scale for low in least]
    widths = [0.0] * len(natural)
    waiting = set(range(len(natural)))
    while waiting:
        fair = room / len(waiting)
        # First those whose longest word needs more than a share, for they make it smaller.
        fixed = [i for i in waiting if least[i] > fair] or [i for i in waiting if natural[i] <= fair]
        for i in fixed or waiting:
            widths[i] = max(least[i], min(natural[i], fair))
            room -= widths[i]
        waiting -= set(fixed or waiting)
    return widths
