"""A line of text with marked spans, as lists of search results show it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.controls.shapes import is_rtl, report_elided

_WIDEST = 1e6


def draw_passage(
    painter: QPainter,
    rect: QRectF,
    text: str,
    font: QFont,
    color: QColor,
    marks: Sequence[tuple[int, int]],
    marked: QTextCharFormat,
) -> None:
    """Draws `text` on one line, its end-exclusive spans `marks` in the format `marked`.

    The base direction is that of the text. A line that is too wide ends with an ellipsis, and is reported for
    its tooltip.
    """
    from_right = bool(is_rtl(text))
    ellipsis = QFontMetricsF(font).horizontalAdvance("…")
    shown = text
    layout, line = _laid_out(shown, font, marks, marked, from_right)
    # A cut may move text of the other direction, so that the line is measured again.
    while line.naturalTextWidth() > rect.width() and len(shown) > 1:
        excess = line.naturalTextWidth() - rect.width() + ellipsis
        cut = line.xToCursor(excess if from_right else line.naturalTextWidth() - excess)
        shown = text[: max(0, min(cut, len(shown) - 2))].rstrip() + "…"
        layout, line = _laid_out(shown, font, marks, marked, from_right)
    if shown != text:
        report_elided(painter, rect, text)
    left = rect.right() - line.naturalTextWidth() if from_right else rect.left()
    painter.save()
    painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
    painter.setPen(color)
    layout.draw(painter, QPointF(left, rect.center().y() - line.height() / 2))
    painter.restore()


def _laid_out(
    text: str, font: QFont, marks: Sequence[tuple[int, int]], marked: QTextCharFormat, from_right: bool
) -> tuple[QTextLayout, QTextLine]:
    """`text` on one line that is as wide as the text."""
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    option.setTextDirection(Qt.LayoutDirection.RightToLeft if from_right else Qt.LayoutDirection.LeftToRight)
    layout.setTextOption(option)
    formats = []
    for start, end in marks:
        each = QTextLayout.FormatRange()
        each.start, each.length, each.format = start, min(end, len(text)) - start, marked
        if each.length > 0:
            formats.append(each)
    layout.setFormats(formats)
    layout.beginLayout()
    line = layout.createLine()
    line.setLineWidth(_WIDEST)
    line.setLineWidth(line.naturalTextWidth())
    layout.endLayout()
    return layout, line
