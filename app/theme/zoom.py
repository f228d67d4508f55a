"""Zoom: the enlargement of everything, and lengths and shapes at that size.

All lengths in the code are design pixels. Layouts and parents get screen pixels: `px()`. Painting uses
design pixels: `painter_on()` returns a painter that enlarges, and `width_of()`, `height_of()` and
`area_of()` return the widget's size for it. The zoom belongs to the application, as its font does; `Theme`
sets it. Texts laid out piece by piece (`app/richtext`) enlarge their own lengths.
"""

from __future__ import annotations

import math
from typing import overload

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

_now = 1.0


def zoom() -> float:
    """Returns the zoom; 1 is the design size."""
    return _now


def set_zoom(factor: float) -> None:
    """Sets the zoom. For `Theme`, which applies all measures again."""
    global _now
    _now = factor


@overload
def px(length: int) -> int: ...
@overload
def px(length: float) -> float: ...
def px(length: float) -> float:
    """Returns a design length in screen pixels; integers stay integers."""
    return round(length * _now) if isinstance(length, int) else length * _now


def design_px(length: float) -> float:
    return length / _now


def px_size(size: QSize) -> QSize:
    """Returns a design size in screen pixels, rounded up so that a measured text still fits."""
    return QSize(math.ceil(size.width() * _now - 0.01), math.ceil(size.height() * _now - 0.01))


def design_size(size: QSize) -> QSizeF:
    """Returns a screen size in design pixels."""
    return QSizeF(size) / _now


def px_rect(rect: QRectF) -> QRectF:
    return QRectF(rect.x() * _now, rect.y() * _now, rect.width() * _now, rect.height() * _now)


def design_rect(rect: QRectF) -> QRectF:
    return QRectF(rect.x() / _now, rect.y() / _now, rect.width() / _now, rect.height() / _now)


def design_point(point: QPointF) -> QPointF:
    return point / _now


def width_of(widget: QWidget) -> float:
    """In design pixels."""
    return widget.width() / _now


def height_of(widget: QWidget) -> float:
    """In design pixels."""
    return widget.height() / _now


def area_of(widget: QWidget) -> QRectF:
    """Returns the rectangle of a widget in design pixels."""
    return QRectF(0, 0, widget.width() / _now, widget.height() / _now)


def ratio_of(widget: QWidget) -> float:
    """Returns the screen dots of a design pixel, for pixmaps of a widget."""
    return widget.devicePixelRatioF() * _now


def painter_on(widget: QWidget) -> QPainter:
    """Returns a painter on `widget` in design pixels."""
    painter = QPainter(widget)
    if _now != 1.0:
        painter.scale(_now, _now)
    return painter


def place(widget: QWidget, x: float, y: float, width: float, height: float) -> None:
    """Sets the geometry of a child in design pixels."""
    left, top = round(x * _now), round(y * _now)
    widget.setGeometry(left, top, round((x + width) * _now) - left, round((y + height) * _now) - top)
