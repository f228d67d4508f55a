"""Paints one block of a document: its tint and bar where it is read, then its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QTextLayout, QTextLine

from app.controls.shapes import blend, draw_found
from app.panels.document.blocks import BlockPart, TextBlock
from app.panels.document.measures import DocumentMeasures
from app.theme.theme import Theme

LEFT_PX, RIGHT_PX = 2, 16
TEXT_LEFT_PX, TEXT_RIGHT_PX = 11, 10
_BAR_PX = 2
_RADIUS_PX = 6.0


class BlockPainter:
    """For blocks in a column `width` wide; `current` is the stretch that was jumped to, or −1."""

    def __init__(self, theme: Theme, measures: DocumentMeasures, width: int, current: int) -> None:
        self._theme = theme
        self._measures = measures
        self._right = width - RIGHT_PX
        self._current = current

    def paint(
        self,
        painter: QPainter,
        block: TextBlock,
        layout: QTextLayout,
        parts: Sequence[BlockPart] | None,
        y: float,
        height: float,
    ) -> None:
        """At `y`, with all room around it `height` high. `parts` are read; None: nothing is marked."""
        above = self._measures.pads(block)[0]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = units(layout.text())
        for part in parts or ():
            tint = self._theme.color("accent_tint")
            if part.stretch == self._current:
                tint = blend(self._theme.color("accent_mid"), tint, 0.35)
            painter.setPen(Qt.PenStyle.NoPen)
            if part.first == 0 and part.last == whole:
                inside = QRectF(LEFT_PX, y, self._right - LEFT_PX, height - self._measures.gap(block))
                if block.heading:
                    inside.setTop(y + above - 3)
                painter.fillPath(_right_rounded(inside, block.opens, block.closes), tint)
                self._paint_bar(painter, inside.top(), inside.height())
            else:
                self._paint_lines(painter, layout, part, y + above, tint)
        dim = parts is not None and not block.heading
        painter.setPen(self._theme.color("dim" if dim else "text"))
        layout.draw(painter, QPointF(LEFT_PX + TEXT_LEFT_PX, y + above))

    def paint_found(
        self,
        painter: QPainter,
        block: TextBlock,
        layout: QTextLayout,
        parts: Sequence[BlockPart],
        y: float,
        at: int,
    ) -> None:
        """A light film over words that were looked for; match `at` is looked at."""
        accent = self._theme.color("accent")
        for part in parts:
            for row in self._rows(layout, part, y + self._measures.pads(block)[0]):
                draw_found(painter, row, accent, part.stretch == at)

    def paint_place(
        self,
        painter: QPainter,
        layout: QTextLayout,
        parts: Sequence[BlockPart],
        y: float,
        block: TextBlock,
        *,
        strong: bool,
    ) -> None:
        """A film and a line under the words that a source points at."""
        accent = self._theme.color("accent")
        for part in parts:
            for row in self._rows(layout, part, y + self._measures.pads(block)[0]):
                draw_found(painter, row, accent, strong)
                painter.fillRect(QRectF(row.left(), row.bottom() - 1.5, row.width(), 1.5), accent)

    def _paint_lines(
        self, painter: QPainter, layout: QTextLayout, part: BlockPart, y: float, tint: QColor
    ) -> None:
        """The tint behind some of a block's characters, and the bar beside their lines."""
        for row in self._rows(layout, part, y):
            painter.setBrush(tint)
            painter.drawRoundedRect(row.adjusted(-2, 0, 2, 0), 3, 3)
            self._paint_bar(painter, row.top(), row.height())

    def _rows(self, layout: QTextLayout, part: BlockPart, y: float) -> Iterator[QRectF]:
        """Where the characters of `part` stand, line by line, as high as a line."""
        line_px = self._measures.line_px
        for index in range(layout.lineCount()):
            line = layout.lineAt(index)
            first = max(part.first, line.textStart())
            last = min(part.last, line.textStart() + line.textLength())
            if first >= last:
                continue
            begin, end = _x(line, first), _x(line, last)
            # A line's own box begins somewhat below the row it stands in.
            lead = (line_px - line.height()) / 2
            yield QRectF(LEFT_PX + TEXT_LEFT_PX + begin, y + line.y() - lead, end - begin, line_px)

    def _paint_bar(self, painter: QPainter, top: float, height: float) -> None:
        painter.fillRect(QRectF(LEFT_PX, top, _BAR_PX, height), self._theme.color("accent"))


def units(text: str) -> int:
    """The length of `text` as Qt counts: what lies beyond 16 bits is two characters to it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _x(line: QTextLine, position: int) -> float:
    return cast(tuple[float, int], line.cursorToX(position))[0]


def _right_rounded(box: QRectF, above: bool, below: bool) -> QPainterPath:
    """Round at the right, where a paragraph begins and ends."""
    path = QPainterPath()
    path.addRoundedRect(box, _RADIUS_PX, _RADIUS_PX)
    square = QPainterPath()
    half = box.height() / 2
    square.addRect(box.adjusted(0, 0, -_RADIUS_PX, 0))
    if not above:
        square.addRect(box.adjusted(0, 0, 0, -half))
    if not below:
        square.addRect(box.adjusted(0, half, 0, 0))
    return path.united(square)
