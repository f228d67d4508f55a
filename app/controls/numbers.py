"""Numbers within bounds: Slider and Spin. Both ignore the wheel, which scrolls the panel around them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QLocale, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHideEvent,
    QMouseEvent,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSizePolicy, QSlider, QWidget

from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_font
from app.theme.theme import clear_base, color, theme
from app.theme.zoom import (
    area_of,
    design_point,
    design_px,
    height_of,
    painter_on,
    place,
    px_size,
    ratio_of,
    width_of,
)

_SLIDER_HEIGHT_PX = 18
_TRACK_PX = 4
_KNOB_PX = 16


class Slider(QSlider):
    """A number on a grid of `step`, from `minimum` to `maximum`, both inclusive. Track 4, knob 16, 18 high.

    A QSlider whose integers are grid points, for the keyboard and assistive technology. A value set by code
    may lie between two grid points and is kept exactly until a person moves the knob.
    """

    value_changed = Signal(float)  # the new value

    def __init__(self, minimum: float, maximum: float, step: float, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        if not (maximum > minimum and step > 0):
            raise ValueError(
                f"A slider needs minimum < maximum and a step, not {minimum}, {maximum}, {step}."
            )
        self._low, self._high, self._step = minimum, maximum, step
        self._exact = minimum
        self._set_ticks()
        self.setSingleStep(1)
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._ring = FocusRing(self, _SLIDER_HEIGHT_PX / 2)
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
        """Sets the value, clamped to the bounds."""
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
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
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
            edge = QColor(0, 0, 0, 60) if theme.is_dark else color("hair2")
        draw_box(painter, knob, _KNOB_PX / 2, fill, edge)

    def _set_ticks(self) -> None:
        ticks = max(1, round((self._high - self._low) / self._step))
        self.setRange(0, ticks)
        self.setPageStep(max(1, ticks // 10))

    def _move_knob(self) -> None:
        """Moves the knob to the grid point next to the value. Emits nothing."""
        was_blocked = self.blockSignals(True)
        self.setValue(round((self._exact - self._low) / self._step))
        self.blockSignals(was_blocked)
        self.update()

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


_HEIGHT_PX = 24
_ICON_PX = 13
_ARROWS_PX = 22  # the strip of the arrows
_REPEAT_FIRST_MS, _REPEAT_MS = 400, 80


class Spin(QDoubleSpinBox):
    """A number field, 24 high. `decimals` 0 shows integers. Thousands are separated unless
    `set_grouped(False)`.

    A typed number is committed on Return or when the field loses focus; steps (arrow keys, Page Up/Down, the
    small arrows) at once. Bounds are inclusive and enforced while typing.
    """

    value_changed = Signal(float)  # the new value

    def __init__(
        self,
        minimum: float,
        maximum: float,
        step: float,
        decimals: int = 0,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._repeat = QTimer(self)
        self._repeat.timeout.connect(self._step_again)
        self._repeat_steps = 0
        self._factor = 0
        self.setDecimals(decimals)
        self.setRange(minimum, maximum)
        self.setSingleStep(step)
        self.setKeyboardTracking(False)
        self.setLocale(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
        self.setGroupSeparatorShown(True)
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.setFrame(False)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        set_font(self, 12, tabular=True)
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_fixed_height(self, _HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        field = self.lineEdit()
        field.setFrame(False)
        field.setTextMargins(0, 0, 0, 0)
        self._ring = FocusRing(self, 6, with_mouse=True)
        self.valueChanged.connect(self.value_changed)
        for part in (self, field):
            clear_base(part)

    @property
    def value(self) -> float:  # type: ignore[override]  # a property like every other control's
        return float(super().value())

    def set_value(self, value: float) -> None:
        """Shows `value`, clamped to the bounds."""
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
            self.setValue(super().value() * self._factor**steps)
            self.selectAll()
        else:
            super().stepBy(steps)

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        widest = max(
            metrics.horizontalAdvance(self.textFromValue(bound)) for bound in (self.minimum(), self.maximum())
        )
        return px_size(QSize(max(64, int(design_px(widest) + 8 + _ARROWS_PX + 0.999)), _HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_field()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        self._place_field()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if (
            event.button() == Qt.MouseButton.LeftButton
            and design_point(event.position()).x() >= width_of(self) - _ARROWS_PX
        ):
            self._repeat_steps = 1 if design_point(event.position()).y() < height_of(self) / 2 else -1
            self.stepBy(self._repeat_steps)
            self._repeat.start(_REPEAT_FIRST_MS)
            return
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._repeat.stop()
        super().mouseReleaseEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        self._repeat.stop()
        super().hideEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        frame = color("accent_mid" if self._ring.shown else "control_border")
        draw_box(painter, area_of(self), 6, color("control"), frame)
        ink = color("text2" if self.isEnabled() else "text3")
        arrows = icon_pixmap("updown", ink, _ICON_PX, ratio_of(self))
        painter.drawPixmap(QPointF(width_of(self) - _ICON_PX - 5, (height_of(self) - _ICON_PX) // 2), arrows)

    def _step_again(self) -> None:
        self._repeat.setInterval(_REPEAT_MS)
        self.stepBy(self._repeat_steps)

    def _place_field(self) -> None:
        """Gives the text everything but the arrows; Qt's geometry would leave space for a frame."""
        field = self.lineEdit()
        if field is not None:
            place(field, 4, 2, max(0.0, width_of(self) - 4 - _ARROWS_PX), height_of(self) - 4)
