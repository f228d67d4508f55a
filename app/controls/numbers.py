"""Numbers within bounds: Slider and Spin. Both ignore the wheel, which scrolls the panel around them."""

from __future__ import annotations

from decimal import Decimal

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSizePolicy, QSlider, QToolTip, QWidget

from app.controls.number_text import NOT_ABOVE, OUTSIDE, Notation, may_be_typed, read, shown
from app.theme.measures import set_font
from app.theme.zoom import design_point, px_size, width_of
from core.errors import RequestError

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
    """A number field in the notation of the person's region, with all digits of the value. `whole`: without
    fractions. Thousands are separated unless `set_grouped(False)`.

    A typed number is committed on Return or when the field loses focus; steps (arrow keys, Page Up/Down, the
    small arrows) at once. A text that is not a number, is ambiguous, or is out of bounds is replaced by the
    value, and `refused` has the reason. Bounds are inclusive, the lower one not if it is `open_minimum`.
    """

    refused = Signal(str)  # why a typed text was not accepted; empty: it was

    def __init__(
        self,
        minimum: float,
        maximum: float,
        step: float,
        *,
        whole: bool = True,
        open_minimum: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._factor = 0
        self._whole, self._open_minimum, self._grouped = whole, open_minimum, True
        self._edited, self._refusal = False, ""
        self.setDecimals(_DECIMALS)
        self.setRange(minimum, maximum)
        self.setSingleStep(step)
        self.setKeyboardTracking(False)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        set_font(self, 12, tabular=True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.value_changed = self.valueChanged  # named like every other control's
        self.lineEdit().textEdited.connect(self._note_edit)
        self.editingFinished.connect(self._report)

    @property
    def value(self) -> float:  # type: ignore[override]  # a property like every other control's
        return float(super().value())

    def set_value(self, value: float) -> None:
        self.setValue(value)

    def set_grouped(self, grouped: bool) -> None:
        """Turns the thousands separator on or off; a seed is read better without it."""
        self._grouped = grouped
        self.set_value(self.value)  # writes it again
        self.updateGeometry()

    def set_factor(self, factor: int) -> None:
        """Makes steps multiply and divide by `factor`; 0 adds."""
        self._factor = factor

    def show_refusal(self, reason: str) -> None:
        """Show at the field why a text was refused; for fields without a line for it."""
        if reason:
            QToolTip.showText(self.mapToGlobal(self.rect().bottomLeft()), reason, self)

    def textFromValue(self, value: float) -> str:
        return shown(value, self._notation, grouped=self._grouped)

    def valueFromText(self, text: str) -> float:
        try:
            return self._read(text)
        except RequestError:
            return self.value

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        try:
            self._read(text)
        except RequestError:
            state = QValidator.State.Intermediate if may_be_typed(text) else QValidator.State.Invalid
            return state, text, position
        return QValidator.State.Acceptable, text, position

    def fixup(self, text: str) -> str:
        try:
            self._read(text)
        except RequestError as refused:
            self._refusal = refused.message if text.strip() else ""
        return text

    def stepBy(self, steps: int) -> None:
        self.interpretText()  # a number being typed
        # Decimals: a tenth is added exactly.
        value, step = Decimal(repr(self.value)), Decimal(repr(self.singleStep()))
        value = value * self._factor**steps if self._factor else value + steps * step
        if self._open_minimum and value <= self.minimum():
            value = min(Decimal(repr(self.value)), Decimal(repr(self.minimum())) + step)
        self.setValue(float(value))
        self.selectAll()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting

    @property
    def _notation(self) -> Notation:
        return Notation.of(self.locale())

    def _read(self, text: str) -> float:
        """The number in `text`. Raises RequestError if it is none, or outside the bounds."""
        value = read(text, self._notation, whole=self._whole)
        low, high = self.minimum(), self.maximum()
        above = value > low if self._open_minimum else value >= low
        if not above or value > high:
            reason = NOT_ABOVE if self._open_minimum else OUTSIDE
            bounds = [self.textFromValue(bound) for bound in (low, high)]
            raise RequestError(reason.format(text=text.strip(), low=bounds[0], high=bounds[1]), "")
        return value

    def _note_edit(self) -> None:
        self._edited = True

    def _report(self) -> None:
        """A field reports once for each text: losing the focus later says nothing new."""
        if self._edited:
            reason, self._edited, self._refusal = self._refusal, False, ""
            self.refused.emit(reason)


# More than a float has: nothing is rounded.
_DECIMALS = 60
