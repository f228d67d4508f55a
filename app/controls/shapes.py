"""Shapes that several controls share: filled and framed rounded boxes, and their text.

A 1 px frame is drawn inside the given rectangle, so a control is exactly as large as designed.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from app.controls.elided import report_elided

_FOUND_ALPHA = 64


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
) -> None:
    """Draws one line of `text`, vertically centred, elided if it does not fit."""
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    painter.setPen(color)
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width() + 0.5)
    if shown != text:
        report_elided(painter, rect, text)
    painter.drawText(rect, int(align | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), shown)


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
