"""Spin: a number field, 24 high.

A typed number is committed on Return or when the field loses focus; steps (arrow keys, Page Up/Down, the
small arrows) at once. Bounds are inclusive and enforced while typing.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QLocale, QPointF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHideEvent,
    QMouseEvent,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSizePolicy, QWidget

from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_font
from app.theme.theme import Theme
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

_HEIGHT_PX = 24
_ICON_PX = 13
_ARROWS_PX = 22  # the strip of the arrows
_REPEAT_FIRST_MS, _REPEAT_MS = 400, 80


class Spin(QDoubleSpinBox):
    """`decimals` 0 shows integers. Thousands are separated unless `set_grouped(False)`."""

    value_changed = Signal(float)  # the new value

    def __init__(
        self,
        theme: Theme,
        minimum: float,
        maximum: float,
        step: float,
        decimals: int = 0,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
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
        self._ring = FocusRing(self, theme, 6, with_mouse=True)
        self.valueChanged.connect(self.value_changed)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def value(self) -> float:  # type: ignore[override]  # a property like every other control's
        """The committed value."""
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
        color = self._theme.color
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

    def _restyle(self) -> None:
        palette = QPalette(self.palette())
        role = QPalette.ColorRole
        palette.setColor(role.Base, Qt.GlobalColor.transparent)
        palette.setColor(role.Text, self._theme.color("text"))
        palette.setColor(QPalette.ColorGroup.Disabled, role.Text, self._theme.color("text3"))
        palette.setColor(role.Highlight, self._theme.color("accent_fill"))
        palette.setColor(role.HighlightedText, self._theme.color("on_accent"))
        self.setPalette(palette)
        self.lineEdit().setPalette(palette)
        self.update()
