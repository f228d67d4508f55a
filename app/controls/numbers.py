"""Numbers within bounds: Slider and Spin. Both ignore the wheel, which scrolls the panel around them."""

from __future__ import annotations

from PySide6.QtCore import QLocale, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSizePolicy, QSlider, QWidget

from app.theme.measures import set_font
from app.theme.zoom import design_point, px_size, width_of

_SLIDER_HEIGHT_PX = 18
_KNOB_PX = 16


class Slider(QSlider):
    """A number on a grid of `step`, from `minimum` to `maximum`, both inclusive. 18 high.

    A QSlider whose integers are grid points, for the keyboard and assistive technology. A value set by code
    may lie between two grid points and is kept exactly until a person moves the knob.
    """

    value_changed = Signal(float)  # the new value

    def __init__(self, minimum: float, maximum: float, step: float, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if not (maximum > minimum and step > 0):
            raise ValueError(
                f"A slider needs minimum < maximum and a step, not {minimum}, {maximum}, {step}."
            )
        self._low, self._high, self._step = minimum, maximum, step
        self._exact = minimum
        self._set_ticks()
        self.setSingleStep(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.valueChanged.connect(self._take_tick)

    @property
    def value(self) -> float:  # type: ignore[override]  # the number, where QSlider has the grid point
        return self._exact

    def set_bounds(self, minimum: float, maximum: float, step: float) -> None:
        """Replaces the bounds and clamps the value. Emits nothing."""
        if (minimum, maximum, step) == (self._low, self._high, self._step):
            return
        self._low, self._high, self._step = minimum, maximum, step
        self._exact = min(maximum, max(minimum, self._exact))
        was_blocked = self.blockSignals(True)
        self._set_ticks()
        self.blockSignals(was_blocked)
        self._move_knob()

    def set_value(self, value: float) -> None:
        value = min(self._high, max(self._low, value))
        if value == self._exact:
            return
        self._exact = value
        self._move_knob()
        self.value_changed.emit(value)

    def sizeHint(self) -> QSize:
        return px_size(QSize(120, _SLIDER_HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(48, _SLIDER_HEIGHT_PX))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.setSliderDown(True)
            self._follow(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self._follow(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.setSliderDown(False)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting

    def _set_ticks(self) -> None:
        ticks = max(1, round((self._high - self._low) / self._step))
        self.setRange(0, ticks)
        self.setPageStep(max(1, ticks // 10))

    def _move_knob(self) -> None:
        """Moves the knob to the grid point next to the value. Emits nothing."""
        was_blocked = self.blockSignals(True)
        self.setValue(round((self._exact - self._low) / self._step))
        self.blockSignals(was_blocked)

    def _follow(self, event: QMouseEvent) -> None:
        """Moves the knob under the pointer, to the nearest grid point."""
        share = (design_point(event.position()).x() - _KNOB_PX / 2) / max(1.0, width_of(self) - _KNOB_PX)
        self.setValue(round(min(1.0, max(0.0, share)) * self.maximum()))

    def _take_tick(self, tick: int) -> None:
        value = self._high if tick == self.maximum() else round(self._low + tick * self._step, 9)
        if value != self._exact:
            self._exact = value
            self.value_changed.emit(value)


class Spin(QDoubleSpinBox):
    """A number field. `decimals` 0 shows integers. Thousands are separated unless
    `set_grouped(False)`.

    A typed number is committed on Return or when the field loses focus; steps (arrow keys, Page Up/Down, the
    small arrows) at once. Bounds are inclusive and enforced while typing.
    """

    def __init__(
        self,
        minimum: float,
        maximum: float,
        step: float,
        decimals: int = 0,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._factor = 0
        self.setDecimals(decimals)
        self.setRange(minimum, maximum)
        self.setSingleStep(step)
        self.setKeyboardTracking(False)
        self.setLocale(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
        self.setGroupSeparatorShown(True)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        set_font(self, 12, tabular=True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.value_changed = self.valueChanged  # named like every other control's

    @property
    def value(self) -> float:  # type: ignore[override]  # a property like every other control's
        return float(super().value())

    def set_value(self, value: float) -> None:
        self.setValue(value)

    def set_grouped(self, grouped: bool) -> None:
        """Turns the thousands separator on or off; a seed is read better without it."""
        self.setGroupSeparatorShown(grouped)
        self.updateGeometry()

    def set_factor(self, factor: int) -> None:
        """Makes steps multiply and divide by `factor`; 0 adds."""
        self._factor = factor

    def stepBy(self, steps: int) -> None:
        if self._factor:
            self.interpretText()  # a number being typed
            self.setValue(super().value() * self._factor**steps)
            self.selectAll()
        else:
            super().stepBy(steps)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting
