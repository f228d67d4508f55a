"""Slider: a number within bounds, on a grid of `step`. Track 4, knob 16, 18 high.

A QSlider whose integers are grid points, for the keyboard and assistive technology. A value set by code may
lie between two grid points and is kept exactly until a person moves the knob.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box
from app.theme.theme import Theme
from app.theme.zoom import design_point, height_of, painter_on, px_size, width_of

_HEIGHT_PX = 18
_TRACK_PX = 4
_KNOB_PX = 16


class Slider(QSlider):
    """From `minimum` to `maximum`, both inclusive."""

    value_changed = Signal(float)  # the new value

    def __init__(
        self, theme: Theme, minimum: float, maximum: float, step: float, parent: QWidget | None = None
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        if not (maximum > minimum and step > 0):
            raise ValueError(
                f"A slider needs minimum < maximum and a step, not {minimum}, {maximum}, {step}."
            )
        self._theme = theme
        self._low, self._high, self._step = minimum, maximum, step
        self._exact = minimum
        ticks = max(1, round((maximum - minimum) / step))
        self.setRange(0, ticks)
        self.setSingleStep(1)
        self.setPageStep(max(1, ticks // 10))
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._ring = FocusRing(self, theme, _HEIGHT_PX / 2)
        self.valueChanged.connect(self._take_tick)

    @property
    def value(self) -> float:  # type: ignore[override]  # the number, where QSlider has the grid point
        """The value."""
        return self._exact

    def set_bounds(self, minimum: float, maximum: float, step: float) -> None:
        """Replaces the bounds and clamps the value. Emits nothing."""
        if (minimum, maximum, step) == (self._low, self._high, self._step):
            return
        self._low, self._high, self._step = minimum, maximum, step
        self._exact = min(maximum, max(minimum, self._exact))
        was_blocked = self.blockSignals(True)
        ticks = max(1, round((maximum - minimum) / step))
        self.setRange(0, ticks)
        self.setPageStep(max(1, ticks // 10))
        self.setValue(round((self._exact - minimum) / step))
        self.blockSignals(was_blocked)
        self.update()

    def set_value(self, value: float) -> None:
        """Sets the value, clamped to the bounds."""
        value = min(self._high, max(self._low, value))
        if value == self._exact:
            return
        self._exact = value
        was_blocked = self.blockSignals(True)
        self.setValue(round((value - self._low) / self._step))
        self.blockSignals(was_blocked)
        self.update()
        self.value_changed.emit(value)

    def sizeHint(self) -> QSize:
        return px_size(QSize(120, _HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(48, _HEIGHT_PX))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.setSliderDown(True)
            self._follow(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self._follow(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.setSliderDown(False)
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        middle = height_of(self) / 2
        share = (self._exact - self._low) / (self._high - self._low)
        knob_x = _KNOB_PX / 2 + share * (width_of(self) - _KNOB_PX)
        track = QRectF(0, middle - _TRACK_PX / 2, width_of(self), _TRACK_PX)
        draw_box(painter, track, 2, color("slider_track"))
        track.setWidth(knob_x)
        draw_box(painter, track, 2, color("accent_fill" if self.isEnabled() else "text3"))
        knob = QRectF(knob_x - _KNOB_PX / 2, middle - _KNOB_PX / 2, _KNOB_PX, _KNOB_PX)
        draw_box(painter, knob.translated(0, 0.7), _KNOB_PX / 2, QColor(0, 0, 0, 34))
        fill = QColor(Qt.GlobalColor.white) if self.isEnabled() else color("fill1")
        if self._ring.shown:
            edge = color("accent_mid")
        else:
            edge = QColor(0, 0, 0, 60) if self._theme.is_dark else color("hair2")
        draw_box(painter, knob, _KNOB_PX / 2, fill, edge)

    def _follow(self, event: QMouseEvent) -> None:
        """Moves the knob under the pointer, to the nearest grid point."""
        share = (design_point(event.position()).x() - _KNOB_PX / 2) / max(1.0, width_of(self) - _KNOB_PX)
        self.setValue(round(min(1.0, max(0.0, share)) * self.maximum()))

    def _take_tick(self, tick: int) -> None:
        value = self._high if tick == self.maximum() else round(self._low + tick * self._step, 9)
        if value != self._exact:
            self._exact = value
            self.value_changed.emit(value)
        self.update()
