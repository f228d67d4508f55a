"""Tooltips with the full text of elided cells.

A table paints its cells with `draw_text`, which elides. When the pointer rests on a row, the row is
painted once more onto a discarded image, and `draw_text` reports each text that it elides and where.
So no table repeats its layout for its tooltips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QPointF, QRectF
from PySide6.QtGui import QHelpEvent, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.theme.zoom import painter_on, zoom

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
        QToolTip.showText(event.globalPos(), text, widget)
    else:
        QToolTip.hideText()
        event.ignore()


class PaintedRow(QWidget):
    """Base of a widget that paints its texts: the elided text under the pointer precedes its own tooltip."""

    def paint_row(self, painter: QPainter) -> None:
        """Paints everything, with a painter in design pixels."""
        raise NotImplementedError

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        self.paint_row(painter)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            show_tip(event, self, elided_at(self._paint_enlarged, QPointF(event.pos())) or self.toolTip())
            return True
        return super().event(event)

    def _paint_enlarged(self, painter: QPainter) -> None:
        painter.scale(zoom(), zoom())
        self.paint_row(painter)


@contextmanager
def _collected() -> Iterator[list[tuple[QRectF, str]]]:
    global _reports
    reports: list[tuple[QRectF, str]] = []
    _reports = reports
    try:
        yield reports
    finally:
        _reports = None
