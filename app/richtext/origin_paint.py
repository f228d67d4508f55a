"""Paints the origins of a piece: a thin line in the source's color under words from it, dots under facts
without a source, and a background behind the mark that is pointed at.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.richtext.piece_layout import PieceLayout
from app.richtext.tint_paint import DOT_PX, dot_tile, line_spans
from app.theme.theme import color

RULE_PX = 1.5
# By number of the document; green and sand mean token classes. Then from the first again.
_DOCUMENT_COLORS = ("series_blue", "series_purple", "series_sky")
_OTHER_COLOR = "series_grey"
NOWHERE_COLOR = "series_vermilion"


def source_color(document: int) -> str:
    """Name of the color of a document; −1: of a message or the result of a tool."""
    return _OTHER_COLOR if document < 0 else _DOCUMENT_COLORS[document % len(_DOCUMENT_COLORS)]


class OriginMark(Struct, frozen=True):
    """The visible characters [start, end) have a line in `color`, or dots."""

    start: int
    end: int
    color: str
    dotted: bool = False
    pointed: bool = False


def paint_origins(
    painter: QPainter, layout: PieceLayout, lines: Iterable[int], marks: Iterable[OriginMark], origin: QPointF
) -> None:
    """Paint `marks` on the lines with these numbers. `origin` is the text's left top."""
    painter.save()
    painter.translate(origin)
    marks = list(marks)
    measures = layout.style.tint
    for number in lines:
        line = layout.lines[number]
        for mark in marks:
            if mark.end <= line.start or mark.start >= line.end:
                continue
            top = line.baseline + max(measures.rule, line.reach(mark.start, mark.end)[1] + RULE_PX)
            for left, right in line_spans(layout, line, mark.start, mark.end):
                if mark.pointed:
                    ground = QRectF(left, line.baseline - measures.top, right - left, measures.height)
                    painter.fillRect(ground, color("fill2"))
                if mark.dotted:
                    tile = dot_tile(color(mark.color), painter.deviceTransform().m11())
                    painter.drawTiledPixmap(QRectF(left, top - DOT_PX / 2, right - left, DOT_PX), tile)
                else:
                    rule = QRectF(left, top - RULE_PX / 2, right - left, RULE_PX)
                    painter.fillRect(rule, color(mark.color))
    painter.restore()
