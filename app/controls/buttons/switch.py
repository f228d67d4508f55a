"""Switch: on or off, 32 × 18. Space toggles it; `toggled(bool)` tells."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.buttons.toggle import Toggle
from app.controls.shapes import draw_box
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px_size

_SIZE = (32, 18)
_KNOB_PX = 14
_INSET_PX = 2


class Switch(Toggle):
    """A QCheckBox to assistive technology, a switch to the eye."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "", _SIZE[1] / 2, parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return px_size(QSize(*_SIZE))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        width, height = _SIZE
        rect = QRectF(0, (height_of(self) - height) / 2, width, height)
        on, enabled = self.isChecked(), self.isEnabled()
        track = self._theme.color("accent_fill" if on else "fill2")
        if on and not enabled:
            track.setAlphaF(0.45)
        frame = None if on else QColor(0, 0, 0, 20)
        draw_box(painter, rect, height / 2, track, frame)
        left = rect.left() + (width - _KNOB_PX - _INSET_PX if on else _INSET_PX)
        knob = QRectF(left, rect.top() + _INSET_PX, _KNOB_PX, _KNOB_PX)
        draw_box(painter, knob.translated(0, 0.6).adjusted(-0.4, -0.4, 0.4, 0.4), 8, QColor(0, 0, 0, 40))
        knob_color = QColor(Qt.GlobalColor.white)
        if not enabled:
            knob_color = self._theme.color("fill1" if not self._theme.is_dark else "text3")
        draw_box(painter, knob, _KNOB_PX / 2, knob_color)
