"""Segment: a choice of one of a few options, side by side, 24 high.

A group of radio buttons for assistive technology: Tab reaches the selected one, arrows and Home/End move the
selection. Options share the spare width.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QRadioButton, QSizePolicy, QWidget
from shiboken6 import isValid

from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_height, set_margins
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_rect, painter_on, px, px_size

_HEIGHT_PX = 24
_INSET_PX = 2
_PADDING_PX = 10


class Segment(QWidget):
    """`options` are pairs of value and label; the first is selected."""

    value_changed = Signal(str)  # the selected option's value

    def __init__(
        self, theme: Theme, options: Sequence[tuple[str, str]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        if not options:
            raise ValueError("A segment needs at least one option.")
        self._theme = theme
        self._options = [_Option(theme, value, label, self) for value, label in options]
        self._value = options[0][0]
        layout = QHBoxLayout(self)
        set_margins(layout, _INSET_PX, _INSET_PX, _INSET_PX, _INSET_PX)
        layout.setSpacing(0)
        for option in self._options:
            layout.addWidget(option)
            option.toggled.connect(self._take_choice)
        self._options[0].setChecked(True)
        set_fixed_height(self, _HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._ring = FocusRing(self, theme, 6, sources=self._options)

    @property
    def value(self) -> str:
        """The selected option's value."""
        return self._value

    def set_value(self, value: str) -> None:
        """Selects the option of that value. Raises ValueError naming the options if it is unknown."""
        for option in self._living():
            if option.value == value:
                option.setChecked(True)
                return
        raise ValueError(f"“{value}” is not one of {', '.join(option.value for option in self._living())}.")

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        for option in self._living():
            option.setAccessibleDescription(name)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), 6, color("segment_track"))
        options = self._living()
        for before, option in zip([None, *options], options):
            box = design_rect(QRectF(option.geometry()))
            if option.isChecked():
                shade = QColor(0, 0, 0, 90 if self._theme.is_dark else 28)
                draw_box(painter, box.adjusted(-0.5, 0, 0.5, 1), 5, shade)
                draw_box(painter, box, 4.5, color("segment_on"))
            elif before is not None and not before.isChecked():
                painter.fillRect(QRectF(box.left(), box.top() + 4, 1, 12), color("hair2"))

    def _living(self) -> list[_Option]:
        """Returns the options that were not destroyed from outside."""
        return [option for option in self._options if isValid(option)]

    def _take_choice(self, checked: bool) -> None:
        self.update()
        if not checked:
            return
        value = next(option.value for option in self._living() if option.isChecked())
        if value != self._value:
            self._value = value
            self.value_changed.emit(value)


class _Option(QRadioButton):
    """Paints its label; the segment paints the ground."""

    def __init__(self, theme: Theme, value: str, label: str, segment: QWidget) -> None:
        super().__init__(label, segment)
        self.value = value
        self._theme = theme
        self._segment = segment
        self.setAccessibleName(label)
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        # Measured at the heavier weight so that nothing moves with the selection.
        width = QFontMetricsF(ui_font(12, 500)).horizontalAdvance(self.text()) + 2 * _PADDING_PX
        return px_size(QSize(int(width + 0.999), _HEIGHT_PX - 2 * _INSET_PX))

    def minimumSizeHint(self) -> QSize:
        narrow = self.sizeHint()
        return QSize(narrow.width() - px(2 * _PADDING_PX - 8), narrow.height())

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            siblings = self._segment.findChildren(_Option)
            target = siblings[0] if event.key() == Qt.Key.Key_Home else siblings[-1]
            target.setFocus(Qt.FocusReason.OtherFocusReason)
            target.setChecked(True)
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        weight = 500 if self.isChecked() else 400
        ink = self._theme.color("text" if self.isEnabled() else "text3")
        draw_text(painter, area_of(self), self.text(), ui_font(12, weight), ink)
