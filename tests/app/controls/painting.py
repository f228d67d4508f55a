"""Looking at what is painted: single pixels, and who was asked to repaint."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QWidget


def pixel(widget: QWidget, x: int, y: int) -> QColor:
    """The colour painted at a place, on a device of ordinary density."""
    return widget.grab().toImage().pixelColor(QPoint(x, y))


def colors(widget: QWidget) -> set[str]:
    """All colours painted, as "#rrggbb"."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return {f"#{each & 0xFFFFFF:06x}" for each in set(memoryview(image.constBits()).cast("I").tolist())}


class PaintCounter(QObject):
    """Counts a widget's paint events."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint
        return False
