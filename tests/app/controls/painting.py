"""Looking at what is painted: single pixels, and all colours."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QWidget


def pixel(widget: QWidget, x: int, y: int) -> QColor:
    """The colour painted at a place, on a device of ordinary density."""
    return widget.grab().toImage().pixelColor(QPoint(x, y))


def colors(widget: QWidget) -> set[str]:
    """All colours painted, as "#rrggbb"."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return {f"#{each & 0xFFFFFF:06x}" for each in set(memoryview(image.constBits()).cast("I").tolist())}
