"""Zoom: how much larger than designed everything is, and lengths and shapes at that size.

All measures in the code are the visual design's, in design pixels. What a layout or a parent is
told is in screen pixels: `px()`. What a widget paints is in design pixels still: `painter_on()`
gives a painter that enlarges, and `width_of()`, `height_of()` and `area_of()` say how large the
widget is for it. The zoom is the application's, as its font is; `Theme` sets it. At 1 nothing
differs. Texts that are laid out piece by piece (`app/richtext`) enlarge their own measures.
"""

from __future__ import annotations

import math
from typing import overload

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

_now = 1.0


def zoom() -> float:
    """How much larger than designed; 1 is as designed."""
    return _now


def set_zoom(factor: float) -> None:
    """For `Theme`, which has all widgets measured anew."""
    global _now
    _now = factor


@overload
def px(length: int) -> int: ...
@overload
def px(length: float) -> float: ...
def px(length: float) -> float:
    """A design length in screen pixels. Whole ones stay whole."""
    return round(length * _now) if isinstance(length, int) else length * _now


def design_px(length: float) -> float:
    """A screen length in design pixels."""
    return length / _now


def px_size(size: QSize) -> QSize:
    """A design size in screen pixels, rounded up: what was measured for a text holds it still."""
    return QSize(math.ceil(size.width() * _now - 0.01), math.ceil(size.height() * _now - 0.01))


def design_size(size: QSize) -> QSizeF:
    """A size in screen pixels in design pixels."""
    return QSizeF(size) / _now


def px_rect(rect: QRectF) -> QRectF:
    """A design rectangle in screen pixels."""
    return QRectF(rect.x() * _now, rect.y() * _now, rect.width() * _now, rect.height() * _now)


def design_rect(rect: QRectF) -> QRectF:
    """A rectangle in screen pixels in design pixels."""
    return QRectF(rect.x() / _now, rect.y() / _now, rect.width() / _now, rect.height() / _now)


def design_point(point: QPointF) -> QPointF:
    """Where something is that is at `point` on the screen, in design pixels."""
    return point / _now


def width_of(widget: QWidget) -> float:
    """In design pixels."""
    return widget.width() / _now


def height_of(widget: QWidget) -> float:
    """In design pixels."""
    return widget.height() / _now


def area_of(widget: QWidget) -> QRectF:
    """All of a widget, in design pixels."""
    return QRectF(0, 0, widget.width() / _now, widget.height() / _now)


def ratio_of(widget: QWidget) -> float:
    """Screen dots in a design pixel, for pixmaps that are made for a widget."""
    return widget.devicePixelRatioF() * _now


def painter_on(widget: QWidget) -> QPainter:
    """A painter on `widget` that takes design pixels."""
    painter = QPainter(widget)
    if _now != 1.0:
        painter.scale(_now, _now)
    return painter


def place(widget: QWidget, x: float, y: float, width: float, height: float) -> None:
    """Put a child where it is to be, in design pixels."""
    left, top = round(x * _now), round(y * _now)
    widget.setGeometry(left, top, round((x + width) * _now) - left, round((y + height) * _now) - top)
