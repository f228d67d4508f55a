"""Words as they are painted: a window is painted without them, and each is noted with where it would stand.

Whatever a widget paints itself is noted; texts that Qt paints (fields) are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from PySide6.QtCore import QPointF, QRect, QRectF
from PySide6.QtGui import QColor, QFont, QPainter, QTextLayout
from PySide6.QtWidgets import QWidget


@dataclass(frozen=True)
class Word:
    """What stands on one line in one colour. `area` is in the coordinates of what is grabbed."""

    text: str
    color: QColor
    font: QFont
    area: QRectF
    widget: QWidget | None

    @property
    def enabled(self) -> bool:
        """Whether what it is written on can be used."""
        return self.widget is None or self.widget.isEnabled()


def _x(found: Any) -> float:
    return float(found[0] if isinstance(found, tuple) else found)


@contextmanager
def noted_words() -> Iterator[list[Word]]:
    """Words are not painted but noted, while this lasts."""
    noted: list[Word] = []
    draw_text, draw_layout = QPainter.drawText, QTextLayout.draw

    def note(painter: QPainter, what: str, color: QColor, font: QFont, area: QRectF) -> None:
        device = painter.device()
        on = device if isinstance(device, QWidget) else None
        noted.append(Word(what, QColor(color), QFont(font), painter.deviceTransform().mapRect(area), on))

    def text(painter: QPainter, *given: Any) -> None:
        what = next(each for each in reversed(given) if isinstance(each, str))
        metrics = painter.fontMetrics()
        if isinstance(given[0], QRectF | QRect):
            flags = next((int(each) if isinstance(each, int) else each.value for each in given[1:-1]), 0)
            area = QRectF(painter.boundingRect(QRectF(given[0]).toAlignedRect(), flags, what))
        else:
            at = QPointF(given[0])
            area = QRectF(
                at.x(), at.y() - metrics.ascent(), metrics.horizontalAdvance(what), metrics.height()
            )
        note(painter, what, painter.pen().color(), painter.font(), area)

    def layout(self: QTextLayout, painter: QPainter, at: QPointF, *more: Any) -> None:
        for number in range(self.lineCount()):
            line = self.lineAt(number)
            area = line.naturalTextRect().translated(QPointF(at))
            begin, end = line.textStart(), line.textStart() + line.textLength()
            color_at = dict.fromkeys(range(begin, end), painter.pen().color().name())
            for part in self.formats():
                if part.format.foreground().style():
                    for place in range(max(begin, part.start), min(end, part.start + part.length)):
                        color_at[place] = part.format.foreground().color().name()
            clip = painter.clipPath() if painter.hasClipping() else None
            for place in range(begin, end):
                if clip is None:
                    break
                middle = (_x(line.cursorToX(place)) + _x(line.cursorToX(place + 1))) / 2
                if not clip.contains(QPointF(at.x() + middle, area.center().y())):
                    color_at[place] = ""  # nothing is drawn
            for color, places in groupby(range(begin, end), key=color_at.__getitem__):
                run = list(places)
                if not color:
                    continue
                left, right = (_x(line.cursorToX(place)) for place in (run[0], run[-1] + 1))
                box = QRectF(at.x() + min(left, right), area.top(), abs(right - left), area.height())
                note(painter, self.text()[run[0] : run[-1] + 1], QColor(color), self.font(), box)

    QPainter.drawText = text  # type: ignore[method-assign,assignment]
    QTextLayout.draw = layout  # type: ignore[method-assign,assignment]
    try:
        yield noted
    finally:
        QPainter.drawText = draw_text  # type: ignore[method-assign]
        QTextLayout.draw = draw_layout  # type: ignore[method-assign]
