"""Shapes and texts that several controls paint, and tooltips for elided texts.

A 1 px frame is drawn inside the given rectangle, so a control is exactly as large as designed.

A table paints its cells with `draw_text`, which elides. When the pointer rests on a row, the row is painted
once more onto a discarded image, and `draw_text` reports the elided texts and their boxes. So no table
repeats its layout for its tooltips.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QHelpEvent, QImage, QPainter, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from app.theme.theme import color

_reports: list[tuple[QRectF, str]] | None = None


def report_elided(painter: QPainter, rect: QRectF, text: str) -> None:
    """Reports that `text` was elided into `rect`."""
    if _reports is not None and rect.width() > 0:
        _reports.append((painter.transform().mapRect(rect), text))


def elided_at(paint: Callable[[QPainter], object], position: QPointF) -> str:
    """Returns the full text that `paint` elides at `position`; empty if there is none."""
    image = QImage(1, 1, QImage.Format.Format_ARGB32_Premultiplied)
    painter = QPainter(image)
    try:
        with _collected() as reports:
            paint(painter)
    finally:
        painter.end()
    return next((text for area, text in reports if area.contains(position)), "")


def show_tip(event: QHelpEvent, widget: QWidget, text: str) -> None:
    """Shows `text` at the pointer, or hides the tooltip if it is empty."""
    if text:
        QToolTip.showText(event.globalPos(), in_own_direction(text), widget)
    else:
        QToolTip.hideText()
        event.ignore()


@contextmanager
def _collected() -> Iterator[list[tuple[QRectF, str]]]:
    global _reports
    reports: list[tuple[QRectF, str]] = []
    _reports = reports
    try:
        yield reports
    finally:
        _reports = None


RING_PX = 3  # of the focus, in screen pixels


def draw_ring(painter: QPainter, rect: QRectF, radius_px: float) -> None:
    half = RING_PX / 2
    painter.setPen(QPen(color("focus"), RING_PX))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.drawRoundedRect(rect.adjusted(half, half, -half, -half), radius_px - half, radius_px - half)


_FOUND_ALPHA = 64
# Scripts that run from right to left, and the marks that make others do so.
RTL_LETTERS = re.compile(
    "[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)


def is_rtl(text: str) -> bool | None:
    """The base direction of `text` by its first letter; None if it has no letter with a direction."""
    if not RTL_LETTERS.search(text):
        return False if any(character.isalpha() for character in text) else None
    classes = map(unicodedata.bidirectional, text)
    return next((found != "L" for found in classes if found in ("L", "R", "AL")), None)


def in_own_direction(text: str) -> str:
    """`text` with each line that has letters from right to left in a Unicode isolate.

    Labels and tooltips of Qt take the window's direction for every line, and an isolate takes its own text's.
    """
    if not RTL_LETTERS.search(text):
        return text
    return "\n".join(f"\u2068{line}\u2069" if RTL_LETTERS.search(line) else line for line in text.split("\n"))


def draw_box(
    painter: QPainter, rect: QRectF, radius_px: float, fill: QColor | None, frame: QColor | None = None
) -> None:
    """Draws a rounded box with an optional 1 px frame, antialiased."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(fill if fill is not None else Qt.BrushStyle.NoBrush)
    if frame is None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawRoundedRect(rect, radius_px, radius_px)
        return
    painter.setPen(QPen(frame, 1.0))
    inner = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    painter.drawRoundedRect(inner, radius_px - 0.5, radius_px - 0.5)


def draw_text(
    painter: QPainter,
    rect: QRectF,
    text: str,
    font: QFont,
    color: QColor,
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignHCenter,
    elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> None:
    """One line of `text`, centred vertically, cut with an ellipsis if it does not fit.

    The base direction is that of the text; a line from right to left ends at the right instead of the left.
    """
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    painter.setPen(color)
    shown = metrics.elidedText(text, elide, rect.width() + 0.5)
    if shown != text:
        report_elided(painter, rect, text)
    flags = align | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
    if not is_rtl(text):
        painter.drawText(rect, int(flags), shown)
        return
    if align & Qt.AlignmentFlag.AlignRight:
        flags |= Qt.AlignmentFlag.AlignAbsolute
    direction = painter.layoutDirection()
    painter.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    painter.drawText(rect, int(flags), shown)
    painter.setLayoutDirection(direction)


def draw_found(painter: QPainter, rect: QRectF, accent: QColor, looked_at: bool) -> None:
    """Draws the ground of a search match; the current match (`looked_at`) has a frame."""
    fill = QColor(accent)
    fill.setAlpha(_FOUND_ALPHA)
    draw_box(painter, rect.adjusted(-1, 2, 1, -2), 3, fill, accent if looked_at else None)


def blend(front: QColor, back: QColor, share: float) -> QColor:
    """Returns `front` at `share` (0 to 1) over an opaque `back`."""
    rest = 1.0 - share
    return QColor(
        round(front.red() * share + back.red() * rest),
        round(front.green() * share + back.green() * rest),
        round(front.blue() * share + back.blue() * rest),
    )
